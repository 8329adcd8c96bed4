-- Events that applications publish in their own transactions, and what was refused of them (docs/outbox.md).
-- serves: 0008

-- An application's own migrations may have been first.
CREATE TABLE IF NOT EXISTS hookline_outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB NOT NULL CHECK (length(id) = 16),
  at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
  deliver_at REAL,
  account TEXT NOT NULL DEFAULT 'default',
  type TEXT NOT NULL,
  idempotency_key TEXT,
  hops INTEGER NOT NULL DEFAULT 0,
  payload BLOB NOT NULL CHECK (typeof(payload) = 'blob')
);
CREATE INDEX IF NOT EXISTS hookline_outbox_accounts ON hookline_outbox (account, seq);

CREATE TABLE outbox_refused (
  n INTEGER PRIMARY KEY AUTOINCREMENT,  -- nothing keeps an application from using one id twice
  source TEXT NOT NULL, seq INTEGER NOT NULL, id BLOB NOT NULL,
  at REAL NOT NULL, deliver_at REAL,
  account TEXT NOT NULL, type TEXT NOT NULL, idempotency_key TEXT, hops INTEGER NOT NULL, payload BLOB NOT NULL,
  refused_at REAL NOT NULL, code TEXT NOT NULL, detail TEXT NOT NULL,
  UNIQUE (source, seq, id)
);
CREATE INDEX outbox_refused_account ON outbox_refused (account, n);
CREATE INDEX outbox_refused_id ON outbox_refused (id);

CREATE TABLE outbox_sources (
  name TEXT PRIMARY KEY,
  clear_at REAL,                        -- what was accepted before left its outbox; NULL: nothing was ever accepted
  looked_at REAL,                       -- the last look that succeeded
  waiting INTEGER NOT NULL DEFAULT 0,   -- rows, as of the last note
  oldest_at REAL,                       -- when the oldest of them was published
  trouble TEXT                          -- why it cannot be read; NULL: it can
) WITHOUT ROWID;
