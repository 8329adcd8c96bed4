-- Keys, and whose a job is.

CREATE TABLE keys (
  id uuid PRIMARY KEY,
  n bigint NOT NULL UNIQUE,             -- of its last change: whoever keeps a copy reads on from there
  created_at timestamptz NOT NULL,
  revoked_at timestamptz,
  digest bytea NOT NULL UNIQUE,         -- SHA-256 of the key
  hint text NOT NULL,                   -- how the key begins
  name text NOT NULL,
  scopes text[] NOT NULL,
  account text                          -- null: all of them
);

ALTER TABLE jobs ADD COLUMN account text NOT NULL DEFAULT '';   -- '': of the whole installation
DROP INDEX jobs_key;
CREATE UNIQUE INDEX jobs_key     ON jobs (account, kind, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX        jobs_account ON jobs (account, kind, id) WHERE account <> '';
