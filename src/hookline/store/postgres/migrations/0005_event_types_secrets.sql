-- Secrets that overlap while they are rotated, filters, event types, what accounts want to be told.

ALTER TABLE endpoints
  ADD COLUMN old_secret text,
  ADD COLUMN old_secret_until timestamptz,
  ADD COLUMN filter text,
  ADD COLUMN signature text NOT NULL DEFAULT 'v1';

CREATE TABLE event_types (
  name text PRIMARY KEY,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  description text NOT NULL,
  schema text                           -- JSON as text, as it came; null: payloads of every shape
);

CREATE TABLE accounts (
  id text PRIMARY KEY,
  updated_at timestamptz NOT NULL,
  notify text NOT NULL                  -- JSON
);

-- At most one row: whether a server's key is the one that secrets are sealed with.
CREATE TABLE seal (mark text NOT NULL);
CREATE UNIQUE INDEX seal_one ON seal ((true));
