"""Deletes old data from an SQLite file.

The readers' connection searches, beside everybody else. The writer deletes only what was found, after checking it
again. Free pages are reused before the file grows.
"""

import sqlite3
from collections import Counter
from functools import partial

from hookline.errors import StorageFull
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
from hookline.store.sqlite.driver.connections import SqliteConnections, on_writer
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS, packed
from hookline.store.sqlite.sql import PIECES

_IS_OLD = """(d.state IN ('delivered', 'cancelled') AND d.done_at < :done_before
              OR d.state = 'dead' AND d.done_at < :dead_before)"""
# An event's deliveries are between its id and the next event's.
_OF_EVENT = "d.id >= e.id AND d.id < coalesce((SELECT min(n.id) FROM events n WHERE n.id > e.id), :above)"

# INDEXED BY: without statistics the planner would start with one of the partial indexes on states.
PRUNE_LOOK = f"""
SELECT e.id, e.account,
  CASE WHEN EXISTS (SELECT 1 FROM deliveries d INDEXED BY sqlite_autoindex_deliveries_1 WHERE {_OF_EVENT})
    THEN NOT EXISTS (SELECT 1 FROM deliveries d INDEXED BY sqlite_autoindex_deliveries_1
                     WHERE {_OF_EVENT} AND {_IS_OLD} IS NOT 1)
    ELSE e.created_at < :done_before END
    AND e.created_at < (SELECT coalesce(min(clear_at), 9e999) FROM outbox_sources),
  (SELECT count(*) FROM deliveries d INDEXED BY sqlite_autoindex_deliveries_1 WHERE {_OF_EVENT})
FROM events e WHERE e.id > :after AND e.id < :end ORDER BY e.id LIMIT :limit
"""
PRUNE_DELIVERIES = f"""
WITH RECURSIVE {PIECES}
DELETE FROM deliveries WHERE seq IN (
  SELECT d.seq FROM asked e CROSS JOIN deliveries d INDEXED BY sqlite_autoindex_deliveries_1
  WHERE {_OF_EVENT} AND {_IS_OLD} LIMIT :limit)
RETURNING id
"""
PRUNE_ATTEMPTS = f"""
WITH RECURSIVE {PIECES} DELETE FROM attempts WHERE delivery_id IN (SELECT id FROM asked)
"""
# An event with a delivery left stays; the next event's id is looked up among those that still exist.
PRUNE_EVENTS = f"""
WITH RECURSIVE {PIECES}
DELETE FROM events WHERE rowid IN (
  SELECT e.rowid FROM asked CROSS JOIN events e ON e.id = asked.id
  WHERE NOT EXISTS (SELECT 1 FROM deliveries d INDEXED BY sqlite_autoindex_deliveries_1 WHERE {_OF_EVENT}))
RETURNING id, account, idempotency_key
"""
PRUNE_KEY = "DELETE FROM idempotency WHERE account = :account AND key = :key AND event_id = :event"
COUNT_PRUNED = """
INSERT INTO pruned (account, deliveries, events) VALUES (:account, :deliveries, :events)
ON CONFLICT (account) DO UPDATE SET deliveries = deliveries + excluded.deliveries, events = events + excluded.events
"""
# Ids begin with the time they were made: younger ones need not be read.
PRUNE_JOBS = """
DELETE FROM jobs WHERE id IN (
  SELECT id FROM jobs WHERE id < :end AND state <> 'running' AND finished_at < :done_before ORDER BY id LIMIT :limit)
"""
# The last one stays: a process that was away for long sees from its number that others were deleted.
PRUNE_CHANGES = """
DELETE FROM changes WHERE n IN (
  SELECT c.n FROM changes c WHERE c.at < :told_before AND c.n < (SELECT n FROM change_counter)
    AND NOT (c.kind = 'reset' AND EXISTS (
      SELECT 1 FROM lanes l WHERE l.endpoint_id = c.endpoint_id AND l.applied < c.n AND l.deleted = 0))
  ORDER BY c.n LIMIT :limit)
"""
PRUNE_LANES = """
DELETE FROM lanes WHERE endpoint_id IN (
  SELECT l.endpoint_id FROM lanes l INDEXED BY lanes_deleted WHERE l.deleted = 1 AND l.owner IS NULL
    AND l.endpoint_id NOT IN (SELECT endpoint_id FROM changes)
    AND NOT EXISTS (SELECT 1 FROM deliveries d INDEXED BY deliveries_endpoint WHERE d.endpoint_id = l.endpoint_id)
  LIMIT :limit)
"""
TAKE_PRUNE_TURN = "UPDATE prune_turn SET next_at = :now + :every WHERE next_at <= :now"


class SqliteRetention(SqliteConnections):
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
        """Delete the finished old ones among the next events; see the contract."""
        end = walk_ends_before(done_before=done_before, dead_before=dead_before)
        if end is None:
            return Pruned()
        ages = {"done_before": done_before, "dead_before": dead_before}
        looked = await self._read(partial(_look, ages=ages, after=after, end=end, limit=limit))
        batch = batch_of(looked, after=after, limit=limit)
        if is_dry or not batch.events:
            return batch.as_found()
        try:
            events, deliveries = await self._write(partial(_delete, batch=batch, ages=ages, limit=limit))
        except StorageFull:
            await self._read(_fold)
            raise
        return batch.as_deleted(events=events, deliveries=deliveries, limit=limit, after=after)

    @on_writer
    def prune_records(
        self, connection: sqlite3.Connection, *, done_before: float, told_before: float, limit: int
    ) -> int:
        """Delete up to `limit` of each kind of record that is no longer needed; how many."""
        end = walk_ends_before(done_before=done_before, dead_before=done_before) or BEFORE_ALL
        values = {"done_before": done_before, "told_before": told_before, "end": end, "limit": limit}
        statements = (PRUNE_JOBS, PRUNE_CHANGES, PRUNE_LANES)
        return sum(connection.execute(statement, values).rowcount for statement in statements)

    @on_writer
    def take_prune_turn(self, connection: sqlite3.Connection, *, every: float, now: float) -> bool:
        """Whether it is time to prune and no other process does."""
        return connection.execute(TAKE_PRUNE_TURN, {"every": every, "now": now}).rowcount == 1


def _look(
    connection: sqlite3.Connection, *, ages: dict[str, float], after: EventId, end: EventId, limit: int
) -> list[Looked]:
    values = {**ages, "after": after, "end": end, "limit": limit, "above": ABOVE_ALL_IDS}
    rows = connection.execute(PRUNE_LOOK, values).fetchall()
    return [Looked(id, account, bool(is_over), deliveries) for id, account, is_over, deliveries in rows]


def _delete(
    connection: sqlite3.Connection, *, batch: PruneBatch, ages: dict[str, float], limit: int
) -> tuple[int, int]:
    asked = {"ids": packed([event.id for event in batch.events]), "above": ABOVE_ALL_IDS}
    rows = connection.execute(PRUNE_DELIVERIES, {**asked, **ages, "limit": limit}).fetchall()
    gone = [row[0] for row in rows]
    connection.execute(PRUNE_ATTEMPTS, {"ids": packed(gone)})
    accounts = batch.accounts()
    deliveries = Counter(accounts[event_of(id)] for id in gone)
    events: Counter[str] = Counter()
    for id, account, key in connection.execute(PRUNE_EVENTS, asked).fetchall():
        events[account] += 1
        if key is not None:
            connection.execute(PRUNE_KEY, {"account": account, "key": key, "event": id})
    for account in sorted({*deliveries, *events}):
        counted = {"account": account, "deliveries": deliveries[account], "events": events[account]}
        connection.execute(COUNT_PRUNED, counted)
    return events.total(), len(gone)


def _fold(connection: sqlite3.Connection) -> None:
    """Copy the log into the file, so that the log starts over: its room may be all there is."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
