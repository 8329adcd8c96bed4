-- Circuits, rate limits, strict order, careful mode, and bulk jobs over dead letters.

-- The defaults are what endpoints had without being asked; structured values are JSON.
ALTER TABLE endpoints ADD COLUMN max_redirects INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoints ADD COLUMN ordering TEXT NOT NULL DEFAULT 'parallel';
ALTER TABLE endpoints ADD COLUMN rate_limit TEXT;
ALTER TABLE endpoints ADD COLUMN retry TEXT;
ALTER TABLE endpoints ADD COLUMN retry_statuses TEXT NOT NULL DEFAULT '["5xx",408,425,429]';
ALTER TABLE endpoints ADD COLUMN circuit TEXT DEFAULT
  '{"consecutive_failures":5,"failure_rate":0.5,"window_s":600.0,"min_attempts":10,"cooldown_s":300.0,"max_cooldown_s":3600.0}';

ALTER TABLE lanes DROP COLUMN cooldown_s;                     -- never written; seconds may be fractions
ALTER TABLE lanes ADD COLUMN cooldown REAL;
ALTER TABLE lanes ADD COLUMN slices TEXT;
ALTER TABLE lanes ADD COLUMN last_success_at REAL;
ALTER TABLE lanes ADD COLUMN last_failure_at REAL;
ALTER TABLE lanes RENAME COLUMN probe_until TO probe_at;

ALTER TABLE deliveries ADD COLUMN marked_epoch INTEGER;       -- of the lane when it was last marked

-- Differs from postgres: an update writes only the indexes whose columns it changes, so the one over all of an
-- endpoint's rows costs no more than one over the delivered ones, and lists in every state begin there.
CREATE INDEX deliveries_cancelled ON deliveries (endpoint_id, id) WHERE state = 'cancelled';
CREATE INDEX deliveries_replayed ON deliveries (id) WHERE state = 'pending' AND death_at IS NOT NULL;

-- Looked for at every take; an endpoint's other changes may be many.
DROP INDEX changes_endpoint;
CREATE INDEX changes_reset ON changes (endpoint_id, n) WHERE kind = 'reset';

CREATE TABLE jobs (
  id BLOB PRIMARY KEY,
  kind TEXT NOT NULL,
  filter TEXT NOT NULL,               -- JSON
  ids BLOB NOT NULL,                  -- 16 bytes each, sorted; not empty: instead of the filter
  idempotency_key TEXT,
  digest BLOB NOT NULL,
  state TEXT NOT NULL DEFAULT 'running',
  matched INTEGER NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cursor BLOB,                        -- the last delivery that was looked at
  created_at REAL NOT NULL,
  finished_at REAL
) WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_key ON jobs (kind, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_kind ON jobs (kind, id);
CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';
