-- Logins, portal links and portal visits.
-- serves: 0008

CREATE TABLE sessions (
  digest bytea PRIMARY KEY,             -- SHA-256 of the token, which only the browser has
  kind text NOT NULL,                   -- login, link or portal
  key_digest bytea NOT NULL,            -- of the API key it came from; empty: no key was needed
  account text,                         -- null: all of them
  scopes text[] NOT NULL,               -- of a login empty: the key's own hold
  created_at timestamptz NOT NULL, seen_at timestamptz NOT NULL, expires_at timestamptz NOT NULL,
  visit_s float8 NOT NULL               -- of a link: how long the visit may last that it opens
) WITH (fillfactor = 70);
CREATE INDEX sessions_expires ON sessions (expires_at);
CREATE INDEX sessions_key     ON sessions (key_digest);
