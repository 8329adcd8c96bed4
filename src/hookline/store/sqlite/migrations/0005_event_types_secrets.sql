-- Secrets that overlap while they are rotated, filters, event types, what accounts want to be told.

ALTER TABLE endpoints ADD COLUMN old_secret TEXT;
ALTER TABLE endpoints ADD COLUMN old_secret_until REAL;
ALTER TABLE endpoints ADD COLUMN filter TEXT;
ALTER TABLE endpoints ADD COLUMN signature TEXT NOT NULL DEFAULT 'v1';

CREATE TABLE event_types (
  name TEXT PRIMARY KEY,
  description TEXT NOT NULL,
  schema TEXT,                        -- JSON; NULL: payloads of every shape
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  notify TEXT NOT NULL,               -- JSON
  updated_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE seal (                   -- at most one row: whether a server's key is the one that secrets are sealed with
  only INTEGER PRIMARY KEY CHECK (only = 1),
  mark TEXT NOT NULL
);
