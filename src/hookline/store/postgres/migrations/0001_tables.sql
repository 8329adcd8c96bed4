-- Everything durable, in a schema of its own: hookline may share a database with the application that uses it.
-- The session's search_path is that schema.

-- An event's id ends in 20 zero bits, and its deliveries are that id plus their ordinal. Both functions are a
-- single immutable expression, so that the planner puts them in line and still sees an index lookup.
CREATE FUNCTION event_of(delivery uuid) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT (left(delivery::text, 31) || '00000')::uuid $$;
CREATE FUNCTION last_delivery_of(event uuid) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT (left(event::text, 31) || 'fffff')::uuid $$;

CREATE TABLE events (
  id uuid PRIMARY KEY,
  created_at timestamptz NOT NULL,
  deliver_at timestamptz,
  account text NOT NULL,
  type text NOT NULL,
  idempotency_key text,
  payload bytea NOT NULL
);
-- Payloads are read far more often than they are worth compressing, and leave as they came.
ALTER TABLE events ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE TABLE idempotency (
  account text NOT NULL,
  key text NOT NULL,
  event_id uuid NOT NULL,
  digest bytea NOT NULL,
  expires_at timestamptz,               -- null: for as long as the event is kept
  PRIMARY KEY (account, key)
);

-- Columns from wide to narrow, so that no row pays for alignment. No foreign keys here: they halve the rate.
CREATE TABLE deliveries (
  id uuid PRIMARY KEY,                  -- the event's id and the ordinal
  endpoint_id uuid NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,   -- no cache: it orders publishes
  due_at timestamptz NOT NULL,
  done_at timestamptz,
  death_at timestamptz,
  replays integer NOT NULL DEFAULT 0,
  attempts smallint NOT NULL DEFAULT 0,
  marks smallint NOT NULL DEFAULT 0,
  death_attempts smallint,
  last_status smallint,
  state text NOT NULL DEFAULT 'pending',
  queue text NOT NULL,
  last_error text,
  reason text,
  death_reason text
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX deliveries_ready   ON deliveries (endpoint_id, seq)        WHERE state = 'pending' AND queue = 'ready';
CREATE INDEX deliveries_timed   ON deliveries (endpoint_id, due_at, id) WHERE state = 'pending' AND queue = 'timed';
CREATE INDEX deliveries_settled ON deliveries (endpoint_id, seq)        WHERE state <> 'pending';
CREATE INDEX deliveries_dead    ON deliveries (endpoint_id, id)         WHERE state = 'dead';

-- Only what differs from an ordinary accepted attempt takes room: the rest is null.
CREATE TABLE attempts (
  delivery_id uuid NOT NULL,
  id uuid NOT NULL,
  at timestamptz NOT NULL,
  duration double precision NOT NULL,
  replays integer NOT NULL,
  number smallint NOT NULL,
  status smallint,
  late boolean NOT NULL,
  response_truncated boolean NOT NULL,
  outcome text NOT NULL,
  dns double precision,
  connect double precision,
  tls double precision,
  first_byte double precision,
  error text,
  error_detail text,
  request_url text,
  request_headers text,
  response_headers text,
  response_body bytea,
  final_url text,
  PRIMARY KEY (delivery_id, id)
);

CREATE TABLE workers (
  id uuid PRIMARY KEY,
  started_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,         -- for people: no timestamp decides who is alive
  buried_at timestamptz,
  beat bigint NOT NULL DEFAULT 0,
  pid integer NOT NULL,
  lanes integer NOT NULL DEFAULT 0,
  in_flight integer NOT NULL DEFAULT 0,
  free_slots integer NOT NULL DEFAULT 0,
  waiting integer NOT NULL DEFAULT 0,
  draining boolean NOT NULL DEFAULT false,
  kind text NOT NULL,
  host text NOT NULL,
  version text NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE lanes (
  endpoint_id uuid PRIMARY KEY,
  owner uuid,
  epoch bigint NOT NULL DEFAULT 0,
  wake_at timestamptz NOT NULL DEFAULT 'infinity',      -- free: not later than the first moment it could send
  hold_until timestamptz NOT NULL DEFAULT '-infinity',
  opened_at timestamptz,
  probe_until timestamptz,
  tokens_at timestamptz,
  applied bigint NOT NULL DEFAULT 0,                    -- the last change its owner carried out
  head uuid,
  tokens real,
  cooldown_s integer,
  failures smallint NOT NULL DEFAULT 0,
  paused boolean NOT NULL DEFAULT false,                -- written by operators only, like `deleted`
  deleted boolean NOT NULL DEFAULT false,               -- a tombstone: its pending rows are being cancelled
  suspect boolean NOT NULL DEFAULT false,
  strict boolean NOT NULL DEFAULT false,
  circuit text NOT NULL DEFAULT 'closed',
  reason text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lanes_free    ON lanes (wake_at)     WHERE owner IS NULL AND NOT paused AND wake_at < 'infinity';
CREATE INDEX lanes_owned   ON lanes (owner)       WHERE owner IS NOT NULL;
CREATE INDEX lanes_deleted ON lanes (endpoint_id) WHERE deleted;

CREATE TABLE endpoints (
  id uuid PRIMARY KEY,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  timeout double precision NOT NULL,
  max_in_flight integer NOT NULL,
  enabled boolean NOT NULL,
  account text NOT NULL,
  url text NOT NULL,
  events text[] NOT NULL,
  secret text NOT NULL,
  signing text NOT NULL,
  description text NOT NULL,
  disabled_reason text,
  headers text NOT NULL,                -- JSON as text: jsonb would reorder it and cannot hold \u0000
  metadata text NOT NULL                -- likewise
);
CREATE INDEX endpoints_account ON endpoints (account, id);

CREATE TABLE changes (
  n bigint PRIMARY KEY,
  endpoint_id uuid NOT NULL,
  at timestamptz NOT NULL,
  kind text NOT NULL
);
CREATE INDEX changes_endpoint ON changes (endpoint_id, n);

-- One row, locked by whoever writes a change: that is what makes the numbers commit in order.
CREATE TABLE change_counter (
  n bigint NOT NULL,                    -- of the last change
  catalogue bigint NOT NULL             -- of the last change that accept must know: of kind 'endpoint'
) WITH (fillfactor = 10);
CREATE UNIQUE INDEX change_counter_one ON change_counter ((true));
INSERT INTO change_counter (n, catalogue) VALUES (0, 0);
