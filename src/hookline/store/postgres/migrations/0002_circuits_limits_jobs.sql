-- Circuits, rate limits, strict order, careful mode, and bulk jobs over dead letters.

-- The defaults are what endpoints had without being asked; structured values are JSON as text (see `headers`).
ALTER TABLE endpoints
  ADD COLUMN max_redirects integer NOT NULL DEFAULT 0,
  ADD COLUMN paused boolean NOT NULL DEFAULT false,
  ADD COLUMN ordering text NOT NULL DEFAULT 'parallel',
  ADD COLUMN rate_limit text,                                           -- null: none
  ADD COLUMN retry text,                                                -- null: the server's default
  ADD COLUMN retry_statuses text NOT NULL DEFAULT '["5xx",408,425,429]',
  ADD COLUMN circuit text DEFAULT
    '{"consecutive_failures":5,"failure_rate":0.5,"window_s":600.0,"min_attempts":10,"cooldown_s":300.0,"max_cooldown_s":3600.0}';  -- null: never trips

-- The columns that go were never written with anything but their default: too narrow for what they now hold
-- (a count without an end, fractions), and a changed type would rewrite the table.
ALTER TABLE lanes DROP COLUMN cooldown_s, DROP COLUMN tokens, DROP COLUMN failures;
ALTER TABLE lanes
  ADD COLUMN failures integer NOT NULL DEFAULT 0,
  ADD COLUMN cooldown double precision,
  ADD COLUMN tokens double precision,
  ADD COLUMN last_success_at timestamptz,
  ADD COLUMN last_failure_at timestamptz,
  ADD COLUMN slices text;                                               -- JSON; null: none
ALTER TABLE lanes RENAME COLUMN probe_until TO probe_at;

ALTER TABLE deliveries ADD COLUMN marked_epoch bigint;                  -- of the lane when it was last marked

-- A page of a list costs a page. What is written on the happy path stays two entries at accept and two at settle:
-- an update that changes `state` writes every index that has the row, so there is one for delivered rows alone
-- instead of one for all of an endpoint's rows.
DROP INDEX deliveries_settled;
CREATE INDEX deliveries_delivered ON deliveries (endpoint_id, id) WHERE state = 'delivered';
CREATE INDEX deliveries_cancelled ON deliveries (endpoint_id, id) WHERE state = 'cancelled';
CREATE INDEX deliveries_ended     ON deliveries (state, id)       WHERE state IN ('dead', 'cancelled');
CREATE INDEX deliveries_replayed  ON deliveries (id)              WHERE state = 'pending' AND death_at IS NOT NULL;

-- Looked for at every take; an endpoint's other changes may be many.
DROP INDEX changes_endpoint;
CREATE INDEX changes_reset ON changes (endpoint_id, n) WHERE kind = 'reset';

CREATE TABLE jobs (
  id uuid PRIMARY KEY,
  created_at timestamptz NOT NULL,
  finished_at timestamptz,
  cursor uuid,                          -- the last delivery that was looked at
  matched bigint NOT NULL,
  done bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  kind text NOT NULL,
  state text NOT NULL DEFAULT 'running',
  filter text NOT NULL,                 -- JSON
  ids uuid[] NOT NULL,                  -- sorted; not empty: instead of the filter
  idempotency_key text,
  digest bytea NOT NULL
);
CREATE UNIQUE INDEX jobs_key     ON jobs (kind, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX        jobs_kind    ON jobs (kind, id);
CREATE INDEX        jobs_running ON jobs (id) WHERE state = 'running';
