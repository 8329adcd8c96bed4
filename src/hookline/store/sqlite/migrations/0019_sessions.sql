-- Logins, portal links and portal visits.
-- serves: 0008

CREATE TABLE sessions (
  digest BLOB PRIMARY KEY,            -- SHA-256 of the token, which only the browser has
  kind TEXT NOT NULL,                 -- login, link or portal
  key_digest BLOB NOT NULL,           -- of the API key it came from; empty: no key was needed
  account TEXT,                       -- NULL: all of them
  scopes TEXT NOT NULL,               -- JSON array; of a login empty: the key's own hold
  created_at REAL NOT NULL, seen_at REAL NOT NULL, expires_at REAL NOT NULL,
  visit_s REAL NOT NULL               -- of a link: how long the visit may last that it opens
) WITHOUT ROWID;
CREATE INDEX sessions_expires ON sessions (expires_at);
CREATE INDEX sessions_key ON sessions (key_digest);
