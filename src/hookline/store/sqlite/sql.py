"""Holds the statements of the SQLite store.

They are in the order of the contract, under the same names as in the PostgreSQL store. `{rows}` stands for as many rows
of placeholders as `bulk` binds. A list of ids is one BLOB of 16-byte pieces, taken apart by `PIECES`, so that one
prepared statement fits every length. Words in index predicates are literals, or the partial index is not used.

In rows bound in batches a missing value is a placeholder that cannot be a real value, and `nullif` makes it NULL:
sqlite3 takes 0.4 µs to bind a None, ten times as long as any number or text (see `driver/values.py`).
"""

from hookline.model import OWN_ACCOUNT
from hookline.store.sqlite.columns import ENDPOINT_COLUMNS

# `:ids` is the BLOB; the names around it belong to each statement.
PIECES = """
places (i) AS (SELECT 1 WHERE length(:ids) > 0 UNION ALL SELECT i + 16 FROM places WHERE i + 16 < length(:ids)),
asked (id) AS (SELECT substr(:ids, i, 16) FROM places)
"""

# --- life ------------------------------------------------------------------------------------------------

MIGRATIONS_CREATE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at REAL NOT NULL)
"""
MIGRATIONS_EXIST = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'"
MIGRATIONS_READ = "SELECT number, name, checksum FROM schema_migrations ORDER BY number"
MIGRATIONS_RECORD = "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (:number, :name, :checksum, :at)"
SERVES_EXISTS = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_serves'"
SERVES_READ = "SELECT level FROM schema_serves"
SERVES_RAISE = "UPDATE schema_serves SET level = :level WHERE level < :level"
NEWEST_MIGRATION = "SELECT name FROM schema_migrations ORDER BY number DESC LIMIT 1"

# --- accepting -------------------------------------------------------------------------------------------

ACCEPT_IS_STALE = "SELECT catalogue > :catalogue FROM change_counter"
READ_PRIORS = """
WITH u (account, key) AS (VALUES {rows})
SELECT u.account, u.key, k.event_id, e.type, e.created_at, k.digest
FROM u CROSS JOIN idempotency k ON k.account = u.account AND k.key = u.key CROSS JOIN events e ON e.id = k.event_id
"""
READ_PRIOR_ENDPOINTS = "SELECT endpoint_id FROM deliveries WHERE id BETWEEN :first AND :last ORDER BY id"
ACCEPT_LAST = """
SELECT (SELECT coalesce(max(rowid), 0) FROM events), (SELECT coalesce(max(seq), 0) FROM deliveries)
"""
ACCEPT_EVENTS = """
WITH u (id, account, type, payload, idempotency_key, deliver_at, created_at) AS (VALUES {rows})
INSERT OR IGNORE INTO events (id, account, type, payload, idempotency_key, deliver_at, created_at)
SELECT id, account, type, payload, nullif(idempotency_key, char(0)), nullif(deliver_at, -9e999), created_at FROM u
"""
# Separate from the insert, which is enough for nearly every event: few come from another hookline.
ACCEPT_HOPS = "UPDATE events SET hops = :hops WHERE id = :id"
ACCEPT_TRACES = "UPDATE events SET trace = :trace WHERE id = :id"
ACCEPT_WAS = (
    f"WITH RECURSIVE {PIECES} SELECT id FROM events WHERE id IN (SELECT id FROM asked) AND rowid <= :last"
)
ACCEPT_FIRST_SEQ = "SELECT min(seq) FROM deliveries WHERE id BETWEEN :first AND :last"
ACCEPT_DELIVERIES = "INSERT INTO deliveries (id, endpoint_id, due_at, queue) VALUES {rows}"
ACCEPT_KEYS = "INSERT OR IGNORE INTO idempotency (account, key, event_id, digest) VALUES {rows}"

TRY_ACCEPT = "UPDATE clock SET at = :now WHERE at < :now"

# --- lanes -----------------------------------------------------------------------------------------------

CIRCUIT_COLUMNS = (
    "circuit, failures, slices, cooldown, opened_at, probe_at, reason, last_success_at, last_failure_at"
)
IS_RESET = """EXISTS (
  SELECT 1 FROM changes c WHERE c.endpoint_id = lanes.endpoint_id AND c.kind = 'reset' AND c.n > lanes.applied)"""
TAKEN = f"""endpoint_id, epoch, wake_at, hold_until, suspect, head, tokens, tokens_at, applied,
  {IS_RESET}, rest_until, {CIRCUIT_COLUMNS}"""

# Differs from postgres: no SKIP LOCKED; writers are serial, so no other worker can be taking these lanes.
TAKE = f"""
UPDATE lanes SET owner = :worker, epoch = epoch + 1
WHERE endpoint_id IN (
    SELECT endpoint_id FROM lanes
    WHERE owner IS NULL AND paused = 0 AND wake_at < 9e999 AND wake_at <= :now
    ORDER BY wake_at LIMIT :limit)
  AND EXISTS (SELECT 1 FROM workers WHERE id = :worker AND buried_at IS NULL)
RETURNING {TAKEN}
"""
TAKE_THESE = f"""
WITH RECURSIVE {PIECES}
UPDATE lanes SET owner = :worker, epoch = epoch + 1
WHERE endpoint_id IN (SELECT id FROM asked) AND owner IS NULL AND paused = 0 AND hold_until <= :now
  AND EXISTS (SELECT 1 FROM workers WHERE id = :worker AND buried_at IS NULL)
RETURNING {TAKEN}
"""
# Differs from postgres: a statement of its own, in the same transaction; nobody else writes between the two.
COUNT_COPIES = f"""
WITH RECURSIVE {PIECES}
SELECT d.endpoint_id, count(*) FROM asked CROSS JOIN deliveries d ON d.id = asked.id
WHERE d.state = 'pending' AND d.attempts = 0 AND d.replays = 0 GROUP BY d.endpoint_id
"""

# Differs from postgres: there is no LATERAL, and LIMIT cannot name a column. Each queue is walked from row to row
# instead, one index search a row, so that every lane gets exactly as many as it has room for. An event is found as the
# last one not above the delivery's id (exact: an event's id ends in 20 zero bits). A function of ours would need the
# interpreter's lock, once a row.
LOAD = """
WITH RECURSIVE
packed (ids) AS (VALUES (?)),
places (i) AS (SELECT 1 FROM packed WHERE length(ids) > 0
               UNION ALL SELECT i + 16 FROM places, packed WHERE i + 16 < length(ids)),
known (id) AS MATERIALIZED (SELECT substr(ids, i, 16) FROM packed, places),
wanted (endpoint_id, ready, timed, floor, due_floor, now) AS (VALUES {rows}),
ready (endpoint_id, seq, more) AS (
  SELECT w.endpoint_id, d.seq, w.ready - 1
  FROM wanted w CROSS JOIN deliveries d ON d.seq = (
    SELECT n.seq FROM deliveries n
    WHERE n.endpoint_id = w.endpoint_id AND n.state = 'pending' AND n.queue = 'ready' AND n.seq >= w.floor
      AND n.id NOT IN (SELECT id FROM known)
    ORDER BY n.seq LIMIT 1)
  WHERE w.ready > 0
  UNION ALL
  SELECT r.endpoint_id, d.seq, r.more - 1
  FROM ready r CROSS JOIN deliveries d ON d.seq = (
    SELECT n.seq FROM deliveries n
    WHERE n.endpoint_id = r.endpoint_id AND n.state = 'pending' AND n.queue = 'ready' AND n.seq > r.seq
      AND n.id NOT IN (SELECT id FROM known)
    ORDER BY n.seq LIMIT 1)
  WHERE r.more > 0),
timed (endpoint_id, seq, due_at, id, now, more) AS (
  SELECT w.endpoint_id, d.seq, d.due_at, d.id, w.now, w.timed - 1
  FROM wanted w CROSS JOIN deliveries d ON d.seq = (
    SELECT n.seq FROM deliveries n
    WHERE n.endpoint_id = w.endpoint_id AND n.state = 'pending' AND n.queue = 'timed'
      AND n.due_at >= w.due_floor AND n.due_at <= w.now AND n.id NOT IN (SELECT id FROM known)
    ORDER BY n.due_at, n.id LIMIT 1)
  WHERE w.timed > 0
  UNION ALL
  SELECT t.endpoint_id, d.seq, d.due_at, d.id, t.now, t.more - 1
  FROM timed t CROSS JOIN deliveries d ON d.seq = (
    SELECT n.seq FROM deliveries n
    WHERE n.endpoint_id = t.endpoint_id AND n.state = 'pending' AND n.queue = 'timed'
      AND (n.due_at, n.id) > (t.due_at, t.id) AND n.due_at <= t.now AND n.id NOT IN (SELECT id FROM known)
    ORDER BY n.due_at, n.id LIMIT 1)
  WHERE t.more > 0)
SELECT d.id, d.endpoint_id, d.queue, d.seq, d.due_at, d.attempts, d.replays, d.marks,
       e.type, e.idempotency_key, e.created_at, CASE WHEN length(e.payload) <= 16384 THEN e.payload END,
       coalesce(e.hops, 0), length(e.payload), e.trace
FROM (SELECT seq FROM ready UNION ALL SELECT seq FROM timed) found
CROSS JOIN deliveries d ON d.seq = found.seq
CROSS JOIN events e ON e.rowid = (SELECT x.rowid FROM events x WHERE x.id <= d.id ORDER BY x.id DESC LIMIT 1)
"""
READ_PAYLOAD = "SELECT payload FROM events WHERE id = :id"

# The fence is the join: a worker that is buried, or does not own the lane in that epoch, matches no row. The endpoint
# is compared too, so that an attempt can settle only its own delivery. The plus keeps the search on the index by id,
# where rows that are settled together lie together.
SETTLE_DELIVERIES = """
WITH me (id) AS (SELECT id FROM workers WHERE id = ? AND buried_at IS NULL),
u (delivery_id, endpoint_id, epoch, number, replays, state, due_at, done_at, reason, status, error) AS (VALUES {rows})
UPDATE deliveries SET
  state = u.state, attempts = u.number, marks = 0,
  done_at = nullif(u.done_at, -9e999), reason = nullif(u.reason, char(0)),
  queue = iif(u.state = 'pending', 'timed', deliveries.queue),
  due_at = iif(u.state = 'pending', u.due_at, deliveries.due_at),
  last_status = nullif(u.status, -1), last_error = nullif(u.error, char(0))
FROM u CROSS JOIN me CROSS JOIN lanes l ON l.endpoint_id = u.endpoint_id AND l.owner = me.id AND l.epoch = u.epoch
WHERE deliveries.id = u.delivery_id AND +deliveries.endpoint_id = u.endpoint_id
  AND deliveries.state = 'pending' AND deliveries.attempts = u.number - 1 AND deliveries.replays = u.replays
"""
SETTLE_ATTEMPTS = """
WITH u (delivery_id, id, number, replays, late, at, outcome, duration, status, error, error_detail,
        dns, connect, tls, first_byte, request_url, request_headers, response_headers,
        response_body, response_truncated, final_url) AS (VALUES {rows})
INSERT OR IGNORE INTO attempts (
  delivery_id, id, number, replays, late, at, outcome, duration, status, error, error_detail,
  dns, connect, tls, first_byte, request_url, request_headers, response_headers,
  response_body, response_truncated, final_url)
SELECT
  delivery_id, id, number, replays, late, at, outcome, duration,
  nullif(status, -1), nullif(error, char(0)), nullif(error_detail, char(0)),
  nullif(dns, -1), nullif(connect, -1), nullif(tls, -1), nullif(first_byte, -1),
  nullif(request_url, char(0)), nullif(request_headers, char(0)), nullif(response_headers, char(0)),
  nullif(response_body, x''), nullif(response_truncated, 0), nullif(final_url, char(0))
FROM u
"""
# Stores notes: only the current owner's, in its epoch.
NOTE = """
WITH me (id) AS (SELECT id FROM workers WHERE id = ? AND buried_at IS NULL),
u (endpoint_id, epoch, hold_until, head, circuit, failures, slices, cooldown, opened_at, probe_at, reason,
   last_success_at, last_failure_at, applied, rest_until) AS (VALUES {rows})
UPDATE lanes SET
  hold_until = u.hold_until, head = u.head, circuit = u.circuit, failures = u.failures, slices = u.slices,
  cooldown = u.cooldown, opened_at = u.opened_at, probe_at = u.probe_at, reason = u.reason,
  last_success_at = u.last_success_at, last_failure_at = u.last_failure_at, applied = max(lanes.applied, u.applied),
  rest_until = u.rest_until
FROM u CROSS JOIN me
WHERE lanes.endpoint_id = u.endpoint_id AND lanes.owner = me.id AND lanes.epoch = u.epoch
RETURNING endpoint_id
"""

# An endpoint that answered 410, if nobody changed it since the request.
DISABLE_GONE = """
UPDATE endpoints SET enabled = 0, disabled_reason = :reason, updated_at = max(:now, updated_at + 1e-6)
WHERE id = :id AND updated_at = :asked AND enabled = 1
"""
PAUSE_GONE = "UPDATE lanes SET paused = 1 WHERE endpoint_id = :id"

SUSPECTS = """
WITH me (id) AS (SELECT id FROM workers WHERE id = ? AND buried_at IS NULL),
u (delivery_id, endpoint_id, epoch, replays, now) AS (VALUES {rows})"""
OF_SUSPECTS = """
FROM u CROSS JOIN me CROSS JOIN lanes l ON l.endpoint_id = u.endpoint_id AND l.owner = me.id AND l.epoch = u.epoch
WHERE deliveries.id = u.delivery_id AND +deliveries.endpoint_id = u.endpoint_id AND deliveries.replays = u.replays"""
# Once per epoch, unless a settle came between: a repeat after a lost answer marks nothing twice.
MARK = f"""{SUSPECTS}
UPDATE deliveries SET
  marks = iif(marks > 0 AND marked_epoch IS u.epoch, marks, marks + 1), marked_epoch = u.epoch
{OF_SUSPECTS} AND deliveries.state = 'pending'
RETURNING id
"""
# A delivery that was condemned before keeps its time: a repeat gives the first answer again.
CONDEMN = f"""{SUSPECTS}
UPDATE deliveries SET
  done_at = iif(state = 'pending', u.now, done_at), state = 'dead', reason = 'crash_limit'
{OF_SUSPECTS} AND (deliveries.state = 'pending' OR deliveries.state = 'dead' AND deliveries.reason = 'crash_limit')
RETURNING id
"""

# Own events, announced in the transaction of what they tell, never about the account that gets them. Differs from
# postgres: statements of their own. Circuits and suspects are looked at before they are changed.
ANNOUNCE_DEATHS = f"""
WITH u (delivery_id, reason, at) AS (VALUES {{rows}})
INSERT INTO announcements (kind, account, subject, detail, at)
SELECT 'delivery.dead', e.account, u.delivery_id, u.reason, u.at FROM u
CROSS JOIN events e ON e.rowid = (SELECT x.rowid FROM events x WHERE x.id <= u.delivery_id ORDER BY x.id DESC LIMIT 1)
WHERE e.account <> '{OWN_ACCOUNT}'
"""
SUSPECTS_PENDING = f"{SUSPECTS} SELECT deliveries.id {OF_SUSPECTS.replace('WHERE', 'CROSS JOIN deliveries ON')} AND deliveries.state = 'pending'"
ANNOUNCE_CIRCUITS = f"""
WITH me (id) AS (SELECT id FROM workers WHERE id = ? AND buried_at IS NULL),
u (endpoint_id, epoch, circuit, reason, at) AS (VALUES {{rows}})
INSERT INTO announcements (kind, account, subject, detail, at)
SELECT iif(u.circuit = 'closed', 'circuit.closed', 'circuit.opened'), e.account, u.endpoint_id, nullif(u.reason, char(0)), u.at
FROM u CROSS JOIN me CROSS JOIN lanes l ON l.endpoint_id = u.endpoint_id AND l.owner = me.id AND l.epoch = u.epoch
CROSS JOIN endpoints e ON e.id = u.endpoint_id
WHERE (u.circuit = 'closed') <> (l.circuit = 'closed') AND e.account <> '{OWN_ACCOUNT}'
"""
ANNOUNCE_DISABLED = f"""
INSERT INTO announcements (kind, account, subject, detail, at)
SELECT 'endpoint.disabled', account, id, disabled_reason, :now FROM endpoints
WHERE id = :id AND account <> '{OWN_ACCOUNT}'
"""

# Differs from postgres: a statement of its own. The caller knows by then what was applied.
SETTLE_LOG = """
INSERT OR IGNORE INTO latency_log (worker, n, minute, late, samples)
SELECT id, :n, :minute, :late, :samples FROM workers WHERE id = :worker AND buried_at IS NULL
"""
SETTLE_WAS = "SELECT late FROM attempts WHERE delivery_id = :delivery AND id = :id"
RELEASE = """
WITH me (id) AS (SELECT id FROM workers WHERE id = ? AND buried_at IS NULL),
u (endpoint_id, epoch, wake_at, tokens, tokens_at, suspect) AS (VALUES {rows})
UPDATE lanes SET owner = NULL, wake_at = u.wake_at, suspect = u.suspect, tokens = u.tokens, tokens_at = u.tokens_at
FROM u CROSS JOIN me
WHERE lanes.endpoint_id = u.endpoint_id AND lanes.owner = me.id AND lanes.epoch = u.epoch
RETURNING endpoint_id
"""

# What a lane's rows need, and whether a reset has to be applied; `asked` is each statement's own list of lanes.
ASKS = """
asks (endpoint_id, due) AS MATERIALIZED (
  SELECT a.id, CASE
    WHEN EXISTS (SELECT 1 FROM deliveries d
                 WHERE d.endpoint_id = a.id AND d.state = 'pending' AND d.queue = 'ready') THEN :now
    ELSE coalesce((SELECT d.due_at FROM deliveries d
                   WHERE d.endpoint_id = a.id AND d.state = 'pending' AND d.queue = 'timed'
                   ORDER BY d.due_at LIMIT 1), 9e999) END
  FROM asked a)
"""
# There are three cases in which the next owner must look at once, whatever holds the lane back: a reset, a head that is
# no longer waited for, and a head that an operator made due while the lane's owner never heard of it. A circuit holds
# back retried heads too, and so does a receiver that asked for a rest.
HEAD_IS_GONE = """(lanes.head IS NOT NULL AND (lanes.strict = 0 OR NOT EXISTS (
  SELECT 1 FROM deliveries h WHERE h.id = lanes.head AND h.state = 'pending'
    AND NOT (lanes.circuit = 'closed' AND max(h.due_at, lanes.rest_until) < lanes.hold_until AND h.due_at <= :now))))"""
# A lane that is awake keeps its place among those that wait for an owner.
WAKES_AT = f"iif({IS_RESET} OR {HEAD_IS_GONE}, :now, max(asks.due, lanes.hold_until))"
LOWER = f"""
UPDATE lanes SET wake_at = {WAKES_AT}
FROM asks
WHERE lanes.endpoint_id = asks.endpoint_id AND lanes.owner IS NULL
  AND lanes.wake_at > :now AND lanes.wake_at > {WAKES_AT}
"""
WAKE = f"WITH RECURSIVE {PIECES}, {ASKS} {LOWER}"

# --- workers ---------------------------------------------------------------------------------------------

REGISTER = """
INSERT OR IGNORE INTO workers (id, kind, host, pid, version, started_at, seen_at, beat,
                               lanes, in_flight, free_slots, waiting, draining, delivered_per_s)
VALUES (:id, :kind, :host, :pid, :version, :started_at, :seen_at, :beat,
        :lanes, :in_flight, :free_slots, :waiting, :draining, :delivered_per_s)
"""
BEAT = """
UPDATE workers SET beat = beat + 1, seen_at = :now, lanes = :lanes, in_flight = :in_flight,
                   free_slots = :free_slots, waiting = :waiting, draining = :draining,
                   delivered_per_s = :delivered_per_s
WHERE id = :worker AND buried_at IS NULL
"""
TELL_STATUS = "INSERT OR REPLACE INTO worker_status (worker, at, status) VALUES (:worker, :now, :status)"
READ_STATUS = """
SELECT w.id, w.seen_at, coalesce(s.status, x'')
FROM workers w LEFT JOIN worker_status s ON s.worker = w.id WHERE w.buried_at IS NULL ORDER BY w.id
"""
FORGET_STATUS = "DELETE FROM worker_status WHERE worker = :worker"
# Only here: a file has no clock, so it keeps the latest time that a heartbeat knew.
BEAT_CLOCK = "UPDATE clock SET at = :now WHERE at < :now"
PULSE_CLOCK = "SELECT at FROM clock"
PULSE_FOREIGN = "PRAGMA data_version"
_WORKER = """id, kind, host, pid, version, started_at, seen_at, beat,
       lanes, in_flight, free_slots, waiting, draining, delivered_per_s, buried_at IS NOT NULL"""
PULSE_WORKERS = f"SELECT {_WORKER} FROM workers ORDER BY id"
PULSE_CHANGES = "SELECT n, endpoint_id, kind FROM changes WHERE n > :seen ORDER BY n LIMIT 1000"
PULSE_WAKES = """
SELECT wake_at FROM lanes WHERE owner IS NULL AND paused = 0 AND wake_at < 9e999 ORDER BY wake_at LIMIT 1
"""
PULSE_OUTBOX = "SELECT EXISTS (SELECT 1 FROM hookline_outbox WHERE seq > :above)"
LIST_WORKERS = f"SELECT {_WORKER} FROM workers WHERE id < :before ORDER BY id DESC LIMIT :limit"
OWNED = f"SELECT {TAKEN} FROM lanes WHERE owner = :worker ORDER BY endpoint_id"
BURY = "UPDATE workers SET buried_at = :now WHERE id = :worker AND beat = :beat AND buried_at IS NULL"
IS_BURIED = "SELECT count(*) FROM workers WHERE id = :worker AND buried_at IS NOT NULL"
FREE = """
UPDATE lanes SET owner = NULL, epoch = epoch + 1, wake_at = 9e999, suspect = 1, tokens = 0, tokens_at = :now
WHERE endpoint_id IN (SELECT endpoint_id FROM lanes WHERE owner = :worker ORDER BY endpoint_id LIMIT :limit)
  AND EXISTS (SELECT 1 FROM workers WHERE id = :worker AND buried_at IS NOT NULL)
RETURNING endpoint_id
"""
SWEEP_RANGE = """
SELECT count(*), max(endpoint_id)
FROM (SELECT endpoint_id FROM lanes WHERE endpoint_id > :after ORDER BY endpoint_id LIMIT :limit)
"""
SWEEP = f"""
WITH asked (id) AS (SELECT endpoint_id FROM lanes WHERE endpoint_id > :after AND endpoint_id <= :last AND owner IS NULL),
{ASKS} {LOWER}
"""
# Whoever finds a log that was not flushed has to find its worker.
RETIRE = """
DELETE FROM workers WHERE id = :worker AND NOT EXISTS (SELECT 1 FROM lanes WHERE owner = :worker)
  AND NOT EXISTS (SELECT 1 FROM latency_log WHERE worker = :worker)
"""

# --- operators -------------------------------------------------------------------------------------------

COUNT_CHANGE = """
UPDATE change_counter SET n = n + 1, catalogue = iif(:kind IN ('endpoint', 'event_type'), n + 1, catalogue) RETURNING n
"""
WRITE_CHANGE = "INSERT INTO changes (n, endpoint_id, kind, at) VALUES (:n, :endpoint, :kind, :now)"
CREATE_LANE = "INSERT OR IGNORE INTO lanes (endpoint_id, paused, strict) VALUES (:id, :paused, :strict)"
# A free lane that no longer has to keep its order is taken at once: what it waits for may be hours away.
PAUSE_LANE = """
UPDATE lanes SET paused = :paused, strict = :strict,
  wake_at = iif(owner IS NULL AND strict AND NOT :strict, min(wake_at, :now), wake_at)
WHERE endpoint_id = :id AND (paused <> :paused OR strict <> :strict)
"""
DELETE_ENDPOINT = "DELETE FROM endpoints WHERE id = :id"
DELETE_LANE = "UPDATE lanes SET paused = 1, deleted = 1 WHERE endpoint_id = :id"
CANCEL_DELETED = """
UPDATE deliveries SET state = 'cancelled', reason = 'endpoint_deleted', done_at = :now, marks = 0
WHERE seq IN (
  SELECT d.seq FROM lanes l INDEXED BY lanes_deleted CROSS JOIN deliveries d INDEXED BY deliveries_ready
    ON d.endpoint_id = l.endpoint_id AND d.state = 'pending' AND d.queue = 'ready' WHERE l.deleted = 1
  UNION ALL
  SELECT d.seq FROM lanes l INDEXED BY lanes_deleted CROSS JOIN deliveries d INDEXED BY deliveries_timed
    ON d.endpoint_id = l.endpoint_id AND d.state = 'pending' AND d.queue = 'timed' WHERE l.deleted = 1
  LIMIT :limit)
RETURNING endpoint_id
"""
READ_STATE = "SELECT endpoint_id, state FROM deliveries WHERE id = :id"
RETRY = "UPDATE deliveries SET due_at = min(due_at, :now) WHERE id = :id AND state = 'pending'"
CANCEL = """
UPDATE deliveries SET state = 'cancelled', reason = 'cancelled', done_at = :now, marks = 0
WHERE id = :id AND state = 'pending'
"""
REDRIVEN = """
  death_reason = iif(state = 'dead', reason, death_reason),
  death_at = iif(state = 'dead', done_at, death_at),
  death_attempts = iif(state = 'dead', attempts, death_attempts),
  state = 'pending', queue = 'timed', due_at = :now, done_at = NULL, reason = NULL,
  attempts = 0, marks = 0, replays = replays + 1"""
DISCARDED = "state = 'cancelled', reason = 'discarded', done_at = :now"
REDRIVE = f"""
UPDATE deliveries SET {REDRIVEN} WHERE id = :id AND state IN ('dead', 'delivered', 'cancelled')
"""
DISCARD = f"UPDATE deliveries SET {DISCARDED} WHERE id = :id AND state = 'dead'"
REDRIVE_EVENT = f"""
UPDATE deliveries SET {REDRIVEN}
WHERE id BETWEEN :first AND :last AND state <> 'pending' AND state IN (:a, :b, :c, :d)
  AND (:endpoint IS NULL OR endpoint_id = :endpoint)
RETURNING id, endpoint_id
"""
# A free lane in strict order sleeps until its head is due. If an operator moved the head, the next owner must read it
# again.
WAKE_WITHOUT_HEAD = """
UPDATE lanes SET wake_at = min(wake_at, :now) WHERE endpoint_id = :endpoint AND head = :head AND owner IS NULL
"""
RESET_LANE = """
UPDATE lanes SET wake_at = iif(owner IS NULL, min(wake_at, :now), wake_at) WHERE endpoint_id = :id AND deleted = 0
"""

# --- jobs ------------------------------------------------------------------------------------------------

JOB_COLUMNS = """
SELECT id, kind, filter, ids, nullif(account, ''), idempotency_key, digest, state, matched, done, failed,
  created_at, finished_at, reason, cursor
FROM jobs
"""
CREATE_JOB = """
INSERT INTO jobs (id, kind, filter, ids, account, idempotency_key, digest, matched, created_at)
VALUES (:id, :kind, :filter, :ids, :account, :key, :digest, :matched, :created_at)
"""
FIRST_JOB = f"""
{JOB_COLUMNS} WHERE id = :id OR (account = :account AND kind = :kind AND idempotency_key = :key) LIMIT 1
"""
LOCK_JOB = f"{JOB_COLUMNS} WHERE id = :id AND state = 'running'"
OWN_OF_THESE = f"""
WITH RECURSIVE {PIECES} SELECT asked.id FROM asked CROSS JOIN deliveries d ON d.id = asked.id
CROSS JOIN events e ON e.rowid = (SELECT x.rowid FROM events x WHERE x.id <= d.id ORDER BY x.id DESC LIMIT 1)
WHERE e.account = :account ORDER BY asked.id
"""
DEAD_OF_THESE = "WHERE id IN (SELECT id FROM asked) AND +state = 'dead' RETURNING endpoint_id"
REDRIVE_THESE = f"WITH RECURSIVE {PIECES} UPDATE deliveries SET {REDRIVEN} {DEAD_OF_THESE}"
DISCARD_THESE = f"WITH RECURSIVE {PIECES} UPDATE deliveries SET {DISCARDED} {DEAD_OF_THESE}"
ADVANCE_JOB = """
UPDATE jobs SET cursor = :cursor, done = done + :done, failed = failed + :failed,
  state = iif(:is_last, 'done', state), finished_at = iif(:is_last, :now, NULL)
WHERE id = :id
"""
FAIL_JOB = """
UPDATE jobs SET state = 'failed', reason = :reason, finished_at = :now WHERE id = :id AND state = 'running'
"""
RUNNING_JOBS = "SELECT id FROM jobs WHERE state = 'running' ORDER BY id"
READ_JOB = f"{JOB_COLUMNS} WHERE id = :id"
LIST_JOBS = f"{JOB_COLUMNS} WHERE kind = :kind AND id < :before ORDER BY id DESC LIMIT :limit"
LIST_JOBS_OF_ACCOUNT = f"""
{JOB_COLUMNS} WHERE account = :account AND account <> '' AND kind = :kind AND id < :before
ORDER BY id DESC LIMIT :limit
"""

# --- reading ---------------------------------------------------------------------------------------------

READ_LANES = f"""
WITH RECURSIVE {PIECES}
SELECT endpoint_id, owner, hold_until, head, rest_until, {CIRCUIT_COLUMNS}
FROM lanes WHERE endpoint_id IN (SELECT id FROM asked) ORDER BY endpoint_id
"""
CATALOGUE_NUMBER = "SELECT n FROM change_counter"
CATALOGUE_ENDPOINTS = f"{ENDPOINT_COLUMNS} ORDER BY id"
ENDPOINTS_BY_ID = f"WITH RECURSIVE {PIECES} {ENDPOINT_COLUMNS} WHERE id IN (SELECT id FROM asked)"
LIST_ENDPOINTS = f"""
{ENDPOINT_COLUMNS}
WHERE id < :before AND (:enabled IS NULL OR enabled = :enabled)
ORDER BY id DESC LIMIT :limit
"""
LIST_ENDPOINTS_OF_ACCOUNT = f"""
{ENDPOINT_COLUMNS}
WHERE account = :account AND id < :before AND (:enabled IS NULL OR enabled = :enabled)
ORDER BY id DESC LIMIT :limit
"""
READ_EVENT = """
SELECT id, account, type, payload, idempotency_key, deliver_at, coalesce(hops, 0), trace, created_at
FROM events WHERE id = :id
"""

# The last attempt that counted has the detail and the duration; the narrow row keeps only what lists filter by.
DELIVERY_COLUMNS = """
SELECT d.id, e.id, d.endpoint_id, e.account, e.type, d.state, d.queue, d.seq, d.attempts, d.replays, d.due_at,
       e.created_at, d.done_at, d.reason, d.last_status, d.last_error,
       (SELECT a.error_detail FROM attempts a WHERE a.delivery_id = d.id AND a.late = 0
        ORDER BY a.replays DESC, a.number DESC LIMIT 1),
       (SELECT a.duration FROM attempts a WHERE a.delivery_id = d.id AND a.late = 0
        ORDER BY a.replays DESC, a.number DESC LIMIT 1),
       d.death_reason, d.death_at, d.death_attempts
"""
EVENT_OF_DELIVERY = """
CROSS JOIN events e ON e.rowid = (SELECT x.rowid FROM events x WHERE x.id <= d.id ORDER BY x.id DESC LIMIT 1)
"""
READ_DELIVERY = f"{DELIVERY_COLUMNS} FROM deliveries d {EVENT_OF_DELIVERY} WHERE d.id = :id"
DELIVERIES_BY_ID = f"""
WITH RECURSIVE {PIECES} {DELIVERY_COLUMNS} FROM asked CROSS JOIN deliveries d ON d.id = asked.id {EVENT_OF_DELIVERY}
ORDER BY d.id
"""

# Built in `lists.deliveries`: first the page, then what is shown of it.
LIST_DELIVERIES = f"""
{DELIVERY_COLUMNS}
FROM (SELECT d.seq FROM {{source}} WHERE {{conditions}} ORDER BY {{order}} LIMIT :limit) page
CROSS JOIN deliveries d ON d.seq = page.seq {EVENT_OF_DELIVERY}
ORDER BY d.id DESC
"""
# Where a page starts. By account it walks that account's events, whose order is the order of their deliveries. Few
# pending rows are gathered from their two indexes and sorted; many are soon met by a walk.
LIST_ALL = "deliveries d"
LIST_OF_ENDPOINT = "deliveries d INDEXED BY deliveries_endpoint"
LIST_ENDED_OF_ENDPOINT = {
    "dead": "deliveries d INDEXED BY deliveries_dead",
    "cancelled": "deliveries d INDEXED BY deliveries_cancelled",
}
LIST_ENDED = "deliveries d INDEXED BY deliveries_ended"
LIST_REPLAYED = "deliveries d INDEXED BY deliveries_replayed"
LIST_OF_ACCOUNT = """events e INDEXED BY events_account CROSS JOIN deliveries d
  ON d.id >= e.id AND d.id < coalesce((SELECT min(n.id) FROM events n WHERE n.id > e.id), :above)"""
LIST_PENDING = """(
    SELECT seq FROM deliveries WHERE state = 'pending' AND queue = 'ready'
    UNION ALL SELECT seq FROM deliveries WHERE state = 'pending' AND queue = 'timed') p
  CROSS JOIN deliveries d ON d.seq = p.seq"""
LIST_PENDING_OF_ENDPOINT = """(
    SELECT seq FROM deliveries INDEXED BY deliveries_ready
    WHERE endpoint_id = :endpoint AND state = 'pending' AND queue = 'ready'
    UNION ALL SELECT seq FROM deliveries INDEXED BY deliveries_timed
    WHERE endpoint_id = :endpoint AND state = 'pending' AND queue = 'timed') p
  CROSS JOIN deliveries d ON d.seq = p.seq"""
IN_STATE = {
    "pending": "d.state = 'pending'",
    "delivered": "d.state = 'delivered'",
    # The predicate of an index has to be repeated word for word.
    "dead": "d.state = 'dead' AND d.state IN ('dead', 'cancelled')",
    "cancelled": "d.state = 'cancelled' AND d.state IN ('dead', 'cancelled')",
}
LOOK_AHEAD = """
SELECT count(*), min(id) FROM (SELECT {id} AS id FROM {source} WHERE {conditions} ORDER BY {order} LIMIT :limit)
"""
LOOK_AT_PENDING = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE state = 'pending' AND queue = 'ready' AND {conditions} LIMIT :limit))
     + (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE state = 'pending' AND queue = 'timed' AND {conditions} LIMIT :limit))
"""
COUNT_DEAD = "SELECT count(*) FROM {source} WHERE {conditions}"
LOOK_AT_DEAD = """
SELECT count(*), max(id) FROM (SELECT d.id FROM {source} WHERE {conditions} ORDER BY d.id LIMIT :limit)
"""
PICK_DEAD = "SELECT d.id FROM {source} WHERE {conditions} ORDER BY d.id LIMIT :limit"
ATTEMPT_COLUMNS = """id, delivery_id, number, replays, at, outcome, duration, status, error, error_detail,
       dns, connect, tls, first_byte, request_url, request_headers, response_headers,
       response_body, response_truncated, final_url, late"""
READ_ATTEMPTS = f"""
SELECT {ATTEMPT_COLUMNS}
FROM attempts WHERE delivery_id = :delivery ORDER BY at, id
"""
# Counted from the small partial indexes; only the number of all rows needs a walk, over the narrowest index.
COUNTS = """
SELECT (SELECT count(*) FROM deliveries WHERE state = 'pending' AND queue = 'ready')
     + (SELECT count(*) FROM deliveries WHERE state = 'pending' AND queue = 'timed'),
       (SELECT count(*) FROM deliveries WHERE state = 'dead'),
       (SELECT count(*) FROM deliveries WHERE state = 'cancelled'),
       (SELECT count(*) FROM deliveries)
"""
