-- How many times an event was sent on by a hookline before it was published here; null: it began here.
-- serves: 0008

ALTER TABLE events ADD COLUMN hops INTEGER;
