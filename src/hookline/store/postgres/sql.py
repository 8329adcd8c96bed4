"""Which statements does the PostgreSQL store run?

In the order of the contract, under the names the SQLite store uses. Batches come as arrays, one for each column.
Values of index predicates are literals: bound, a generic plan cannot use the partial index. Times are bound and
read as seconds (`to_timestamp`, `date_part`): half the cost of a codec for timestamptz in Python. Locks are taken
in one order everywhere: workers, deliveries, lanes, changes.
"""

MIGRATIONS_LOCK = "SELECT pg_advisory_lock($1)"
MIGRATIONS_CREATE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())
"""
MIGRATIONS_EXIST = "SELECT to_regclass('schema_migrations') IS NOT NULL"
MIGRATIONS_READ = "SELECT number, name, checksum FROM schema_migrations ORDER BY number"
MIGRATIONS_RECORD = "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)"

# --- accepting -------------------------------------------------------------------------------------------

# Differs from sqlite: one statement. The insert into `idempotency` waits for a publisher that is about to commit
# the same key, in key order, so that two batches cannot wait for each other.
ACCEPT = """
WITH fresh AS MATERIALIZED (SELECT n FROM change_counter WHERE catalogue <= $1),
p AS MATERIALIZED (
  SELECT p.* FROM fresh, unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::float8[], $8::float8[], $9::bytea[])
    WITH ORDINALITY AS p (id, account, type, key, payload, created_at, deliver_at, digest, n)),
keyed AS (
  INSERT INTO idempotency (account, key, event_id, digest)
  SELECT account, key, id, digest FROM p WHERE key IS NOT NULL ORDER BY account, key
  ON CONFLICT (account, key) DO NOTHING RETURNING event_id),
stored AS (
  INSERT INTO events (id, account, type, idempotency_key, payload, created_at, deliver_at)
  SELECT id, account, type, key, payload, to_timestamp(created_at), to_timestamp(deliver_at) FROM p
  WHERE key IS NULL OR id IN (SELECT event_id FROM keyed)
  ON CONFLICT (id) DO NOTHING RETURNING id),
queued AS (
  INSERT INTO deliveries (id, endpoint_id, due_at, queue)
  SELECT d.id, d.endpoint_id, to_timestamp(greatest(p.deliver_at, $13)),
    CASE WHEN p.deliver_at > $13 THEN 'timed' ELSE 'ready' END
  FROM unnest($10::uuid[], $11::uuid[], $12::int[]) WITH ORDINALITY AS d (id, endpoint_id, publication, n)
  JOIN p ON p.n = d.publication
  WHERE p.id IN (SELECT id FROM stored)
  ORDER BY d.n RETURNING seq)
SELECT NOT EXISTS (SELECT FROM fresh) AS stale, (SELECT min(seq) FROM queued) AS first_seq,
  ARRAY(SELECT p.n::int FROM p WHERE p.id NOT IN (SELECT id FROM stored)) AS absent
"""

# A statement of its own, after the commit: only a new snapshot sees what the insert waited for.
READ_PRIORS = """
SELECT a.id, f.event_id, e.type, date_part('epoch', e.created_at) AS created_at, i.digest, d.endpoints, d.first_seq
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS a (id, account, key)
LEFT JOIN idempotency i ON i.account = a.account AND i.key = a.key
CROSS JOIN LATERAL (SELECT coalesce(i.event_id, a.id) AS event_id) f
JOIN events e ON e.id = f.event_id
CROSS JOIN LATERAL (
  SELECT coalesce(array_agg(d.endpoint_id ORDER BY d.id), '{}') AS endpoints, min(d.seq) AS first_seq
  FROM deliveries d WHERE d.id BETWEEN f.event_id AND last_delivery_of(f.event_id)) d
"""

# --- lanes -----------------------------------------------------------------------------------------------

# Burial locks this row FOR UPDATE: while a statement that begins with it runs, this worker stays alive, and once
# buried it does nothing more. A comparison alone is no fence: a take can commit between snapshot and write.
_ME = "me AS MATERIALIZED (SELECT id FROM workers WHERE id = $1 AND buried_at IS NULL FOR KEY SHARE)"

_TAKEN = """l.endpoint_id, l.epoch, date_part('epoch', l.wake_at) AS woke_at,
  date_part('epoch', l.hold_until) AS hold_until, l.suspect"""

# Differs from sqlite: others may be taking at this moment, and what they are taking is not worth waiting for.
TAKE = f"""
WITH {_ME},
free AS MATERIALIZED (
  SELECT endpoint_id FROM lanes
  WHERE owner IS NULL AND NOT paused AND wake_at < 'infinity' AND wake_at <= to_timestamp($2) AND EXISTS (SELECT FROM me)
  ORDER BY wake_at LIMIT $3 FOR UPDATE SKIP LOCKED)
UPDATE lanes l SET owner = $1, epoch = l.epoch + 1 FROM free WHERE l.endpoint_id = free.endpoint_id
RETURNING {_TAKEN}
"""

TAKE_THESE = f"""
WITH {_ME},
free AS MATERIALIZED (
  SELECT l.endpoint_id FROM me CROSS JOIN unnest($2::uuid[]) AS k (endpoint_id) JOIN lanes l USING (endpoint_id)
  WHERE l.owner IS NULL AND NOT l.paused AND l.hold_until <= to_timestamp($3)
  ORDER BY l.endpoint_id FOR UPDATE OF l SKIP LOCKED)
UPDATE lanes l SET owner = $1, epoch = l.epoch + 1 FROM free WHERE l.endpoint_id = free.endpoint_id
RETURNING {_TAKEN}
"""

# `NOT IN (SELECT unnest(..))` is hashed once; `<> ALL(..)` would be compared row by row under a generic plan.
LOAD = """
SELECT d.id, d.endpoint_id, d.queue, d.seq, date_part('epoch', d.due_at) AS due_at, d.attempts, d.replays, d.marks,
  e.type, e.idempotency_key, date_part('epoch', e.created_at) AS created_at,
  CASE WHEN length(e.payload) <= $8 THEN e.payload END AS payload
FROM unnest($1::uuid[], $2::int[], $3::int[], $4::bigint[], $5::float8[])
  WITH ORDINALITY AS o (endpoint_id, ready, timed, floor, due_floor, n)
CROSS JOIN LATERAL (
  (SELECT d.id, d.endpoint_id, d.queue, d.seq, d.due_at, d.attempts, d.replays, d.marks FROM deliveries d
   WHERE d.endpoint_id = o.endpoint_id AND d.state = 'pending' AND d.queue = 'ready' AND d.seq >= o.floor
     AND d.id NOT IN (SELECT unnest($6::uuid[]))
   ORDER BY d.seq LIMIT o.ready)
  UNION ALL
  (SELECT d.id, d.endpoint_id, d.queue, d.seq, d.due_at, d.attempts, d.replays, d.marks FROM deliveries d
   WHERE d.endpoint_id = o.endpoint_id AND d.state = 'pending' AND d.queue = 'timed'
     AND d.due_at BETWEEN to_timestamp(o.due_floor) AND to_timestamp($7)
     AND d.id NOT IN (SELECT unnest($6::uuid[]))
   ORDER BY d.due_at, d.id LIMIT o.timed)) d
JOIN events e ON e.id = event_of(d.id)
ORDER BY o.n, d.queue, CASE WHEN d.queue = 'ready' THEN d.seq END, d.due_at, d.id
"""

READ_PAYLOAD = "SELECT payload FROM events WHERE id = $1"

# Answers only what was not applied: a batch as it should be brings no rows back. Lanes are joined by epoch too, so
# that a lane lost and won again does not let in what was sent before. `IS NOT DISTINCT FROM` keeps the planner from
# the indexes on owner and endpoint: looked up by key, row by row, the join is linear whatever the statistics say.
SETTLE = f"""
WITH {_ME},
s AS MATERIALIZED (
  SELECT * FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::int[], $7::int[], $8::text[], $9::float8[], $10::text[],
    $11::float8[], $12::text[], $13::float8[], $14::int[], $15::text[], $16::text[],
    $17::float8[], $18::float8[], $19::float8[], $20::float8[],
    $21::text[], $22::text[], $23::text[], $24::bytea[], $25::bool[], $26::text[]) WITH ORDINALITY
  AS s (id, delivery_id, endpoint_id, epoch, number, replays, state, due_at, reason,
    at, outcome, duration, status, error, error_detail,
    dns, connect, tls, first_byte,
    request_url, request_headers, response_headers, response_body, response_truncated, final_url, n)),
done AS (
  UPDATE deliveries d SET state = s.state, attempts = s.number, marks = 0, reason = s.reason,
    queue = CASE WHEN s.state = 'pending' THEN 'timed' ELSE d.queue END,
    due_at = CASE WHEN s.state = 'pending' THEN to_timestamp(s.due_at) ELSE d.due_at END,
    done_at = CASE WHEN s.state = 'pending' THEN NULL ELSE to_timestamp($27) END,
    last_status = s.status, last_error = s.error
  FROM me, s JOIN lanes l ON l.endpoint_id = s.endpoint_id AND l.epoch = s.epoch
  WHERE l.owner IS NOT DISTINCT FROM me.id AND d.id = s.delivery_id AND d.endpoint_id IS NOT DISTINCT FROM s.endpoint_id
    AND d.state = 'pending' AND d.attempts = s.number - 1 AND d.replays = s.replays
  RETURNING s.id),
tried AS (
  INSERT INTO attempts (delivery_id, id, at, duration, replays, number, status, late, response_truncated, outcome,
    dns, connect, tls, first_byte, error, error_detail,
    request_url, request_headers, response_headers, response_body, final_url)
  SELECT s.delivery_id, s.id, to_timestamp(s.at), s.duration, s.replays, s.number, s.status,
    s.id NOT IN (SELECT id FROM done), coalesce(s.response_truncated, false), s.outcome,
    s.dns, s.connect, s.tls, s.first_byte, s.error, s.error_detail,
    s.request_url, s.request_headers, s.response_headers, s.response_body, s.final_url
  FROM s ON CONFLICT (delivery_id, id) DO NOTHING RETURNING id)
SELECT s.n::int - 1 AS n, s.id IN (SELECT id FROM tried) AS recorded FROM s WHERE s.id NOT IN (SELECT id FROM done)
"""

# Differs from sqlite: a statement of its own. The first write of the same attempt may still have been under way.
SETTLE_WAS = """
SELECT a.id, a.late FROM unnest($1::uuid[], $2::uuid[]) AS k (delivery_id, id) JOIN attempts a USING (delivery_id, id)
"""

RELEASE = f"""
WITH {_ME},
mine AS MATERIALIZED (
  SELECT l.endpoint_id, r.wake_at
  FROM me CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::float8[]) AS r (endpoint_id, epoch, wake_at)
  JOIN lanes l ON l.endpoint_id = r.endpoint_id AND l.epoch = r.epoch AND l.owner IS NOT DISTINCT FROM me.id
  ORDER BY l.endpoint_id FOR NO KEY UPDATE OF l)
UPDATE lanes l SET owner = NULL, wake_at = to_timestamp(mine.wake_at), suspect = false
FROM mine WHERE l.endpoint_id = mine.endpoint_id
RETURNING l.endpoint_id
"""

# When the rows of lane `k` ask for it. `$2` is now.
_DUE = """
  CASE WHEN EXISTS (SELECT FROM deliveries d
                    WHERE d.endpoint_id = k.endpoint_id AND d.state = 'pending' AND d.queue = 'ready') THEN to_timestamp($2)
  ELSE coalesce((SELECT d.due_at FROM deliveries d
                 WHERE d.endpoint_id = k.endpoint_id AND d.state = 'pending' AND d.queue = 'timed'
                 ORDER BY d.due_at LIMIT 1), 'infinity') END AS due"""

# Lanes that are awake already or owned are left out by the snapshot, without a lock: whoever frees such a lane later
# rechecks it later, with a snapshot that has our rows. The others are waited for, never skipped, in one order.
_LOWER = """
asleep AS MATERIALIZED (
  SELECT l.endpoint_id, n.due FROM n JOIN lanes l USING (endpoint_id)
  WHERE l.owner IS NULL AND l.wake_at > greatest(n.due, l.hold_until)
  ORDER BY l.endpoint_id FOR NO KEY UPDATE OF l)
UPDATE lanes l SET wake_at = greatest(asleep.due, l.hold_until) FROM asleep WHERE l.endpoint_id = asleep.endpoint_id"""

WAKE = f"""
WITH n AS MATERIALIZED (
  SELECT k.endpoint_id, {_DUE}
  FROM unnest($1::uuid[]) AS k (endpoint_id) JOIN lanes f USING (endpoint_id)
  WHERE f.owner IS NULL AND f.wake_at > to_timestamp($2)),
{_LOWER}
"""

# --- workers ---------------------------------------------------------------------------------------------

REGISTER = """
INSERT INTO workers (id, kind, host, pid, version, started_at, seen_at, beat, lanes, in_flight, free_slots, waiting, draining)
VALUES ($1, $2, $3, $4, $5, to_timestamp($6), to_timestamp($7), $8, $9, $10, $11, $12, $13)
ON CONFLICT (id) DO NOTHING
"""

BEAT = """
UPDATE workers SET beat = beat + 1, seen_at = to_timestamp($2),
  lanes = $3, in_flight = $4, free_slots = $5, waiting = $6, draining = $7
WHERE id = $1 AND buried_at IS NULL
RETURNING id
"""

PULSE_WORKERS = """
SELECT date_part('epoch', now()) AS now, w.id, w.kind, w.host, w.pid, w.version,
  date_part('epoch', w.started_at) AS started_at, date_part('epoch', w.seen_at) AS seen_at, w.beat,
  w.lanes, w.in_flight, w.free_slots, w.waiting, w.draining, w.buried_at IS NOT NULL AS buried
FROM (VALUES (true)) AS always LEFT JOIN workers w ON true
ORDER BY w.id
"""

PULSE_CHANGES = "SELECT n, endpoint_id, kind FROM changes WHERE n > $1 ORDER BY n LIMIT 1000"

OWNED = f"SELECT {_TAKEN} FROM lanes l WHERE l.owner = $1 ORDER BY l.endpoint_id"

# FOR UPDATE waits for the statements that began with this worker's fence, then compares the beat as it is.
BURY = """
WITH w AS MATERIALIZED (SELECT id, beat, buried_at FROM workers WHERE id = $1 FOR UPDATE),
dead AS (
  UPDATE workers SET buried_at = to_timestamp($3) FROM w
  WHERE workers.id = w.id AND w.buried_at IS NULL AND w.beat = $2
  RETURNING workers.id)
SELECT w.buried_at IS NOT NULL OR EXISTS (SELECT FROM dead) AS buried FROM w
"""

# Waits for row locks: a lane skipped because an operator is just pausing it would keep its dead owner.
FREE = """
WITH mine AS MATERIALIZED (
  SELECT endpoint_id FROM lanes
  WHERE owner = $1 AND NOT EXISTS (SELECT FROM workers WHERE id = $1 AND buried_at IS NULL)
  ORDER BY endpoint_id LIMIT $3 FOR UPDATE)
UPDATE lanes l SET owner = NULL, epoch = l.epoch + 1, wake_at = 'infinity', suspect = true,
  tokens = 0, tokens_at = to_timestamp($2)
FROM mine WHERE l.endpoint_id = mine.endpoint_id
RETURNING l.endpoint_id
"""

SWEEP = f"""
WITH chunk AS MATERIALIZED (
  SELECT endpoint_id, owner, wake_at FROM lanes WHERE endpoint_id > $1 ORDER BY endpoint_id LIMIT $3),
n AS MATERIALIZED (SELECT k.endpoint_id, {_DUE} FROM chunk k WHERE k.owner IS NULL AND k.wake_at > to_timestamp($2)),
lowered AS (WITH {_LOWER})
SELECT (SELECT count(*) FROM chunk) AS looked_at, (SELECT endpoint_id FROM chunk ORDER BY endpoint_id DESC LIMIT 1) AS last
"""

# Differs from sqlite: two statements, so that the second one's snapshot has every take that held the fence.
LOCK_WORKER = "SELECT id FROM workers WHERE id = $1 FOR UPDATE"
RETIRE = "DELETE FROM workers WHERE id = $1 AND NOT EXISTS (SELECT FROM lanes WHERE owner = $1)"

# --- operators -------------------------------------------------------------------------------------------

CREATE_ENDPOINT = """
INSERT INTO endpoints (id, account, url, events, secret, signing, description, enabled, disabled_reason, headers, metadata,
  timeout, max_in_flight, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, to_timestamp($14), to_timestamp($15))
ON CONFLICT (id) DO NOTHING RETURNING id
"""
CREATE_LANE = "INSERT INTO lanes (endpoint_id, paused) VALUES ($1, $2) ON CONFLICT (endpoint_id) DO NOTHING"

UPDATE_ENDPOINT = """
UPDATE endpoints SET account = $2, url = $3, events = $4, secret = $5, signing = $6, description = $7, enabled = $8,
  disabled_reason = $9, headers = $10, metadata = $11, timeout = $12, max_in_flight = $13,
  created_at = to_timestamp($14), updated_at = to_timestamp($15)
WHERE id = $1 RETURNING id
"""
PAUSE_LANE = "UPDATE lanes SET paused = $2 WHERE endpoint_id = $1 AND paused <> $2"

DELETE_ENDPOINT = "DELETE FROM endpoints WHERE id = $1 RETURNING id"
DELETE_LANE = "UPDATE lanes SET paused = true, deleted = true WHERE endpoint_id = $1"

CANCEL_DELETED = """
WITH gone AS MATERIALIZED (
  SELECT d.id FROM lanes l CROSS JOIN LATERAL (
    (SELECT d.id FROM deliveries d
     WHERE d.endpoint_id = l.endpoint_id AND d.state = 'pending' AND d.queue = 'ready' ORDER BY d.seq LIMIT $1)
    UNION ALL
    (SELECT d.id FROM deliveries d
     WHERE d.endpoint_id = l.endpoint_id AND d.state = 'pending' AND d.queue = 'timed' ORDER BY d.due_at, d.id LIMIT $1)) d
  WHERE l.deleted LIMIT $1)
UPDATE deliveries d SET state = 'cancelled', reason = 'endpoint_deleted', done_at = to_timestamp($2), marks = 0
FROM gone WHERE d.id = gone.id AND d.state = 'pending'
RETURNING d.endpoint_id
"""

RETRY = """
UPDATE deliveries SET due_at = least(due_at, to_timestamp($2)) WHERE id = $1 AND state = 'pending' RETURNING endpoint_id
"""

CANCEL = """
UPDATE deliveries SET state = 'cancelled', reason = 'cancelled', done_at = to_timestamp($2), marks = 0
WHERE id = $1 AND state = 'pending' RETURNING endpoint_id
"""

REDRIVE = """
UPDATE deliveries SET state = 'pending', queue = 'timed', due_at = to_timestamp($2), done_at = NULL, reason = NULL,
  attempts = 0, marks = 0, replays = replays + 1,
  death_reason = CASE WHEN state = 'dead' THEN reason ELSE death_reason END,
  death_at = CASE WHEN state = 'dead' THEN done_at ELSE death_at END,
  death_attempts = CASE WHEN state = 'dead' THEN attempts ELSE death_attempts END
WHERE id = $1 AND state <> 'pending' RETURNING endpoint_id
"""

DISCARD = """
UPDATE deliveries SET state = 'cancelled', reason = 'discarded', done_at = to_timestamp($2)
WHERE id = $1 AND state = 'dead' RETURNING endpoint_id
"""

READ_STATE = "SELECT state FROM deliveries WHERE id = $1"

# Differs from sqlite: counts and writes at once. The counter's row stays locked until the commit: numbers are seen in
# the order they were given out.
WRITE_CHANGE = """
WITH c AS (
  UPDATE change_counter SET n = n + 1, catalogue = CASE WHEN $2 = 'endpoint' THEN n + 1 ELSE catalogue END RETURNING n)
INSERT INTO changes (n, endpoint_id, kind, at) SELECT n, $1, $2, to_timestamp($3) FROM c
"""

# --- reading ---------------------------------------------------------------------------------------------

_ENDPOINT = """e.id, e.account, e.url, e.events, e.secret, e.signing, e.description, e.enabled, e.disabled_reason,
  e.headers, e.metadata, e.timeout, e.max_in_flight,
  date_part('epoch', e.created_at) AS created_at, date_part('epoch', e.updated_at) AS updated_at"""

CATALOGUE = f"SELECT c.n, {_ENDPOINT} FROM change_counter c LEFT JOIN endpoints e ON true ORDER BY e.id"

ENDPOINTS_BY_ID = f"SELECT {_ENDPOINT} FROM endpoints e WHERE e.id = ANY($1::uuid[]) ORDER BY e.id"

# Sessions that read lists plan each call for its own values, so that a filter that was not given costs nothing.
LIST_ENDPOINTS = f"""
SELECT {_ENDPOINT} FROM endpoints e
WHERE ($1::text IS NULL OR e.account = $1) AND ($2::bool IS NULL OR e.enabled = $2) AND ($3::uuid IS NULL OR e.id < $3)
ORDER BY e.id DESC LIMIT $4
"""

READ_EVENT = """
SELECT id, account, type, payload, idempotency_key, date_part('epoch', deliver_at) AS deliver_at,
  date_part('epoch', created_at) AS created_at
FROM events WHERE id = $1
"""

_DELIVERY = """
SELECT d.id, e.id AS event_id, d.endpoint_id, e.account, e.type AS event_type, d.state, d.queue, d.seq, d.attempts, d.replays,
  date_part('epoch', d.due_at) AS due_at, date_part('epoch', e.created_at) AS created_at,
  date_part('epoch', d.done_at) AS done_at, d.reason, d.last_status, d.last_error,
  a.error_detail AS last_error_detail, a.duration AS last_duration,
  d.death_reason, date_part('epoch', d.death_at) AS death_at, d.death_attempts
FROM deliveries d JOIN events e ON e.id = event_of(d.id)
LEFT JOIN LATERAL (
  SELECT a.error_detail, a.duration FROM attempts a WHERE a.delivery_id = d.id AND NOT a.late
  ORDER BY a.replays DESC, a.number DESC LIMIT 1) a ON true"""

READ_DELIVERY = f"{_DELIVERY} WHERE d.id = $1"

LIST_DELIVERIES = f"""{_DELIVERY}
WHERE ($1::text IS NULL OR d.state = $1) AND ($2::text IS NULL OR e.account = $2)
  AND ($3::uuid IS NULL OR d.endpoint_id = $3)
  AND ($4::uuid IS NULL OR d.id BETWEEN $4 AND last_delivery_of($4))
  AND ($5::text IS NULL OR e.type = $5)
  AND ($6::float8 IS NULL OR e.created_at >= to_timestamp($6)) AND ($7::float8 IS NULL OR e.created_at < to_timestamp($7))
  AND ($8::uuid IS NULL OR d.id < $8)
ORDER BY d.id DESC LIMIT $9
"""

READ_ATTEMPTS = """
SELECT id, delivery_id, number, replays, date_part('epoch', at) AS at, outcome, duration, status, error, error_detail,
  dns, connect, tls, first_byte, request_url, request_headers, response_headers, response_body, response_truncated,
  final_url, late
FROM attempts WHERE delivery_id = $1 ORDER BY at, id
"""

COUNTS = "SELECT state, count(*) AS n FROM deliveries GROUP BY state"
