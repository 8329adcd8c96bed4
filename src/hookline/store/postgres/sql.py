"""Holds the statements of the PostgreSQL store.

They are in the order of the contract, under the same names as in the SQLite store. Batches come as arrays, one for each
column; long arrays that are always present have domains of our own (driver/arrays.py). Values in index predicates are
literals: if they were bound, a generic plan could not use the partial index. Times are bound and read as seconds
(`to_timestamp`, `date_part`): that costs half of a codec for timestamptz in Python. Locks are taken in one order
everywhere: endpoints, workers, jobs, deliveries, lanes, changes, tasks.
"""

from hookline.model import OWN_ACCOUNT
from hookline.store.postgres.columns import ENDPOINT_COLUMNS
from hookline.store.postgres.driver import rights

MIGRATIONS_LOCK = "SELECT pg_advisory_lock($1)"
MIGRATIONS_CREATE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())
"""
MIGRATIONS_EXIST = "SELECT to_regclass('schema_migrations') IS NOT NULL"
# The user, if the schema exists but is hidden from it: a search path leaves it out silently.
HIDDEN_FROM = """
SELECT quote_ident(current_user) FROM pg_namespace WHERE nspname = $1 AND NOT has_schema_privilege(oid, 'USAGE')
"""
MIGRATIONS_READ = "SELECT number, name, checksum FROM schema_migrations ORDER BY number"
MIGRATIONS_RECORD = "INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3)"
SERVES_EXISTS = "SELECT to_regclass('schema_serves') IS NOT NULL"
SERVES_READ = "SELECT level FROM schema_serves"
SERVES_RAISE = "UPDATE schema_serves SET level = $1 WHERE level < $1"
NEWEST_MIGRATION = "SELECT name FROM schema_migrations ORDER BY number DESC LIMIT 1"

# --- accepting -------------------------------------------------------------------------------------------

# Differs from sqlite: one statement. The insert into `idempotency` waits for a publisher that is about to commit
# the same key. It does so in key order, so that two batches cannot wait for each other.
ACCEPT = """
WITH fresh AS MATERIALIZED (SELECT n FROM change_counter WHERE catalogue <= $1),
p AS MATERIALIZED (
  SELECT p.* FROM fresh, unnest($2::id_list, $3::text_list, $4::text_list, $5::text_list, $6::bytes_list, $7::float8[], $8::float8[], $9::bytea[],
      $13::smallint[], $14::text_list)
    WITH ORDINALITY AS p (id, account, type, key, payload, created_at, deliver_at, digest, hops, trace, n)),
keyed AS (
  INSERT INTO idempotency (account, key, event_id, digest)
  SELECT account, key, id, digest FROM p WHERE key IS NOT NULL ORDER BY account, key
  ON CONFLICT (account, key) DO NOTHING RETURNING event_id),
stored AS (
  INSERT INTO events (id, account, type, idempotency_key, payload, created_at, deliver_at, hops, trace)
  SELECT id, account, type, key, payload, to_timestamp(coalesce(created_at, $15)), to_timestamp(deliver_at), hops, trace FROM p
  WHERE key IS NULL OR id IN (SELECT event_id FROM keyed)
  ON CONFLICT (id) DO NOTHING RETURNING id),
queued AS (
  INSERT INTO deliveries (id, endpoint_id, due_at, queue)
  SELECT d.id, d.endpoint_id, to_timestamp(greatest(p.deliver_at, $15)),
    CASE WHEN p.deliver_at > $15 THEN 'timed' ELSE 'ready' END
  FROM unnest($10::id_list, $11::id_list, $12::number_list) WITH ORDINALITY AS d (id, endpoint_id, publication, n)
  JOIN p ON p.n = coalesce(d.publication, d.n)
  WHERE p.id IN (SELECT id FROM stored)
  ORDER BY d.n RETURNING seq)
SELECT NOT EXISTS (SELECT FROM fresh) AS stale, (SELECT min(seq) FROM queued) AS first_seq,
  ARRAY(SELECT p.n::int FROM p WHERE p.id NOT IN (SELECT id FROM stored)) AS absent
"""

# A statement of its own, after the commit: only a new snapshot sees the rows that the insert waited for.
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

# Takes the locks of ACCEPT and flushes a commit to the disk; several statements in one round trip and one transaction. A
# lock that is not free is an error at once: a session that waits for one holds up those behind it. The message is for
# nobody. It is the smallest commit that is flushed, and leaves no dead row.
TRY_ACCEPT = """
LOCK TABLE change_counter IN ACCESS SHARE MODE NOWAIT;
LOCK TABLE idempotency, events, deliveries IN ROW EXCLUSIVE MODE NOWAIT;
SELECT pg_logical_emit_message(true, 'hookline', '')
"""

# --- lanes -----------------------------------------------------------------------------------------------

# Burial locks this row FOR UPDATE. While a statement that begins with this lock runs, the worker stays alive; once
# buried it does nothing more. A comparison alone is no fence: a take can commit between the snapshot and the write.
_ME = "me AS MATERIALIZED (SELECT id FROM workers WHERE id = $1 AND buried_at IS NULL FOR KEY SHARE)"

_CIRCUIT = """l.circuit, l.failures, l.slices, l.cooldown, date_part('epoch', l.opened_at) AS opened_at,
  date_part('epoch', l.probe_at) AS probe_at, l.reason,
  date_part('epoch', l.last_success_at) AS last_success_at, date_part('epoch', l.last_failure_at) AS last_failure_at"""

_IS_RESET = """EXISTS (
    SELECT FROM changes c WHERE c.endpoint_id = l.endpoint_id AND c.kind = 'reset' AND c.n > l.applied)"""

_TAKEN = f"""l.endpoint_id, l.epoch, date_part('epoch', l.wake_at) AS woke_at,
  date_part('epoch', l.hold_until) AS hold_until, l.suspect, l.head,
  l.tokens, date_part('epoch', l.tokens_at) AS tokens_at, l.applied, {_IS_RESET} AS is_reset,
  date_part('epoch', l.rest_until) AS rest_until, {_CIRCUIT}"""

# Differs from sqlite: other workers may be taking at this moment, and the lanes they take are not worth waiting for.
TAKE = f"""
WITH {_ME},
free AS MATERIALIZED (
  SELECT endpoint_id FROM lanes
  WHERE owner IS NULL AND NOT paused AND wake_at < 'infinity' AND wake_at <= to_timestamp($2) AND EXISTS (SELECT FROM me)
  ORDER BY wake_at LIMIT $3 FOR UPDATE SKIP LOCKED)
UPDATE lanes l SET owner = $1, epoch = l.epoch + 1 FROM free WHERE l.endpoint_id = free.endpoint_id
RETURNING {_TAKEN}
"""

# `seen` are the copies as the snapshot has them, `free` the lanes as they are now. A copy counts only if the lane had no
# owner between the two: its epoch is the same.
TAKE_THESE = f"""
WITH {_ME},
seen AS MATERIALIZED (
  SELECT d.endpoint_id, l.epoch, count(*)::int AS copies FROM unnest($4::id_list) AS k (id)
  JOIN deliveries d USING (id) JOIN lanes l USING (endpoint_id)
  WHERE d.state = 'pending' AND d.attempts = 0 AND d.replays = 0 GROUP BY d.endpoint_id, l.epoch),
free AS MATERIALIZED (
  SELECT l.endpoint_id, CASE WHEN s.epoch = l.epoch THEN s.copies ELSE 0 END AS copies
  FROM me CROSS JOIN unnest($2::uuid[]) AS k (endpoint_id) JOIN lanes l USING (endpoint_id)
  LEFT JOIN seen s USING (endpoint_id)
  WHERE l.owner IS NULL AND NOT l.paused AND l.hold_until <= to_timestamp($3)
  ORDER BY l.endpoint_id FOR UPDATE OF l SKIP LOCKED)
UPDATE lanes l SET owner = $1, epoch = l.epoch + 1 FROM free WHERE l.endpoint_id = free.endpoint_id
RETURNING {_TAKEN}, free.copies
"""

# `NOT IN (SELECT unnest(..))` is hashed once; `<> ALL(..)` would be compared row by row under a generic plan.
LOAD = """
SELECT d.id, d.endpoint_id, d.queue, d.seq, date_part('epoch', d.due_at) AS due_at, d.attempts, d.replays, d.marks,
  e.type, e.idempotency_key, date_part('epoch', e.created_at) AS created_at,
  CASE WHEN length(e.payload) <= $8 THEN e.payload END AS payload, coalesce(e.hops, 0) AS hops,
  length(e.payload) AS payload_bytes, e.trace
FROM unnest($1::id_list, $2::int[], $3::int[], $4::bigint[], $5::float8[])
  WITH ORDINALITY AS o (endpoint_id, ready, timed, floor, due_floor, n)
CROSS JOIN LATERAL (
  (SELECT d.id, d.endpoint_id, d.queue, d.seq, d.due_at, d.attempts, d.replays, d.marks FROM deliveries d
   WHERE d.endpoint_id = o.endpoint_id AND d.state = 'pending' AND d.queue = 'ready' AND d.seq >= o.floor
     AND d.id NOT IN (SELECT unnest($6::id_list))
   ORDER BY d.seq LIMIT o.ready)
  UNION ALL
  (SELECT d.id, d.endpoint_id, d.queue, d.seq, d.due_at, d.attempts, d.replays, d.marks FROM deliveries d
   WHERE d.endpoint_id = o.endpoint_id AND d.state = 'pending' AND d.queue = 'timed'
     AND d.due_at BETWEEN to_timestamp(o.due_floor) AND to_timestamp($7)
     AND d.id NOT IN (SELECT unnest($6::id_list))
   ORDER BY d.due_at, d.id LIMIT o.timed)) d
JOIN events e ON e.id = event_of(d.id)
ORDER BY o.n, d.queue, CASE WHEN d.queue = 'ready' THEN d.seq END, d.due_at, d.id
"""

READ_PAYLOAD = "SELECT payload FROM events WHERE id = $1"

_NOTE = "endpoint_id epoch hold_until head circuit failures slices cooldown opened_at probe_at reason last_success_at last_failure_at applied rest_until"
_NOTE_TYPES = "uuid bigint float8 uuid text int text float8 float8 float8 text float8 float8 bigint float8"


def _write_notes(*, first: int) -> str:
    """Stores what owners know of their lanes; its arrays begin at the parameter `first`."""
    arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(_NOTE_TYPES.split(), first))
    return f"""
mine AS MATERIALIZED (
  SELECT c.*, l.circuit AS was FROM me CROSS JOIN unnest({arrays}) AS c ({_NOTE.replace(" ", ", ")})
  JOIN lanes l ON l.endpoint_id = c.endpoint_id AND l.epoch = c.epoch AND l.owner IS NOT DISTINCT FROM me.id
  ORDER BY l.endpoint_id FOR NO KEY UPDATE OF l),
noted AS (
  UPDATE lanes l SET hold_until = to_timestamp(c.hold_until), head = c.head, circuit = c.circuit, failures = c.failures,
    slices = c.slices, cooldown = c.cooldown, opened_at = to_timestamp(c.opened_at), probe_at = to_timestamp(c.probe_at),
    reason = c.reason, last_success_at = to_timestamp(c.last_success_at), last_failure_at = to_timestamp(c.last_failure_at),
    applied = greatest(l.applied, c.applied), rest_until = to_timestamp(c.rest_until)
  FROM mine c WHERE l.endpoint_id = c.endpoint_id
  RETURNING l.endpoint_id)"""


# Own events are announced in the statement of what they tell, never about the account that gets them. Statements that
# announce have names of their own: while nobody listens, nothing is paid for them. Accounts are looked up row by row:
# nearly nothing dies, and a join could read a whole table.
def _announce_deaths(*, of: str, reason: str, now: str) -> str:
    """Announces deliveries that died just now; `of` has their ids as `delivery_id`."""
    return f"""
announced_deaths AS (
  INSERT INTO announcements (kind, account, subject, detail, at)
  SELECT 'delivery.dead', d.account, d.delivery_id, d.reason, to_timestamp({now}) FROM (
    SELECT x.delivery_id, {reason} AS reason, (SELECT e.account FROM events e WHERE e.id = event_of(x.delivery_id)) AS account
    FROM {of} OFFSET 0) d
  WHERE d.account <> '{OWN_ACCOUNT}')"""


def _announce_circuits(*, now: str) -> str:
    """Announces circuits that a note opens or closes: a probe that fails opens nothing."""
    return f"""
announced_circuits AS (
  INSERT INTO announcements (kind, account, subject, detail, at)
  SELECT CASE WHEN d.circuit = 'closed' THEN 'circuit.closed' ELSE 'circuit.opened' END, d.account, d.endpoint_id,
    d.reason, to_timestamp({now}) FROM (
    SELECT c.endpoint_id, c.circuit, c.reason, (SELECT e.account FROM endpoints e WHERE e.id = c.endpoint_id) AS account
    FROM mine c WHERE (c.circuit = 'closed') <> (c.was = 'closed') OFFSET 0) d
  WHERE d.account <> '{OWN_ACCOUNT}')"""


ANNOUNCE_DISABLED = f"""
INSERT INTO announcements (kind, account, subject, detail, at)
SELECT 'endpoint.disabled', account, id, disabled_reason, to_timestamp($2) FROM endpoints
WHERE id = $1 AND account <> '{OWN_ACCOUNT}'
"""


# Returns only what was not applied: a normal batch returns no rows. Lanes are joined by epoch too, so that a lane that
# was lost and taken again does not accept what was sent before. `IS NOT DISTINCT FROM` keeps the planner away from the
# indexes on owner and endpoint: with lookups by key, row by row, the join is linear whatever the statistics say.
# Columns in which nearly every value is the usual one carry null for it, and mostly no array at all: binding a value
# costs more than filling it in here. An attempt that was recorded as late stays late; a first one could not apply
# later either, so nothing looks for it.
_SETTLE = f"""
WITH {_ME},
s AS MATERIALIZED (
  SELECT id, delivery_id, endpoint_id, epoch::bigint AS epoch, coalesce(number, 1) AS number, coalesce(replays, 0) AS replays,
    coalesce(state, 'delivered') AS state, due_at, reason, at, coalesce(outcome, 'accepted') AS outcome, duration,
    status::int AS status,
    error, error_detail, dns, connect, tls, first_byte,
    request_url, request_headers, response_headers, response_body, response_truncated, final_url, n
  FROM unnest($2::id_list, $3::id_list, $4::id_list, $5::number_list, $6::int[], $7::int[], $8::text[], $9::number_list, $10::text[],
    $11::number_list, $12::text[], $13::number_list, $14::number_list, $15::text[], $16::text[],
    $17::number_list, $18::number_list, $19::number_list, $20::number_list,
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
    AND CASE WHEN s.number = 1 AND s.replays = 0 THEN true
        ELSE (SELECT a.id FROM attempts a WHERE a.delivery_id = s.delivery_id AND a.id = s.id) IS NULL END
  RETURNING s.id),
tried AS (
  INSERT INTO attempts (delivery_id, id, at, duration, replays, number, status, late, response_truncated, outcome,
    dns, connect, tls, first_byte, error, error_detail,
    request_url, request_headers, response_headers, response_body, final_url)
  SELECT s.delivery_id, s.id, to_timestamp(s.at), s.duration, s.replays, s.number, s.status,
    s.id NOT IN (SELECT id FROM done), coalesce(s.response_truncated, false), s.outcome,
    s.dns, s.connect, s.tls, s.first_byte, s.error, s.error_detail,
    s.request_url, s.request_headers, s.response_headers, s.response_body, s.final_url
  FROM s ON CONFLICT (delivery_id, id) DO NOTHING RETURNING id),
logged AS (
  INSERT INTO latency_log (worker, n, minute, late, samples)
  SELECT me.id, $43::bigint, to_timestamp($44),
    (SELECT array_agg(get_byte($46::bytea, 2 * s.n::int - 2) + 256 * get_byte($46::bytea, 2 * s.n::int - 1))
     FROM s WHERE s.id NOT IN (SELECT id FROM done)), $45::bytea
  FROM me WHERE $43::bigint IS NOT NULL ON CONFLICT (worker, n) DO NOTHING),
{_write_notes(first=28)}"""
_NOT_APPLIED = """
SELECT s.n::int - 1 AS n, s.id IN (SELECT id FROM tried) AS recorded FROM s WHERE s.id NOT IN (SELECT id FROM done)
"""
SETTLE = _SETTLE + _NOT_APPLIED
_DIED = "s x WHERE x.state = 'dead' AND x.id IN (SELECT id FROM done)"
SETTLE_AND_ANNOUNCE = f"""{_SETTLE},
{_announce_deaths(of=_DIED, reason="x.reason", now="$27")},
{_announce_circuits(now="$27")}
{_NOT_APPLIED}"""

# Differs from sqlite: a statement of its own. The first write of the same attempt may have been under way until now.
SETTLE_WAS = """
SELECT a.id, a.late FROM unnest($1::uuid[], $2::uuid[]) AS k (delivery_id, id) JOIN attempts a USING (delivery_id, id)
"""

NOTE = f"WITH {_ME}, {_write_notes(first=2)} SELECT endpoint_id FROM noted ORDER BY endpoint_id"
NOTE_AND_ANNOUNCE = f"""
WITH {_ME}, {_write_notes(first=2)}, {_announce_circuits(now="$17")} SELECT endpoint_id FROM noted ORDER BY endpoint_id
"""

# An endpoint that answered 410, if nobody changed it since the request. In the transaction of its settle, which then
# begins with the endpoints: every other change of an endpoint locks it before its lane.
LOCK_GONE = "SELECT id FROM endpoints WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE"
DISABLE_GONE = """
UPDATE endpoints SET enabled = false, disabled_reason = $3,
  updated_at = greatest(to_timestamp($4), updated_at + interval '1 microsecond')
WHERE id = $1 AND updated_at = to_timestamp($2) AND enabled RETURNING id
"""
PAUSE_GONE = "UPDATE lanes SET paused = true WHERE endpoint_id = $1"

# The deliveries of a lane that this worker owns; `{states}` selects which.
_SUSPECTS = """
mine AS MATERIALIZED (
  SELECT d.id, s.epoch FROM me CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::int[])
    AS s (delivery_id, endpoint_id, epoch, replays)
  JOIN lanes l ON l.endpoint_id = s.endpoint_id AND l.epoch = s.epoch AND l.owner IS NOT DISTINCT FROM me.id
  JOIN deliveries d ON d.id = s.delivery_id AND d.endpoint_id IS NOT DISTINCT FROM s.endpoint_id
  WHERE {states} AND d.replays = s.replays
  ORDER BY d.id FOR NO KEY UPDATE OF d)"""

# Once per epoch, unless a settle came between: a repeat after a lost answer marks nothing twice.
MARK = f"""
WITH {_ME},
{_SUSPECTS.format(states="d.state = 'pending'")}
UPDATE deliveries d SET marked_epoch = mine.epoch,
  marks = CASE WHEN d.marks > 0 AND d.marked_epoch IS NOT DISTINCT FROM mine.epoch THEN d.marks ELSE d.marks + 1 END
FROM mine WHERE d.id = mine.id
RETURNING d.id
"""

_CONDEMN = f"""
WITH {_ME},
{_SUSPECTS.format(states="(d.state = 'pending' OR (d.state = 'dead' AND d.reason = 'crash_limit'))")},
dead AS (
  UPDATE deliveries d SET state = 'dead', reason = 'crash_limit', done_at = to_timestamp($6)
  FROM mine WHERE d.id = mine.id AND d.state = 'pending'
  RETURNING d.id AS delivery_id)"""
CONDEMN = f"{_CONDEMN} SELECT id FROM mine"
CONDEMN_AND_ANNOUNCE = f"""{_CONDEMN},
{_announce_deaths(of="dead x", reason="'crash_limit'", now="$6")}
SELECT id FROM mine
"""

RELEASE = f"""
WITH {_ME},
mine AS MATERIALIZED (
  SELECT l.endpoint_id, r.wake_at, r.tokens, r.tokens_at, r.suspect
  FROM me CROSS JOIN unnest($2::uuid[], $3::bigint[], $4::float8[], $5::float8[], $6::float8[], $7::boolean[])
    AS r (endpoint_id, epoch, wake_at, tokens, tokens_at, suspect)
  JOIN lanes l ON l.endpoint_id = r.endpoint_id AND l.epoch = r.epoch AND l.owner IS NOT DISTINCT FROM me.id
  ORDER BY l.endpoint_id FOR NO KEY UPDATE OF l)
UPDATE lanes l SET owner = NULL, wake_at = to_timestamp(mine.wake_at), suspect = mine.suspect,
  tokens = mine.tokens, tokens_at = to_timestamp(mine.tokens_at)
FROM mine WHERE l.endpoint_id = mine.endpoint_id
RETURNING l.endpoint_id
"""

# When the rows of lane `k` need it, and whether a reset has to be applied. `$2` is now.
# There are three cases in which the next owner must look at once, whatever holds the lane back: a reset, a head that is
# no longer waited for, and a head that an operator made due while the lane's owner never heard of it. A circuit holds
# back retried heads too, and so does a receiver that asked for a rest.
_ASKS = """
  EXISTS (SELECT FROM changes c WHERE c.endpoint_id = k.endpoint_id AND c.kind = 'reset' AND c.n > k.applied)
  OR (k.head IS NOT NULL AND (NOT k.strict OR NOT EXISTS (
        SELECT FROM deliveries h WHERE h.id = k.head AND h.state = 'pending'
          AND NOT (k.circuit = 'closed' AND greatest(h.due_at, k.rest_until) < k.hold_until AND h.due_at <= to_timestamp($2))))) AS is_reset,
  CASE WHEN EXISTS (SELECT FROM deliveries d
                    WHERE d.endpoint_id = k.endpoint_id AND d.state = 'pending' AND d.queue = 'ready') THEN to_timestamp($2)
  ELSE coalesce((SELECT d.due_at FROM deliveries d
                 WHERE d.endpoint_id = k.endpoint_id AND d.state = 'pending' AND d.queue = 'timed'
                 ORDER BY d.due_at LIMIT 1), 'infinity') END AS due"""

# Lanes that are awake or owned are left out by the snapshot, without a lock: a later release of such a lane rechecks
# it with a snapshot that has our rows. The others are waited for, never skipped, in one order.
_LOWER = """
asleep AS MATERIALIZED (
  SELECT l.endpoint_id, n.due, n.is_reset FROM n JOIN lanes l USING (endpoint_id)
  WHERE l.owner IS NULL AND l.wake_at > CASE WHEN n.is_reset THEN to_timestamp($2) ELSE greatest(n.due, l.hold_until) END
  ORDER BY l.endpoint_id FOR NO KEY UPDATE OF l)
UPDATE lanes l SET wake_at = CASE WHEN asleep.is_reset THEN to_timestamp($2) ELSE greatest(asleep.due, l.hold_until) END
FROM asleep WHERE l.endpoint_id = asleep.endpoint_id"""

WAKE = f"""
WITH n AS MATERIALIZED (
  SELECT k.endpoint_id, {_ASKS}
  FROM unnest($1::uuid[]) AS asked (endpoint_id) JOIN lanes k USING (endpoint_id)
  WHERE k.owner IS NULL AND k.wake_at > to_timestamp($2)),
{_LOWER}
"""

# --- workers ---------------------------------------------------------------------------------------------

# The lock that shows that a worker's session is alive. It has a number space of our own, apart from an application's
# locks. An observer takes it shared, until the end of its statement, so that two observers do not see each other.
SESSIONS_SPACE = 0x686F6F6B  # "hook"
_LOCK = f"{SESSIONS_SPACE}, uuid_hash({{id}})"


def _hold(*, id: str, backend: str) -> str:
    """Take a worker's lock if this session has this server process: the sessions of a pooler belong to everybody."""
    return f"CASE WHEN pg_backend_pid() = {backend} THEN pg_try_advisory_lock({_LOCK.format(id=id)}) ELSE false END"


REGISTER = f"""
INSERT INTO workers (id, kind, host, pid, version, started_at, seen_at, beat, lanes, in_flight, free_slots, waiting, draining,
  delivered_per_s, has_session)
VALUES ($1, $2, $3, $4, $5, to_timestamp($6), to_timestamp($7), $8, $9, $10, $11, $12, $13, $14,
  {_hold(id="$1", backend="$15")})
ON CONFLICT (id) DO NOTHING
RETURNING has_session
"""
# There is a pooler after all: observers must go by the lease.
UNREGISTER_SESSION = "UPDATE workers SET has_session = false WHERE id = $1"

# What the worker knows of its lanes is in a table of its own: every pulse of every process reads `workers`.
BEAT = """
WITH alive AS (
  UPDATE workers SET beat = beat + 1, seen_at = to_timestamp($2),
    lanes = $3, in_flight = $4, free_slots = $5, waiting = $6, draining = $7, delivered_per_s = $8
  WHERE id = $1 AND buried_at IS NULL
  RETURNING id),
told AS (
  INSERT INTO worker_status (worker, at, status) SELECT id, to_timestamp($2), $9 FROM alive WHERE $9::bytea IS NOT NULL
  ON CONFLICT (worker) DO UPDATE SET at = excluded.at, status = excluded.status)
SELECT id FROM alive
"""
READ_STATUS = """
SELECT w.id AS worker, date_part('epoch', w.seen_at) AS seen_at, coalesce(s.status, '') AS status
FROM workers w LEFT JOIN worker_status s ON s.worker = w.id WHERE w.buried_at IS NULL ORDER BY w.id
"""

_WORKER = """w.id, w.kind, w.host, w.pid, w.version,
  date_part('epoch', w.started_at) AS started_at, date_part('epoch', w.seen_at) AS seen_at, w.beat,
  w.lanes, w.in_flight, w.free_slots, w.waiting, w.draining, w.delivered_per_s, w.buried_at IS NOT NULL AS buried"""

PULSE_WORKERS = f"SELECT {_WORKER} FROM workers w ORDER BY w.id"

PULSE_CHANGES = "SELECT n, endpoint_id, kind FROM changes WHERE n > $1 ORDER BY n LIMIT 1000"

PULSE_WAKES = """
SELECT date_part('epoch', wake_at) FROM lanes WHERE owner IS NULL AND NOT paused AND wake_at < 'infinity' ORDER BY wake_at LIMIT 1
"""

# Differs from sqlite: everything in one statement. Every process asks it four times a second, and a transaction for
# each part costs more than the parts. The changes come with the first row. Asked with rights, it finds the ones that
# were taken away.
_PULSE = f"""
SELECT {{more}}date_part('epoch', now()) AS now, (SELECT level FROM schema_serves) AS serves, ({PULSE_WAKES}) AS wakes_at,
  pg_backend_pid() AS backend, w.has_session, current_setting('transaction_read_only') = 'on' AS is_read_only,
  CASE WHEN $4 THEN (SELECT {_hold(id="$2", backend="$3")}) ELSE false END AS took,
  CASE WHEN w.has_session AND w.buried_at IS NULL AND w.id IS DISTINCT FROM $2
    THEN pg_try_advisory_xact_lock_shared({_LOCK.format(id="w.id")}) ELSE false END AS is_gone,
  CASE WHEN row_number() OVER (ORDER BY w.id) = 1
    THEN ARRAY(SELECT ROW(c.n, c.endpoint_id, c.kind) FROM ({PULSE_CHANGES}) c) END AS changes,
  CASE WHEN row_number() OVER (ORDER BY w.id) = 1 THEN ARRAY({rights.lacking(first=5)}) END AS lacking, {_WORKER}
FROM (VALUES (true)) AS always LEFT JOIN workers w ON true
ORDER BY w.id
"""
PULSE = _PULSE.format(more="")
# Apart: it needs the right to read the outbox, which only a process that moves rows has to have.
PULSE_AND_OUTBOX = _PULSE.format(
    more="EXISTS (SELECT FROM hookline.outbox WHERE seq > $7) AS has_outbox_rows, "
)

LIST_WORKERS = (
    f"SELECT {_WORKER} FROM workers w WHERE $1::uuid IS NULL OR w.id < $1 ORDER BY w.id DESC LIMIT $2"
)

OWNED = f"SELECT {_TAKEN} FROM lanes l WHERE l.owner = $1 ORDER BY l.endpoint_id"

# FOR UPDATE waits for the statements that began with this worker's fence, then compares the current heartbeat count.
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
  SELECT endpoint_id, owner, wake_at, hold_until, rest_until, applied, head, strict, circuit FROM lanes WHERE endpoint_id > $1 ORDER BY endpoint_id LIMIT $3),
n AS MATERIALIZED (SELECT k.endpoint_id, {_ASKS} FROM chunk k WHERE k.owner IS NULL AND k.wake_at > to_timestamp($2)),
lowered AS (WITH {_LOWER})
SELECT (SELECT count(*) FROM chunk) AS looked_at, (SELECT endpoint_id FROM chunk ORDER BY endpoint_id DESC LIMIT 1) AS last
"""

# Differs from sqlite: two statements, so that the snapshot of the second has every take that held the fence.
LOCK_WORKER = "SELECT id FROM workers WHERE id = $1 FOR UPDATE"
FORGET_STATUS = "DELETE FROM worker_status WHERE worker = $1"
# Whoever finds a log that was not flushed has to find its worker.
RETIRE = """
DELETE FROM workers WHERE id = $1 AND NOT EXISTS (SELECT FROM lanes WHERE owner = $1)
  AND NOT EXISTS (SELECT FROM latency_log WHERE worker = $1)
"""

# --- operators -------------------------------------------------------------------------------------------

CREATE_LANE = """
INSERT INTO lanes (endpoint_id, paused, strict) VALUES ($1, $2, $3) ON CONFLICT (endpoint_id) DO NOTHING
"""

# A free lane that no longer has to keep its order is taken at once: what it waits for may be hours away.
PAUSE_LANE = """
UPDATE lanes SET paused = $2, strict = $3,
  wake_at = CASE WHEN owner IS NULL AND strict AND NOT $3 THEN least(wake_at, to_timestamp($4)) ELSE wake_at END
WHERE endpoint_id = $1 AND (paused <> $2 OR strict <> $3)
"""

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

_REDRIVEN = """state = 'pending', queue = 'timed', due_at = to_timestamp($2), done_at = NULL, reason = NULL,
  attempts = 0, marks = 0, replays = d.replays + 1,
  death_reason = CASE WHEN d.state = 'dead' THEN d.reason ELSE d.death_reason END,
  death_at = CASE WHEN d.state = 'dead' THEN d.done_at ELSE d.death_at END,
  death_attempts = CASE WHEN d.state = 'dead' THEN d.attempts ELSE d.death_attempts END"""
_DISCARDED = "state = 'cancelled', reason = 'discarded', done_at = to_timestamp($2)"

REDRIVE = (
    f"UPDATE deliveries d SET {_REDRIVEN} WHERE d.id = $1 AND d.state <> 'pending' RETURNING d.endpoint_id"
)

DISCARD = f"UPDATE deliveries d SET {_DISCARDED} WHERE d.id = $1 AND d.state = 'dead' RETURNING d.endpoint_id"

READ_STATE = "SELECT state FROM deliveries WHERE id = $1"

# Differs from sqlite: counts and writes in one statement. The counter's row stays locked until the commit, so the
# numbers become visible in the order in which they were given out.
WRITE_CHANGE = """
WITH c AS (
  UPDATE change_counter SET n = n + 1, catalogue = CASE WHEN $2 IN ('endpoint', 'event_type') THEN n + 1 ELSE catalogue END RETURNING n)
INSERT INTO changes (n, endpoint_id, kind, at) SELECT n, $1, $2, to_timestamp($3) FROM c
"""

WRITE_CHANGES = """
WITH c AS (UPDATE change_counter SET n = n + cardinality($1::uuid[]) RETURNING n)
INSERT INTO changes (n, endpoint_id, kind, at)
SELECT c.n - cardinality($1::uuid[]) + k.n, k.endpoint_id, $2, to_timestamp($3)
FROM c, unnest($1::uuid[]) WITH ORDINALITY AS k (endpoint_id, n)
"""

REDRIVE_EVENT = f"""
WITH mine AS MATERIALIZED (
  SELECT id FROM deliveries WHERE id BETWEEN $1 AND last_delivery_of($1) AND state <> 'pending' AND state = ANY($3::text[])
    AND ($4::uuid IS NULL OR endpoint_id = $4)
  ORDER BY id FOR NO KEY UPDATE)
UPDATE deliveries d SET {_REDRIVEN} FROM mine WHERE d.id = mine.id RETURNING d.id, d.endpoint_id
"""

# A free lane in strict order sleeps until its head is due. If an operator moved the head, the next owner must read it
# again.
WAKE_WITHOUT_HEAD = """
UPDATE lanes SET wake_at = least(wake_at, to_timestamp($3)) WHERE endpoint_id = $1 AND head = $2 AND owner IS NULL
"""
# Locks the lane's row even when there is nothing to lower: a release then comes before and is seen here, or comes after
# and its recheck sees the change.
RESET_LANE = """
UPDATE lanes SET wake_at = CASE WHEN owner IS NULL THEN least(wake_at, to_timestamp($2)) ELSE wake_at END
WHERE endpoint_id = $1 AND NOT deleted RETURNING endpoint_id
"""

# --- jobs ------------------------------------------------------------------------------------------------

_JOB = """
SELECT id, kind, filter, ids, nullif(account, '') AS account, idempotency_key, digest, state, matched, done, failed,
  date_part('epoch', created_at) AS created_at, date_part('epoch', finished_at) AS finished_at, reason, cursor
FROM jobs"""

CREATE_JOB = """
INSERT INTO jobs (id, kind, filter, ids, account, idempotency_key, digest, matched, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, to_timestamp($9))
ON CONFLICT DO NOTHING
"""
FIRST_JOB = f"{_JOB} WHERE id = $1 OR (account = $4 AND kind = $2 AND idempotency_key = $3) LIMIT 1"

# Differs from sqlite: another process may be working on this very job.
LOCK_JOB = f"{_JOB} WHERE id = $1 AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED"

OWN_OF_THESE = """
SELECT a.id FROM unnest($1::uuid[]) AS a (id) JOIN deliveries d ON d.id = a.id JOIN events e ON e.id = event_of(d.id)
WHERE e.account = $2 ORDER BY a.id
"""

# Differs from sqlite: a letter may have been replayed and have died again since it was picked.
_DEAD_OF_THESE = """mine AS MATERIALIZED (
  SELECT id FROM deliveries WHERE id = ANY($1::uuid[]) AND state = 'dead' AND done_at < to_timestamp($3)
  ORDER BY id FOR NO KEY UPDATE)"""
REDRIVE_THESE = f"""
WITH {_DEAD_OF_THESE} UPDATE deliveries d SET {_REDRIVEN} FROM mine WHERE d.id = mine.id RETURNING d.endpoint_id
"""
DISCARD_THESE = f"""
WITH {_DEAD_OF_THESE} UPDATE deliveries d SET {_DISCARDED} FROM mine WHERE d.id = mine.id RETURNING d.endpoint_id
"""
ADVANCE_JOB = """
UPDATE jobs SET cursor = $2, done = done + $3, failed = failed + $4,
  state = CASE WHEN $5 THEN 'done' ELSE state END, finished_at = CASE WHEN $5 THEN to_timestamp($6) END
WHERE id = $1
"""
FAIL_JOB = """
UPDATE jobs SET state = 'failed', reason = $2, finished_at = to_timestamp($3) WHERE id = $1 AND state = 'running'
RETURNING id
"""
RUNNING_JOBS = "SELECT id FROM jobs WHERE state = 'running' ORDER BY id"
READ_JOB = f"{_JOB} WHERE id = $1"
LIST_JOBS = f"""{_JOB}
WHERE kind = $1 AND ($2::uuid IS NULL OR id < $2) AND ($4::text IS NULL OR account = $4 AND account <> '')
ORDER BY id DESC LIMIT $3
"""

# --- reading ---------------------------------------------------------------------------------------------


READ_LANES = f"""
SELECT l.endpoint_id, l.owner, date_part('epoch', l.hold_until) AS hold_until, l.head,
  date_part('epoch', l.rest_until) AS rest_until, {_CIRCUIT}
FROM lanes l WHERE l.endpoint_id = ANY($1::uuid[]) ORDER BY l.endpoint_id
"""

CATALOGUE = (
    f"SELECT c.n, {ENDPOINT_COLUMNS} FROM change_counter c LEFT JOIN endpoints e ON true ORDER BY e.id"
)

ENDPOINTS_BY_ID = f"SELECT {ENDPOINT_COLUMNS} FROM endpoints e WHERE e.id = ANY($1::uuid[]) ORDER BY e.id"

# Sessions for lists plan each call for its own values, so that a filter that was not given costs nothing.
LIST_ENDPOINTS = f"""
SELECT {ENDPOINT_COLUMNS} FROM endpoints e
WHERE ($1::text IS NULL OR e.account = $1) AND ($2::bool IS NULL OR e.enabled = $2) AND ($3::uuid IS NULL OR e.id < $3)
ORDER BY e.id DESC LIMIT $4
"""

READ_EVENT = """
SELECT id, account, type, payload, idempotency_key, date_part('epoch', deliver_at) AS deliver_at,
  coalesce(hops, 0) AS hops, trace, date_part('epoch', created_at) AS created_at
FROM events WHERE id = $1
"""

_DELIVERY = """
SELECT d.id, e.id AS event_id, d.endpoint_id, e.account, e.type AS event_type, d.state, d.queue, d.seq, d.attempts, d.replays,
  date_part('epoch', d.due_at) AS due_at, date_part('epoch', e.created_at) AS created_at,
  date_part('epoch', d.done_at) AS done_at, d.reason, d.last_status, d.last_error,
  a.error_detail AS last_error_detail, a.duration AS last_duration,
  d.death_reason, date_part('epoch', d.death_at) AS death_at, d.death_attempts
FROM {source} d JOIN events e ON e.id = event_of(d.id)
LEFT JOIN LATERAL (
  SELECT a.error_detail, a.duration FROM attempts a WHERE a.delivery_id = d.id AND NOT a.late
  ORDER BY a.replays DESC, a.number DESC LIMIT 1) a ON true"""

READ_DELIVERY = f"{_DELIVERY.format(source='deliveries')} WHERE d.id = $1"
DELIVERIES_BY_ID = f"{_DELIVERY.format(source='deliveries')} WHERE d.id = ANY($1::uuid[]) ORDER BY d.id"

# Built in `lists.deliveries`: first the page, from the parts that an index gives in its order, then what is shown of it.
LIST_DELIVERIES = (
    _DELIVERY.format(source="(SELECT * FROM ({parts}) p ORDER BY id DESC LIMIT {limit})")
    + " ORDER BY d.id DESC"
)
LIST_PART = "(SELECT {columns} FROM {source} WHERE {conditions} ORDER BY {order} DESC LIMIT {limit})"
LIST_WITH_EVENTS = "{deliveries} JOIN events e ON e.id = event_of(d.id)"
# An account's events by their index (which does not contain the default account), newest first, with their deliveries.
LIST_OF_ACCOUNT = """(
  SELECT * FROM events WHERE account = {account} AND account <> 'default' AND {within} ORDER BY id DESC OFFSET 0) e
CROSS JOIN LATERAL (SELECT * FROM deliveries WHERE id BETWEEN e.id AND last_delivery_of(e.id) OFFSET 0) d"""
# There is no index of an endpoint's pending rows by id: every accept would write it, for lists alone. Their ids are
# gathered from the two existing indexes and sorted (0.4 s for 500,000); the rest is read only for those on the page.
# Each `OFFSET 0` is a fence: the first and the third keep the planner from walking all ids of the table, the second
# from reading what is not on the page.
LIST_PENDING = """(
  SELECT id FROM (
    SELECT id FROM deliveries WHERE state = 'pending' AND queue = 'ready' AND {of} AND {within}
    UNION ALL
    SELECT id FROM deliveries WHERE state = 'pending' AND queue = 'timed' AND {of} AND {within}
    OFFSET 0) gathered
  ORDER BY id DESC OFFSET 0) waiting
CROSS JOIN LATERAL (SELECT * FROM deliveries WHERE id = waiting.id OFFSET 0) d"""
LOOK_AHEAD = "SELECT count(*) AS looked_at, (array_agg(id ORDER BY id))[1] AS lowest FROM {looked} looked"
LOOK_PART = "(SELECT {id} AS id FROM {source} WHERE {conditions} ORDER BY {order} DESC LIMIT {limit})"
LOOK_MERGED = "(SELECT id FROM ({parts}) p ORDER BY id DESC LIMIT {limit})"
LOOK_AT_PENDING = """
SELECT (SELECT count(*) FROM (SELECT FROM deliveries WHERE state = 'pending' AND queue = 'ready' LIMIT $1) r)
     + (SELECT count(*) FROM (SELECT FROM deliveries WHERE state = 'pending' AND queue = 'timed' LIMIT $1) t)
"""
COUNT_DEAD = "SELECT count(*) FROM {source} WHERE {conditions}"
LOOK_AT_DEAD = """
SELECT count(*) AS looked_at, (array_agg(id ORDER BY id DESC))[1] AS last
FROM (SELECT d.id FROM deliveries d WHERE {conditions} ORDER BY d.id LIMIT {limit}) looked
"""
PICK_DEAD = "SELECT d.id FROM {source} WHERE {conditions} ORDER BY d.id LIMIT {limit}"

ATTEMPT_COLUMNS = """id, delivery_id, number, replays, date_part('epoch', at) AS at, outcome, duration, status, error,
  error_detail, dns, connect, tls, first_byte, request_url, request_headers, response_headers, response_body,
  response_truncated, final_url, late"""
READ_ATTEMPTS = f"""
SELECT {ATTEMPT_COLUMNS}
FROM attempts WHERE delivery_id = $1 ORDER BY at, id
"""

COUNTS = "SELECT state, count(*) AS n FROM deliveries GROUP BY state"
