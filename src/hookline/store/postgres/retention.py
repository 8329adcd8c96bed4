"""Deletes old data from PostgreSQL.

It has sessions of its own, with one pruner at a time, and waits for nobody: a delivery that is being changed is left
for another time.
"""

from collections import Counter
from functools import partial

from hookline.ids import event_of
from hookline.model import EventId
from hookline.store.contract.retention import (
    BEFORE_ALL,
    Looked,
    PruneBatch,
    Pruned,
    batch_of,
    walk_ends_before,
)
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions

_LOCK = int.from_bytes(b"hkprune\0")  # the advisory lock of the process that prunes this database

PRUNE_LOCK = "SELECT pg_advisory_xact_lock($1)"

_IS_OLD = """(d.state IN ('delivered', 'cancelled') AND d.done_at < to_timestamp({done})
  OR d.state = 'dead' AND d.done_at < to_timestamp({dead}))"""

# `OFFSET 0` is a fence for the planner: it then counts an event's deliveries by their primary key.
PRUNE_LOOK = f"""
SELECT e.id, e.account, d.n AS deliveries,
  CASE WHEN d.n > 0 THEN d.old = d.n ELSE e.created_at < to_timestamp($4) END
    AND e.created_at < (SELECT coalesce(min(clear_at), 'infinity') FROM outbox_sources) AS is_over
FROM (SELECT id, account, created_at FROM events WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3) e
CROSS JOIN LATERAL (
  SELECT count(*) AS n, count(*) FILTER (WHERE {_IS_OLD.format(done="$4", dead="$5")}) AS old
  FROM (SELECT d.state, d.done_at FROM deliveries d WHERE d.id BETWEEN e.id AND last_delivery_of(e.id) OFFSET 0) d) d
ORDER BY e.id
"""
PRUNE_DELIVERIES = f"""
WITH doomed AS MATERIALIZED (
  SELECT d.id FROM unnest($1::uuid[]) AS e (id)
  JOIN deliveries d ON d.id BETWEEN e.id AND last_delivery_of(e.id)
  WHERE {_IS_OLD.format(done="$2", dead="$3")} LIMIT $4 FOR UPDATE OF d SKIP LOCKED)
DELETE FROM deliveries d USING doomed WHERE d.id = doomed.id RETURNING d.id
"""
PRUNE_ATTEMPTS = "DELETE FROM attempts WHERE delivery_id = ANY($1::uuid[])"
PRUNE_EVENTS = """
DELETE FROM events e WHERE e.id = ANY($1::uuid[])
  AND NOT EXISTS (SELECT FROM deliveries d WHERE d.id BETWEEN e.id AND last_delivery_of(e.id))
RETURNING e.id, e.account, e.idempotency_key
"""
PRUNE_KEYS = """
DELETE FROM idempotency i USING unnest($1::text[], $2::text[], $3::uuid[]) AS g (account, key, event_id)
WHERE i.account = g.account AND i.key = g.key AND i.event_id = g.event_id
"""
COUNT_PRUNED = """
INSERT INTO pruned (account, deliveries, events) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[])
ON CONFLICT (account) DO UPDATE
SET deliveries = pruned.deliveries + excluded.deliveries, events = pruned.events + excluded.events
"""
# Ids begin with the time they were made: younger ones need not be read.
PRUNE_JOBS = """
DELETE FROM jobs WHERE id IN (
  SELECT id FROM jobs WHERE id < $1 AND state <> 'running' AND finished_at < to_timestamp($2)
  ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
RETURNING id
"""
# The last one stays: a process that was away for long sees from its number that others were deleted.
PRUNE_CHANGES = """
DELETE FROM changes WHERE n IN (
  SELECT c.n FROM changes c WHERE c.at < to_timestamp($1) AND c.n < (SELECT n FROM change_counter)
    AND NOT (c.kind = 'reset' AND EXISTS (
      SELECT FROM lanes l WHERE l.endpoint_id = c.endpoint_id AND l.applied < c.n AND NOT l.deleted))
  ORDER BY c.n LIMIT $2)
RETURNING n
"""
PRUNE_LANES = """
DELETE FROM lanes WHERE endpoint_id IN (
  SELECT l.endpoint_id FROM lanes l WHERE l.deleted AND l.owner IS NULL
    AND l.endpoint_id NOT IN (SELECT endpoint_id FROM changes)
    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.endpoint_id = l.endpoint_id AND d.state = 'pending' AND d.queue = 'ready')
    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.endpoint_id = l.endpoint_id AND d.state = 'pending' AND d.queue = 'timed')
    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.endpoint_id = l.endpoint_id AND d.state = 'delivered')
    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.endpoint_id = l.endpoint_id AND d.state = 'dead')
    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.endpoint_id = l.endpoint_id AND d.state = 'cancelled')
  LIMIT $1 FOR UPDATE OF l SKIP LOCKED)
RETURNING endpoint_id
"""
TAKE_PRUNE_TURN = """
UPDATE prune_turn SET next_at = to_timestamp($1::float8 + $2) WHERE next_at <= to_timestamp($1) RETURNING true
"""


class PostgresRetention(PostgresSessions):
    """The contract's verbs about retention."""

    async def prune(
        self,
        *,
        done_before: float,
        dead_before: float,
        after: EventId = BEFORE_ALL,
        limit: int,
        is_dry: bool = False,
    ) -> Pruned:
        """See the contract."""
        end = walk_ends_before(done_before=done_before, dead_before=dead_before)
        if end is None:
            return Pruned()
        work = partial(
            _step, ages=(done_before, dead_before), after=after, end=end, limit=limit, is_dry=is_dry
        )
        return await self._prune.transaction(work)

    async def prune_records(self, *, done_before: float, told_before: float, limit: int) -> int:
        """See the contract."""
        end = walk_ends_before(done_before=done_before, dead_before=done_before) or BEFORE_ALL

        async def work(connection: Connection) -> int:
            await connection.fetch(PRUNE_LOCK, _LOCK)
            return (
                len(await connection.fetch(PRUNE_JOBS, end, done_before, limit))
                + len(await connection.fetch(PRUNE_CHANGES, told_before, limit))
                + len(await connection.fetch(PRUNE_LANES, limit))
            )

        return await self._prune.transaction(work)

    async def take_prune_turn(self, *, every: float, now: float) -> bool:
        """See the contract."""
        return bool(await self._prune.fetch(TAKE_PRUNE_TURN, now, every))


async def _step(
    connection: Connection,
    *,
    ages: tuple[float, float],
    after: EventId,
    end: EventId,
    limit: int,
    is_dry: bool,
) -> Pruned:
    if not is_dry:
        await connection.fetch(PRUNE_LOCK, _LOCK)
    found = await connection.fetch(PRUNE_LOOK, after, end, limit, *ages)
    looked = [Looked(row["id"], row["account"], row["is_over"], row["deliveries"]) for row in found]
    batch = batch_of(looked, after=after, limit=limit)
    if is_dry or not batch.events:
        return batch.as_found()
    events, deliveries = await _delete(connection, batch, ages=ages, limit=limit)
    return batch.as_deleted(events=events, deliveries=deliveries, limit=limit, after=after)


async def _delete(
    connection: Connection, batch: PruneBatch, *, ages: tuple[float, float], limit: int
) -> tuple[int, int]:
    accounts = batch.accounts()
    gone = [row["id"] for row in await connection.fetch(PRUNE_DELIVERIES, list(accounts), *ages, limit)]
    await connection.fetch(PRUNE_ATTEMPTS, gone)
    deliveries = Counter(accounts[event_of(id)] for id in gone)
    removed = await connection.fetch(PRUNE_EVENTS, list(accounts))
    events = Counter(row["account"] for row in removed)
    if keyed := [row for row in removed if row["idempotency_key"] is not None]:
        columns = [[row[name] for row in keyed] for name in ("account", "idempotency_key", "id")]
        await connection.fetch(PRUNE_KEYS, *columns)
    names = sorted({*deliveries, *events})
    await connection.fetch(
        COUNT_PRUNED, names, [deliveries[name] for name in names], [events[name] for name in names]
    )
    return len(removed), len(gone)
