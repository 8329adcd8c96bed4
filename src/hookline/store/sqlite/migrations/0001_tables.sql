-- Ids are 16-byte BLOBs, times REAL seconds since 1970 (9e999 is "never", -9e999 "long ago"), states and queues
-- the words of the model. Words in index predicates stand literally in the queries too, or the index is not used.

CREATE TABLE clock (
  at REAL NOT NULL                    -- the latest time a beat has written: the store's time never falls behind it
);
INSERT INTO clock (at) VALUES (-9e999);

CREATE TABLE workers (                -- every process that publishes or delivers
  id BLOB PRIMARY KEY,                -- new at each start and after a burial, never reused
  kind TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  version TEXT NOT NULL,
  started_at REAL NOT NULL,
  seen_at REAL NOT NULL,              -- for people; `beat` decides
  beat INTEGER NOT NULL DEFAULT 0,
  lanes INTEGER NOT NULL DEFAULT 0,
  in_flight INTEGER NOT NULL DEFAULT 0,
  free_slots INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  draining INTEGER NOT NULL DEFAULT 0,
  buried_at REAL                      -- the row is deleted when no lane names it
) WITHOUT ROWID;

CREATE TABLE endpoints (
  id BLOB PRIMARY KEY,
  account TEXT NOT NULL,
  url TEXT NOT NULL,
  events TEXT NOT NULL,               -- JSON array of patterns
  secret TEXT NOT NULL,
  signing TEXT NOT NULL,
  description TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  disabled_reason TEXT,
  headers TEXT NOT NULL,              -- JSON object
  metadata TEXT NOT NULL,             -- JSON object
  timeout REAL NOT NULL,
  max_in_flight INTEGER NOT NULL,
  created_at REAL NOT NULL,
  updated_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX endpoints_account ON endpoints (account, id);

CREATE TABLE lanes (
  endpoint_id BLOB PRIMARY KEY,
  owner BLOB,
  epoch INTEGER NOT NULL DEFAULT 0,
  wake_at REAL NOT NULL DEFAULT 9e999,        -- free lanes: not later than the earliest possible send
  hold_until REAL NOT NULL DEFAULT -9e999,    -- circuit, lane-wide Retry-After, strict head
  paused INTEGER NOT NULL DEFAULT 0,          -- the only column an operator writes
  deleted INTEGER NOT NULL DEFAULT 0,         -- a tombstone: the endpoint is gone, its rows are being cancelled
  suspect INTEGER NOT NULL DEFAULT 0,         -- its last owner died
  strict INTEGER NOT NULL DEFAULT 0,
  head BLOB,
  circuit TEXT NOT NULL DEFAULT 'closed',
  failures INTEGER NOT NULL DEFAULT 0,
  cooldown_s INTEGER,
  opened_at REAL,
  probe_until REAL,
  reason TEXT,
  tokens REAL,
  tokens_at REAL,
  applied INTEGER NOT NULL DEFAULT 0          -- the last change carried out
) WITHOUT ROWID;
CREATE INDEX lanes_free ON lanes (wake_at) WHERE owner IS NULL AND paused = 0 AND wake_at < 9e999;
CREATE INDEX lanes_owned ON lanes (owner) WHERE owner IS NOT NULL;
CREATE INDEX lanes_deleted ON lanes (endpoint_id) WHERE deleted = 1;

CREATE TABLE events (                 -- with a rowid: payloads do not fit the pages of a table without one
  id BLOB NOT NULL UNIQUE,            -- ends in 20 zero bits
  account TEXT NOT NULL,
  type TEXT NOT NULL,
  payload BLOB NOT NULL,
  idempotency_key TEXT,
  deliver_at REAL,
  created_at REAL NOT NULL
);
CREATE INDEX events_account ON events (account, id);

CREATE TABLE idempotency (
  account TEXT NOT NULL,
  key TEXT NOT NULL,
  event_id BLOB NOT NULL,
  digest BLOB NOT NULL,
  expires_at REAL,                    -- NULL: kept as long as the event
  PRIMARY KEY (account, key)
) WITHOUT ROWID;

CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,      -- publish order; never used twice, also after the last row is pruned
  id BLOB NOT NULL UNIQUE,            -- the event's id plus the place in the fan-out
  endpoint_id BLOB NOT NULL,
  due_at REAL NOT NULL,
  done_at REAL,
  state TEXT NOT NULL DEFAULT 'pending',
  queue TEXT NOT NULL DEFAULT 'ready',
  attempts INTEGER NOT NULL DEFAULT 0,
  marks INTEGER NOT NULL DEFAULT 0,
  replays INTEGER NOT NULL DEFAULT 0,
  last_status INTEGER,
  last_error TEXT,
  reason TEXT,
  death_reason TEXT,                  -- how the life before the last redrive ended
  death_at REAL,
  death_attempts INTEGER
);
CREATE INDEX deliveries_ready ON deliveries (endpoint_id, seq) WHERE state = 'pending' AND queue = 'ready';
CREATE INDEX deliveries_timed ON deliveries (endpoint_id, due_at, id) WHERE state = 'pending' AND queue = 'timed';
CREATE INDEX deliveries_endpoint ON deliveries (endpoint_id, id);
CREATE INDEX deliveries_dead ON deliveries (endpoint_id, id) WHERE state = 'dead';
CREATE INDEX deliveries_ended ON deliveries (state, id) WHERE state IN ('dead', 'cancelled');

CREATE TABLE attempts (
  delivery_id BLOB NOT NULL,
  id BLOB NOT NULL,
  number INTEGER NOT NULL,
  replays INTEGER NOT NULL,
  late INTEGER NOT NULL,
  at REAL NOT NULL,
  outcome TEXT NOT NULL,
  duration REAL NOT NULL,
  status INTEGER,
  error TEXT,
  error_detail TEXT,
  dns REAL,
  connect REAL,
  tls REAL,
  first_byte REAL,
  request_url TEXT,
  request_headers TEXT,               -- JSON object
  response_headers TEXT,              -- JSON object
  response_body BLOB,                 -- NULL: empty
  response_truncated INTEGER,         -- NULL: no
  final_url TEXT,
  PRIMARY KEY (delivery_id, id)
) WITHOUT ROWID;

CREATE TABLE changes (
  n INTEGER PRIMARY KEY,
  endpoint_id BLOB NOT NULL,
  kind TEXT NOT NULL,
  at REAL NOT NULL
);
CREATE INDEX changes_endpoint ON changes (endpoint_id, n);

CREATE TABLE change_counter (         -- one row
  n INTEGER NOT NULL,
  catalogue INTEGER NOT NULL          -- the number of the last change of kind 'endpoint'
);
INSERT INTO change_counter (n, catalogue) VALUES (0, 0);
