"""Counts what waits and what is dead on SQLite.

It is counted beside everybody else, on the connection for counts. The writer then only stores what differs.
"""

import math
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from functools import partial

from hookline.ids import first_at
from hookline.model import EndpointId
from hookline.store.contract.measuring.health import (
    FAILED_WITHIN_S,
    LOOK,
    SAMPLES_KEPT_S,
    AttemptTotals,
    EndpointCounts,
    HealthSample,
    next_look,
)
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.sqlite.driver.bulk import Row, write_rows
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS, packed
from hookline.store.sqlite.figures import FIRST_OF_LANES, WAITS
from hookline.store.sqlite.measuring.periodic_tasks import claim, move_on
from hookline.store.sqlite.sql import PIECES

NEXT_LOOK = "SELECT next_at FROM periodic_tasks WHERE name = :name"
LOOK_READY = """
SELECT endpoint_id, count(*) FROM deliveries INDEXED BY deliveries_ready
WHERE state = 'pending' AND queue = 'ready' GROUP BY endpoint_id
"""
LOOK_TIMED = """
SELECT endpoint_id, count(*), sum(attempts = 0), sum(attempts > 0 AND id >= :hour), min(id)
FROM deliveries INDEXED BY deliveries_timed WHERE state = 'pending' AND queue = 'timed' GROUP BY endpoint_id
"""
LOOK_DEAD = """
SELECT endpoint_id, count(*), sum(id >= :hour) FROM deliveries INDEXED BY deliveries_dead
WHERE state = 'dead' GROUP BY endpoint_id
"""
LOOK_OLDEST = f"""
WITH RECURSIVE {FIRST_OF_LANES}
SELECT w.endpoint_id, w.due_at, w.is_ready, w.id, {WAITS}
FROM (SELECT endpoint_id, due_at, id, 1 AS is_ready FROM ready
      UNION ALL SELECT endpoint_id, due_at, id, 0 FROM timed) w
CROSS JOIN lanes l ON l.endpoint_id = w.endpoint_id
"""
_COLUMNS = "endpoint_id, pending, awaiting_retry, dead, failed_last_hour, oldest_pending, oldest_due"
WRITE_COUNTS = f"INSERT OR REPLACE INTO endpoint_counts ({_COLUMNS}) VALUES {{rows}}"
DELETE_COUNTS = f"""
WITH RECURSIVE {PIECES} DELETE FROM endpoint_counts WHERE endpoint_id IN (SELECT id FROM asked)
"""
ADD_SAMPLE = """
INSERT OR IGNORE INTO health_samples (at, took, pending, awaiting_retry, dead, failed_last_hour, oldest_pending, oldest_due)
VALUES (:at, :took, :pending, :awaiting_retry, :dead, :failed_last_hour, :oldest_pending, :oldest_due)
"""
# Of each minute the first one stays, and the newest of all.
THIN_SAMPLES = """
DELETE FROM health_samples WHERE at < :now - :kept OR at >= :now - 3600 AND at < :now AND EXISTS (
  SELECT 1 FROM health_samples e WHERE e.at < health_samples.at
    AND e.at >= 60 * CAST(health_samples.at / 60 AS INTEGER))
"""
READ_SAMPLES = """
SELECT at, took, pending, awaiting_retry, dead, failed_last_hour, oldest_pending, oldest_due
FROM health_samples WHERE at >= :since ORDER BY at
"""
ALL_COUNTS = f"SELECT {_COLUMNS} FROM endpoint_counts"
READ_COUNTS = (
    f"WITH RECURSIVE {PIECES} {ALL_COUNTS} WHERE endpoint_id IN (SELECT id FROM asked) ORDER BY endpoint_id"
)
LIST_COUNTS = f"{ALL_COUNTS} WHERE endpoint_id < :before ORDER BY endpoint_id DESC LIMIT :limit"
ACCOUNT_COUNTS = """
SELECT coalesce(sum(c.pending), 0), coalesce(sum(c.awaiting_retry), 0), coalesce(sum(c.dead), 0),
  coalesce(sum(c.failed_last_hour), 0), min(c.oldest_pending), min(c.oldest_due)
FROM endpoint_counts c CROSS JOIN endpoints e ON e.id = c.endpoint_id WHERE e.account = :account
"""
# An endpoint without a circuit breaker has none that could be open, whatever its lane still says.
OPEN_CIRCUITS = """
SELECT count(*) FROM lanes l CROSS JOIN endpoints e ON e.id = l.endpoint_id
WHERE l.circuit <> 'closed' AND e.circuit IS NOT NULL AND (:account IS NULL OR e.account = :account)
"""
_TOTALS = "SELECT m.attempts, m.accepted, m.seconds, m.rest"
# The row of no endpoint is the sum of all.
TOTALS = f"{_TOTALS} FROM latency_minutes m WHERE m.endpoint_id = :nil AND m.at >= :since"
TOTALS_OF_ACCOUNT = f"""{_TOTALS}
FROM endpoints e CROSS JOIN latency_minutes m ON m.endpoint_id = e.id AND m.at >= :since WHERE e.account = :account
"""
CHUNK = 256  # rows written before others have their turn on the loop


class SqliteHealth(SqliteConnections):
    """The contract's verbs about health."""

    async def look(self, *, now: float, held: Sequence[EndpointId] = ()) -> HealthSample | None:
        """Count everything that waits or is dead, and store it; None: it is not time, or another process does it."""
        began = self._clock.monotonic()
        counted = await self._count(partial(_count, now=now, held=frozenset(held)))
        if counted is None:
            return None
        took = self._clock.monotonic() - began
        sample = _sums(counted.values(), at=now, took=took)
        return await self._write(partial(_store, counted=counted, sample=sample))

    @on_lister
    def health_samples(self, connection: sqlite3.Connection, *, since: float) -> list[HealthSample]:
        """The stored samples from this time on, oldest first."""
        names = HealthSample.__struct_fields__
        rows = connection.execute(READ_SAMPLES, {"since": since})
        return [HealthSample(**dict(zip(names, row, strict=True))) for row in rows]

    @on_lister
    def endpoint_counts(
        self, connection: sqlite3.Connection, ids: Sequence[EndpointId]
    ) -> list[EndpointCounts]:
        """The stored counts of these endpoints, by id."""
        return [_read(row) for row in connection.execute(READ_COUNTS, {"ids": packed(ids)})]

    @on_lister
    def all_counts(
        self, connection: sqlite3.Connection, *, after: EndpointId | None, limit: int
    ) -> list[EndpointCounts]:
        """The stored counts, newest endpoint first."""
        values = {"before": after or ABOVE_ALL_IDS, "limit": limit}
        return [_read(row) for row in connection.execute(LIST_COUNTS, values)]

    @on_lister
    def account_counts(self, connection: sqlite3.Connection, account: str) -> EndpointCounts:
        """The sum of the stored counts of an account's endpoints."""
        row = connection.execute(ACCOUNT_COUNTS, {"account": account}).fetchone()
        return _read((NO_ENDPOINT, *row))

    @on_lister
    def open_circuits(self, connection: sqlite3.Connection, *, account: str | None = None) -> int:
        """The number of endpoints whose circuit is not closed."""
        (number,) = connection.execute(OPEN_CIRCUITS, {"account": account}).fetchone()
        return int(number)

    @on_lister
    def attempt_totals(
        self, connection: sqlite3.Connection, *, since: float, account: str | None = None
    ) -> AttemptTotals:
        """The sums of the stored minutes that began at this time or later."""
        statement = TOTALS if account is None else TOTALS_OF_ACCOUNT
        values = {"since": since, "nil": NO_ENDPOINT, "account": account}
        rows = connection.execute(statement, values).fetchall()
        if not rows:
            return AttemptTotals()
        attempts, accepted, seconds, rest = zip(*rows, strict=True)
        return AttemptTotals(sum(attempts), sum(accepted), math.fsum(seconds), rest)


def _count(
    connection: sqlite3.Connection, *, now: float, held: frozenset[EndpointId]
) -> dict[EndpointId, EndpointCounts] | None:
    """Everything that waits or is dead, in one snapshot; None: it is not time to look."""
    connection.execute("BEGIN")
    try:
        due = connection.execute(NEXT_LOOK, {"name": LOOK}).fetchone()
        if due is not None and due[0] > now:
            return None
        values = {"now": now, "hour": first_at(now - FAILED_WITHIN_S)}
        found: dict[EndpointId, dict[str, float]] = {}
        for endpoint, number in connection.execute(LOOK_READY):
            found[endpoint] = {"pending": number}
        for endpoint, number, unsent, failed, first in connection.execute(LOOK_TIMED, values):
            of = found.setdefault(endpoint, {})
            of["pending"] = of.get("pending", 0) + unsent
            of |= {"awaiting_retry": number - unsent, "failed_last_hour": failed}
            of["oldest_pending"] = _made_at(first)
        for endpoint, number, failed in connection.execute(LOOK_DEAD, values):
            of = found.setdefault(endpoint, {})
            of |= {"dead": number, "failed_last_hour": of.get("failed_last_hour", 0) + failed}
        for endpoint, due_at, is_ready, first, waits in connection.execute(LOOK_OLDEST, values):
            of = found[endpoint]
            if is_ready:
                of["oldest_pending"] = min(_made_at(first), of.get("oldest_pending", now))
            if waits and endpoint not in held:
                of["oldest_due"] = min(due_at, of.get("oldest_due", now))
        return {
            endpoint: EndpointCounts(endpoint_id=endpoint, **of)  # type: ignore[arg-type]
            for endpoint, of in found.items()
        }
    finally:
        connection.execute("COMMIT")


def _store(
    connection: sqlite3.Connection, *, counted: dict[EndpointId, EndpointCounts], sample: HealthSample
) -> Generator[None, None, HealthSample | None]:
    if not claim(connection, LOOK, now=sample.at):
        return None
    stored = {row[0]: row for row in connection.execute(ALL_COUNTS).fetchall()}
    rows = [_row(each) for each in counted.values()]
    changed = [row for row in rows if stored.get(row[0]) != row]
    for start in range(0, len(changed), CHUNK):
        write_rows(connection, WRITE_COUNTS, changed[start : start + CHUNK])
        yield
    if gone := stored.keys() - counted.keys():
        connection.execute(DELETE_COUNTS, {"ids": packed(sorted(gone))})
    connection.execute(ADD_SAMPLE, {name: getattr(sample, name) for name in sample.__struct_fields__})
    connection.execute(THIN_SAMPLES, {"now": sample.at, "kept": SAMPLES_KEPT_S})
    move_on(connection, LOOK, next_at=next_look(now=sample.at, took=sample.took))
    return sample


def _sums(counts: Iterable[EndpointCounts], *, at: float, took: float) -> HealthSample:
    found = list(counts)
    return HealthSample(
        at=at,
        took=took,
        pending=sum(each.pending for each in found),
        awaiting_retry=sum(each.awaiting_retry for each in found),
        dead=sum(each.dead for each in found),
        failed_last_hour=sum(each.failed_last_hour for each in found),
        oldest_pending=min((x.oldest_pending for x in found if x.oldest_pending is not None), default=None),
        oldest_due=min((x.oldest_due for x in found if x.oldest_due is not None), default=None),
    )


def _made_at(id: bytes) -> float:
    """When an id was made: it begins with these milliseconds."""
    return int.from_bytes(id[:6]) / 1_000


def _row(counts: EndpointCounts) -> Row:
    return tuple(getattr(counts, name) for name in counts.__struct_fields__)


def _read(row: Row) -> EndpointCounts:
    return EndpointCounts(**dict(zip(EndpointCounts.__struct_fields__, row, strict=True)))
