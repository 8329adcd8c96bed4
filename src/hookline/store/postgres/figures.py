"""Counts deliveries for reports and metrics on PostgreSQL.

It uses a session of its own with a longer limit than any other: a count of many millions takes that long.
"""

from hookline.store.contract.figures import Bloat, Conservation, SessionUse, Snapshot
from hookline.store.postgres.driver.sessions import PostgresSessions

# One reading of the table: reading an index for each state, one after the other, took twice as long.
CONSERVATION = """
SELECT state, count(*) AS n FROM deliveries GROUP BY state
UNION ALL SELECT 'pruned', coalesce(sum(deliveries), 0)::bigint FROM pruned WHERE $1::text IS NULL OR account = $1
"""
# Mostly there is only one account. All deliveries are then its own, and their events need not be read.
ONLY_ACCOUNT = """
SELECT $1::text IS NULL OR $1 = 'default' AND NOT EXISTS (SELECT FROM events WHERE account <> 'default') AS is_only
"""
CONSERVATION_OF_DEFAULT = """
SELECT d.state, count(*) AS n FROM deliveries d JOIN events e ON e.id = event_of(d.id) WHERE e.account = $1 GROUP BY d.state
UNION ALL SELECT 'pruned', coalesce(sum(deliveries), 0)::bigint FROM pruned WHERE account = $1
"""
# Along the index of the accounts' events, which does not contain the default account.
CONSERVATION_OF_ACCOUNT = """
SELECT d.state, count(*) AS n FROM events e
CROSS JOIN LATERAL (SELECT state FROM deliveries WHERE id BETWEEN e.id AND last_delivery_of(e.id) OFFSET 0) d
WHERE e.account = $1 AND e.account <> 'default' GROUP BY d.state
UNION ALL SELECT 'pruned', coalesce(sum(deliveries), 0)::bigint FROM pruned WHERE account = $1
"""

# From one lane with pending rows to the next, along the index: the cost depends on the lanes, not on their rows.
_OLDEST = """
  (SELECT endpoint_id, due_at, id FROM deliveries WHERE state = 'pending' AND queue = '{queue}'
   ORDER BY endpoint_id, {first} LIMIT 1)
  UNION ALL
  SELECT d.* FROM {queue} CROSS JOIN LATERAL (
    SELECT n.endpoint_id, n.due_at, n.id FROM deliveries n
    WHERE n.state = 'pending' AND n.queue = '{queue}' AND n.endpoint_id > {queue}.endpoint_id
    ORDER BY n.endpoint_id, n.{first} LIMIT 1) d"""
FIRST_OF_LANES = f"""
ready AS ({_OLDEST.format(queue="ready", first="seq")}),
timed AS ({_OLDEST.format(queue="timed", first="due_at")})"""
# Of a first one `w` in its lane `l`: it is due, and neither an operator nor its owner's last note holds it back.
WAITS = "w.due_at <= to_timestamp($1) AND NOT l.paused AND l.hold_until <= to_timestamp($1)"
OLDEST_DUE = f"""
WITH RECURSIVE {FIRST_OF_LANES}
SELECT date_part('epoch', min(w.due_at)) AS due_at FROM (SELECT * FROM ready UNION ALL SELECT * FROM timed) w
JOIN lanes l USING (endpoint_id)
WHERE {WAITS}
"""

CIRCUITS_OPEN = "SELECT count(*) AS n FROM lanes WHERE circuit <> 'closed' AND NOT deleted"
# The ids of deliveries begin with their event's time. (PostgreSQL 15 has no min(uuid).)
OLDEST_PENDING = """
SELECT date_part('epoch', created_at) AS created_at FROM events WHERE id = event_of(least(
  (SELECT min(id::text COLLATE "C") FROM deliveries WHERE state = 'pending' AND queue = 'ready'),
  (SELECT min(id::text COLLATE "C") FROM deliveries WHERE state = 'pending' AND queue = 'timed'))::uuid)
"""

DEAD_ROWS = """
SELECT relname::text AS name, pg_stat_get_dead_tuples(oid) AS n FROM pg_class
WHERE relnamespace = 'hookline'::regnamespace AND relname IN ('attempts', 'deliveries', 'events', 'lanes', 'workers')
"""
# Everything that keeps a vacuum of this database from removing dead rows. A vacuum itself keeps nothing, and our own
# statement is over in a moment. The start of another user's session is NULL for a user who may not see it.
SNAPSHOTS = """
SELECT 'session' AS held_by, application_name::text AS name, pid,
  extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
  greatest(age(backend_xmin), age(backend_xid)) AS transactions
FROM pg_stat_activity
WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
  AND application_name IS DISTINCT FROM 'hookline doctor'  -- which asks who it is
  AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND backend_type IS DISTINCT FROM 'autovacuum worker'
  AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
UNION ALL
SELECT 'prepared transaction', gid, NULL, extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)
FROM pg_prepared_xacts WHERE database = current_database()
UNION ALL
SELECT 'replication slot', slot_name::text, active_pid, NULL, age(xmin)
FROM pg_replication_slots WHERE xmin IS NOT NULL
UNION ALL
SELECT 'standby', application_name, pid, NULL, age(backend_xmin)
FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
"""


class PostgresFigures(PostgresSessions):
    """The contract's verbs that count."""

    def sessions(self) -> list[SessionUse]:
        """See the contract."""
        return [pool.use for pool in self._pools]

    async def bloat(self) -> Bloat:
        """See the contract; not in the session for counts, where it could wait for a minute."""
        dead = await self._general.fetch(DEAD_ROWS)
        held = await self._general.fetch(SNAPSHOTS)
        return Bloat(
            dead_rows={row["name"]: row["n"] for row in dead},
            snapshots=tuple(Snapshot(**{**row, "name": row["name"] or ""}) for row in held),
        )

    async def conservation(self, *, account: str | None = None) -> Conservation:
        """See the contract."""
        [only] = await self._figures.fetch(ONLY_ACCOUNT, account)
        if only["is_only"]:
            statement = CONSERVATION
        else:
            statement = CONSERVATION_OF_DEFAULT if account == "default" else CONSERVATION_OF_ACCOUNT
        found = await self._figures.fetch(statement, account)
        counted = {row["state"]: row["n"] for row in found}  # a row may hold any word
        return Conservation(
            **{name: n for name, n in counted.items() if name in Conservation.__struct_fields__}
        )

    async def circuits_open(self) -> int:
        """See the contract."""
        [found] = await self._figures.fetch(CIRCUITS_OPEN)
        number: int = found["n"]
        return number

    async def oldest_pending(self) -> float | None:
        """See the contract."""
        found = await self._figures.fetch(OLDEST_PENDING)
        return found[0]["created_at"] if found else None

    async def oldest_due(self, *, now: float) -> float | None:
        """See the contract."""
        [found] = await self._figures.fetch(OLDEST_DUE, now)
        due: float | None = found["due_at"]
        return due
