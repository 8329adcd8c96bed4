-- Keys, and whose a job is.

CREATE TABLE keys (
  id BLOB PRIMARY KEY,
  n INTEGER NOT NULL UNIQUE,          -- of its last change: whoever keeps a copy reads on from there
  digest BLOB NOT NULL UNIQUE,        -- SHA-256 of the key
  hint TEXT NOT NULL,                 -- how the key begins
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,               -- JSON array
  account TEXT,                       -- NULL: all of them
  created_at REAL NOT NULL,
  revoked_at REAL
) WITHOUT ROWID;

ALTER TABLE jobs ADD COLUMN account TEXT NOT NULL DEFAULT '';   -- '': of the whole installation
DROP INDEX jobs_key;
CREATE UNIQUE INDEX jobs_key ON jobs (account, kind, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_account ON jobs (account, kind, id) WHERE account <> '';
