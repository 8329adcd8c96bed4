-- The trace that a publish belongs to (W3C: traceparent, and after a space tracestate); null: it has none.
-- serves: 0008

ALTER TABLE events ADD COLUMN trace TEXT;
