-- Latencies, counts, what owners know, periodic tasks, alerts, own events and notifications (docs/measuring.md).
-- serves: 0008

-- Attempts that were settled and are not in `latency_minutes` yet, one row for each batch of a worker.
CREATE TABLE latency_log (
  worker BLOB NOT NULL, n INTEGER NOT NULL, minute REAL NOT NULL, late TEXT, samples BLOB NOT NULL,
  PRIMARY KEY (worker, n)) WITHOUT ROWID;

-- One number for each life of a worker, and one for each fold of a dead worker's log.
CREATE TABLE latency_sources (n INTEGER NOT NULL);
INSERT INTO latency_sources (n) VALUES (0);

CREATE TABLE latency_minutes (
  endpoint_id BLOB NOT NULL, at REAL NOT NULL, source INTEGER NOT NULL, seconds REAL NOT NULL,
  attempts INTEGER NOT NULL, accepted INTEGER NOT NULL, response BLOB NOT NULL, rest BLOB NOT NULL,
  PRIMARY KEY (endpoint_id, at, source)) WITHOUT ROWID;

CREATE TABLE latency_hours (
  endpoint_id BLOB NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL,
  attempts INTEGER NOT NULL, accepted INTEGER NOT NULL, response BLOB NOT NULL, rest BLOB NOT NULL,
  PRIMARY KEY (endpoint_id, at));

-- The percentiles of the last 24 hours, for lists and for whoever asks whether an endpoint is slow.
CREATE TABLE latency_days (
  endpoint_id BLOB PRIMARY KEY, as_of REAL NOT NULL, attempts INTEGER NOT NULL, accepted INTEGER NOT NULL,
  p50 REAL, p95 REAL, p99 REAL) WITHOUT ROWID;
CREATE INDEX latency_days_p95 ON latency_days (p95 DESC, endpoint_id DESC) WHERE p95 IS NOT NULL;

-- What waits and what is dead, for each endpoint that has any. Counted again and again by one process for all.
CREATE TABLE endpoint_counts (
  endpoint_id BLOB PRIMARY KEY, pending INTEGER NOT NULL, awaiting_retry INTEGER NOT NULL, dead INTEGER NOT NULL,
  failed_last_hour INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE health_samples (
  at REAL PRIMARY KEY, took REAL NOT NULL, pending INTEGER NOT NULL, awaiting_retry INTEGER NOT NULL,
  dead INTEGER NOT NULL, failed_last_hour INTEGER NOT NULL, oldest_pending REAL, oldest_due REAL) WITHOUT ROWID;

-- What one process does for all: whoever moves the row on does it.
CREATE TABLE periodic_tasks (name TEXT PRIMARY KEY, next_at REAL NOT NULL DEFAULT -9e999) WITHOUT ROWID;

-- What the owner of lanes knows about them and what no row says. Written with its heartbeat when it changed.
CREATE TABLE worker_status (worker BLOB PRIMARY KEY, at REAL NOT NULL, status BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE alerts (
  id BLOB PRIMARY KEY, kind TEXT NOT NULL, account TEXT, endpoint_id BLOB, subject TEXT NOT NULL, message TEXT NOT NULL,
  value REAL, threshold REAL, since REAL NOT NULL, resolved_at REAL, clear_looks INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE UNIQUE INDEX alerts_firing ON alerts (kind, subject) WHERE resolved_at IS NULL;
CREATE INDEX alerts_resolved ON alerts (resolved_at) WHERE resolved_at IS NOT NULL;

-- Own events to publish, written in the transaction of what they tell.
CREATE TABLE announcements (
  n INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, account TEXT, subject BLOB, detail TEXT, at REAL NOT NULL);

-- Mail and chat messages to send.
CREATE TABLE notifications (
  n INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, recipient TEXT NOT NULL, kind TEXT NOT NULL,
  account TEXT, detail TEXT NOT NULL, at REAL NOT NULL, due_at REAL NOT NULL, tries INTEGER NOT NULL DEFAULT 0);
CREATE INDEX notifications_due ON notifications (due_at);
