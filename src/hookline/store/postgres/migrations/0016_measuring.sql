-- Latencies, counts, what owners know, periodic tasks, alerts, own events and notifications (docs/measuring.md).
-- serves: 0008

-- Attempts that were settled and are not in `latency_minutes` yet, one row for each batch of a worker.
CREATE TABLE latency_log (
  worker uuid NOT NULL, n bigint NOT NULL, minute timestamptz NOT NULL, late int[], samples bytea NOT NULL,
  PRIMARY KEY (worker, n))
  WITH (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE latency_log ALTER COLUMN samples SET STORAGE EXTERNAL;

CREATE SEQUENCE latency_sources;  -- one number for each life of a worker, and one for each fold of a dead worker's log

CREATE TABLE latency_minutes (
  endpoint_id uuid NOT NULL, at timestamptz NOT NULL, source bigint NOT NULL, seconds float8 NOT NULL,
  attempts int NOT NULL, accepted int NOT NULL, response bytea NOT NULL, rest bytea NOT NULL,
  PRIMARY KEY (endpoint_id, at, source))
  WITH (fillfactor = 70);

CREATE TABLE latency_hours (
  endpoint_id uuid NOT NULL, at timestamptz NOT NULL, seconds float8 NOT NULL,
  attempts int NOT NULL, accepted int NOT NULL, response bytea NOT NULL, rest bytea NOT NULL,
  PRIMARY KEY (endpoint_id, at));

-- The percentiles of the last 24 hours, for lists and for whoever asks whether an endpoint is slow.
CREATE TABLE latency_days (
  endpoint_id uuid PRIMARY KEY, as_of timestamptz NOT NULL, attempts bigint NOT NULL, accepted bigint NOT NULL,
  p50 float8, p95 float8, p99 float8)
  WITH (fillfactor = 70);
CREATE INDEX latency_days_p95 ON latency_days (p95 DESC, endpoint_id DESC) WHERE p95 IS NOT NULL;

-- What waits and what is dead, for each endpoint that has any. Counted again and again by one process for all.
CREATE TABLE endpoint_counts (
  endpoint_id uuid PRIMARY KEY, pending int NOT NULL, awaiting_retry int NOT NULL, dead int NOT NULL,
  failed_last_hour int NOT NULL)
  WITH (fillfactor = 50);

CREATE TABLE health_samples (
  at timestamptz PRIMARY KEY, took float8 NOT NULL, pending bigint NOT NULL, awaiting_retry bigint NOT NULL,
  dead bigint NOT NULL, failed_last_hour bigint NOT NULL, oldest_pending timestamptz, oldest_due timestamptz);

-- What one process does for all: whoever locks the row does it.
CREATE TABLE periodic_tasks (name text PRIMARY KEY, next_at timestamptz NOT NULL DEFAULT '-infinity')
  WITH (fillfactor = 10);

-- What the owner of lanes knows about them and what no row says. Written with its heartbeat when it changed.
CREATE TABLE worker_status (worker uuid PRIMARY KEY, at timestamptz NOT NULL, status bytea NOT NULL)
  WITH (fillfactor = 20);
ALTER TABLE worker_status ALTER COLUMN status SET STORAGE EXTERNAL;

CREATE TABLE alerts (
  id uuid PRIMARY KEY, kind text NOT NULL, account text, endpoint_id uuid, subject text NOT NULL, message text NOT NULL,
  value float8, threshold float8, since timestamptz NOT NULL, resolved_at timestamptz, clear_looks smallint NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX alerts_firing ON alerts (kind, subject) WHERE resolved_at IS NULL;
CREATE INDEX alerts_resolved ON alerts (resolved_at) WHERE resolved_at IS NOT NULL;

-- Own events to publish, written in the transaction of what they tell.
CREATE TABLE announcements (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, account text, subject uuid, detail text,
  at timestamptz NOT NULL);

-- Mail and chat messages to send.
CREATE TABLE notifications (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, channel text NOT NULL, recipient text NOT NULL, kind text NOT NULL,
  account text, detail text NOT NULL, at timestamptz NOT NULL, due_at timestamptz NOT NULL, tries smallint NOT NULL DEFAULT 0);
CREATE INDEX notifications_due ON notifications (due_at);
