"""Keeps the latencies of attempts in SQLite.

Everything that writes runs on the one writer, so nobody else changes hours meanwhile.
"""

import sqlite3
from collections.abc import Generator, Iterable, Sequence
from functools import partial

from hookline.model import EndpointId, WorkerId
from hookline.store.contract.measuring.latency import (
    DAYS_TASK,
    FOLD_CHUNK,
    HOURS_KEPT,
    ROLL_AFTER,
    ROLL_CHUNK,
    ROLL_TASK,
    LatencyCell,
    LatencyDay,
    LatencyMath,
    LatencyPart,
    LatencySlice,
    LoggedBatch,
)
from hookline.store.latency_hours import (
    Place,
    by_hour,
    hour_of,
    may_be_rolled,
    minutes_end,
    next_hour,
    place_of,
    placed,
    to_roll_again,
)
from hookline.store.sqlite.driver.bulk import Row, write_rows
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer

_COLUMNS = "endpoint_id, at, seconds, attempts, accepted, response, rest"

NEW_SOURCE = "UPDATE latency_sources SET n = n + 1 RETURNING n"

IS_LIVING = "SELECT count(*) FROM workers WHERE id = :worker AND buried_at IS NULL"
# Cells only grow. A flush that was believed lost and ends after a later one must not undo it.
FLUSH = f"""
WITH source (n) AS (VALUES (?)), c ({_COLUMNS}) AS (VALUES {{rows}})
INSERT INTO latency_minutes (source, {_COLUMNS}) SELECT source.n, c.* FROM source CROSS JOIN c WHERE true
ON CONFLICT (endpoint_id, at, source) DO UPDATE SET seconds = excluded.seconds, attempts = excluded.attempts,
  accepted = excluded.accepted, response = excluded.response, rest = excluded.rest
WHERE excluded.attempts >= latency_minutes.attempts
"""
DELETE_LOG = "DELETE FROM latency_log WHERE worker = :worker AND n <= :n"

IS_BURIED = "SELECT count(*) FROM workers WHERE id = :worker AND buried_at IS NOT NULL"
READ_LOG = "SELECT n, minute, samples, late FROM latency_log WHERE worker = :worker ORDER BY n LIMIT :limit"

CREATE_TASK = "INSERT OR IGNORE INTO periodic_tasks (name) VALUES (:name)"
CLAIM_TASK = "SELECT count(*) FROM periodic_tasks WHERE name = :name AND (next_at <= :now OR :is_begun)"
MOVE_TASK = "UPDATE periodic_tasks SET next_at = :next_at WHERE name = :name"
STEP_LEASE = 60.0  # seconds until another process continues what this one did not finish

# From one endpoint to the next, along the primary keys: the cost depends on the endpoints, not on their rows.
_NEXT = """
  SELECT min(endpoint_id) FROM {table} WHERE endpoint_id >= :first
  UNION ALL
  SELECT (SELECT min(t.endpoint_id) FROM {table} t WHERE t.endpoint_id > {name}.id) FROM {name} WHERE {name}.id IS NOT NULL
  LIMIT :limit"""
NEXT_ENDPOINTS = f"""
WITH RECURSIVE minutes (id) AS ({_NEXT.format(table="latency_minutes", name="minutes")}),
hours (id) AS ({_NEXT.format(table="latency_hours", name="hours")}),
days (id) AS ({_NEXT.format(table="latency_days", name="days")})
SELECT id FROM (SELECT id FROM minutes UNION SELECT id FROM hours UNION SELECT id FROM days)
WHERE id IS NOT NULL ORDER BY id LIMIT :limit
"""

ROLLED = "SELECT max(at) + 3600.0 FROM latency_hours WHERE endpoint_id = :id"
READ_MINUTES = f"""
SELECT {_COLUMNS} FROM latency_minutes WHERE endpoint_id = :id AND at >= :since AND at < :until ORDER BY at
"""
READ_RESPONSES = READ_MINUTES.replace("rest FROM", "x'' FROM")
READ_HOURS = f"""
SELECT {_COLUMNS} FROM latency_hours WHERE endpoint_id = :id AND at >= :since AND at < :until ORDER BY at
"""
READ_HOUR_RESPONSES = READ_HOURS.replace("rest FROM", "x'' FROM")
WRITE_HOURS = f"""
WITH c ({_COLUMNS}) AS (VALUES {{rows}})
INSERT INTO latency_hours ({_COLUMNS}) SELECT c.* FROM c WHERE true
ON CONFLICT (endpoint_id, at) DO UPDATE SET seconds = excluded.seconds, attempts = excluded.attempts,
  accepted = excluded.accepted, response = excluded.response, rest = excluded.rest
"""
DELETE_MINUTES = "DELETE FROM latency_minutes WHERE endpoint_id = :id AND at < :until"
DELETE_HOURS = "DELETE FROM latency_hours WHERE endpoint_id = :id AND at < :until"

# A day is reckoned again when there are newer attempts, and every hour because old attempts leave it.
NEWEST = """
SELECT (SELECT max(at) FROM latency_minutes WHERE endpoint_id = :id), (SELECT as_of FROM latency_days WHERE endpoint_id = :id)
"""
WRITE_DAY = """
INSERT INTO latency_days (endpoint_id, as_of, attempts, accepted, p50, p95, p99)
VALUES (:endpoint_id, :as_of, :attempts, :accepted, :p50, :p95, :p99)
ON CONFLICT (endpoint_id) DO UPDATE SET as_of = excluded.as_of, attempts = excluded.attempts,
  accepted = excluded.accepted, p50 = excluded.p50, p95 = excluded.p95, p99 = excluded.p99
WHERE excluded.as_of >= latency_days.as_of
"""
DELETE_DAY = "DELETE FROM latency_days WHERE endpoint_id = :id"
_DAY = "endpoint_id, as_of, attempts, accepted, p50, p95, p99"
READ_DAY = f"SELECT {_DAY} FROM latency_days WHERE endpoint_id = :id"
SLOWEST = f"""
SELECT {_DAY} FROM latency_days WHERE p95 IS NOT NULL AND p95 > :above AND (p95, endpoint_id) < (:p95, :id)
ORDER BY p95 DESC, endpoint_id DESC LIMIT :limit
"""


class SqliteLatency(SqliteConnections):
    """The contract's verbs about latencies."""

    @on_writer
    def new_latency_source(self, connection: sqlite3.Connection) -> int:
        """A number under which a worker writes minutes; never given twice."""
        return _new_source(connection)

    @on_writer
    def flush_latencies(
        self,
        connection: sqlite3.Connection,
        worker: WorkerId,
        cells: Sequence[LatencyCell],
        *,
        source: int,
        n: int,
        math: LatencyMath,
        now: float,
    ) -> bool:
        """Fenced, in one commit: replace these minutes, and delete the worker's log up to batch `n`."""
        (is_living,) = connection.execute(IS_LIVING, {"worker": worker}).fetchone()
        if not is_living:
            return False
        write_rows(connection, FLUSH, _rows(cells), first=(source,))
        connection.execute(DELETE_LOG, {"worker": worker, "n": n})
        if late := may_be_rolled(cells, now=now):
            again, _ = to_roll_again(late, _rolled(connection, late), now=now)
            _roll_again(connection, again, math)
        return True

    @on_writer
    def fold_latencies(
        self, connection: sqlite3.Connection, worker: WorkerId, *, math: LatencyMath, now: float
    ) -> bool:
        """Turn up to FOLD_CHUNK logged batches of a buried worker into minutes of a new source."""
        (is_buried,) = connection.execute(IS_BURIED, {"worker": worker}).fetchone()
        if not is_buried:
            return False
        logged = connection.execute(READ_LOG, {"worker": worker, "limit": FOLD_CHUNK}).fetchall()
        if not logged:
            return False
        batches = [LoggedBatch(minute, samples, _positions(late)) for _, minute, samples, late in logged]
        if cells := math.cells(batches):
            _add(connection, cells, math=math, now=now)
        connection.execute(DELETE_LOG, {"worker": worker, "n": logged[-1][0]})
        return True

    async def roll_latencies(
        self, *, after: EndpointId | None, math: LatencyMath, now: float, next_at: float
    ) -> LatencySlice | None:
        """Add up the ended hours of the next ROLL_CHUNK endpoints, and delete what is kept no longer."""
        return await self._write(partial(_roll, after=after, math=math, now=now, next_at=next_at))

    @on_writer
    def claim_latency_days(
        self,
        connection: sqlite3.Connection,
        *,
        after: EndpointId | None,
        limit: int,
        now: float,
        next_at: float,
    ) -> LatencySlice | None:
        """The ones of the next `limit` endpoints whose day is to be reckoned again."""
        step = _claim(connection, DAYS_TASK, after, limit=limit, now=now, next_at=next_at)
        if step is None:
            return None
        stale = tuple(id for id in step.endpoints if _is_stale(connection, id, now=now))
        return LatencySlice(stale, step.after)

    @on_writer
    def write_latency_days(self, connection: sqlite3.Connection, days: Sequence[LatencyDay]) -> None:
        """Store these days; one of an endpoint without attempts is deleted."""
        for day in days:
            if day.attempts:
                connection.execute(WRITE_DAY, {name: getattr(day, name) for name in day.__struct_fields__})
            else:
                connection.execute(DELETE_DAY, {"id": day.endpoint_id})

    @on_lister
    def latency_window(
        self,
        connection: sqlite3.Connection,
        endpoints: Sequence[EndpointId],
        *,
        since: float,
        until: float,
        is_response_only: bool = False,
    ) -> list[LatencyPart]:
        """The minutes and hours of these endpoints from `since` to before `until`, oldest first."""
        connection.execute("BEGIN")  # one snapshot
        try:
            parts = [
                part
                for id in endpoints
                for part in _window(
                    connection, id, since=since, until=until, is_response_only=is_response_only
                )
            ]
        finally:
            connection.execute("ROLLBACK")
        return sorted(parts, key=lambda part: part.cell.at)

    @on_lister
    def latency_days(
        self, connection: sqlite3.Connection, endpoints: Sequence[EndpointId]
    ) -> list[LatencyDay]:
        """The ones of these endpoints that had attempts in their last day."""
        rows = (connection.execute(READ_DAY, {"id": id}).fetchone() for id in sorted(set(endpoints)))
        return [_day(row) for row in rows if row is not None]

    @on_lister
    def slowest(
        self,
        connection: sqlite3.Connection,
        *,
        after: tuple[float, EndpointId] | None,
        above: float,
        limit: int,
    ) -> list[LatencyDay]:
        """Endpoints whose p95 is above so many seconds, slowest first."""
        p95, id = after or (float("inf"), EndpointId(b"\xff" * 16))
        values = {"above": above, "p95": p95, "id": id, "limit": limit}
        return [_day(row) for row in connection.execute(SLOWEST, values)]


def _new_source(connection: sqlite3.Connection) -> int:
    [(source,)] = connection.execute(NEW_SOURCE).fetchall()
    return int(source)


def _roll(
    connection: sqlite3.Connection,
    *,
    after: EndpointId | None,
    math: LatencyMath,
    now: float,
    next_at: float,
) -> Generator[None, None, LatencySlice | None]:
    """One step; others have their turn on the thread after each endpoint."""
    step = _claim(connection, ROLL_TASK, after, limit=ROLL_CHUNK, now=now, next_at=next_at)
    if step is None:
        return None
    for id in step.endpoints:
        (rolled,) = connection.execute(ROLLED, {"id": id}).fetchone()
        since = float("-inf") if rolled is None else rolled
        minutes = _read(connection, READ_MINUTES, id, since=since, until=hour_of(now - ROLL_AFTER))
        write_rows(connection, WRITE_HOURS, _rows(by_hour(minutes, math)))
        connection.execute(DELETE_MINUTES, {"id": id, "until": minutes_end(now)})
        connection.execute(DELETE_HOURS, {"id": id, "until": hour_of(now - HOURS_KEPT)})
        yield
    return step


def _add(
    connection: sqlite3.Connection, cells: Sequence[LatencyCell], *, math: LatencyMath, now: float
) -> None:
    """Add minutes of a dead worker, also to the hours that were added up without them."""
    where = placed(cells, _rolled(connection, map(place_of, cells)), now=now)
    write_rows(connection, FLUSH, _rows(where.minutes), first=(_new_source(connection),))
    _roll_again(connection, where.again, math)
    for (id, hour), minutes in where.old.items():
        kept = _read(connection, READ_HOURS, id, since=hour, until=hour + 1.0)
        write_rows(connection, WRITE_HOURS, _rows([math.hour(minutes, kept[0] if kept else None)]))


def _rolled(connection: sqlite3.Connection, places: Iterable[Place]) -> dict[EndpointId, float]:
    """Until when the hours of these endpoints were added up."""
    ends = {id: connection.execute(ROLLED, {"id": id}).fetchone()[0] for id in {id for id, _ in places}}
    return {id: end for id, end in ends.items() if end is not None}


def _roll_again(connection: sqlite3.Connection, places: Iterable[Place], math: LatencyMath) -> None:
    for id, hour in places:
        minutes = _read(connection, READ_MINUTES, id, since=hour, until=hour + 3_600.0)
        write_rows(connection, WRITE_HOURS, _rows(by_hour(minutes, math)))


def _claim(
    connection: sqlite3.Connection,
    task: str,
    after: EndpointId | None,
    *,
    limit: int,
    now: float,
    next_at: float,
) -> LatencySlice | None:
    connection.execute(CREATE_TASK, {"name": task})
    values = {"name": task, "now": now, "is_begun": after is not None}
    (is_due,) = connection.execute(CLAIM_TASK, values).fetchone()
    if not is_due:
        return None
    first = bytes(16) if after is None else (int.from_bytes(after) + 1).to_bytes(16)
    found = connection.execute(NEXT_ENDPOINTS, {"first": first, "limit": limit}).fetchall()
    ids = tuple(EndpointId(id) for (id,) in found)
    last = ids[-1] if len(ids) == limit else None
    connection.execute(MOVE_TASK, {"name": task, "next_at": next_at if last is None else now + STEP_LEASE})
    return LatencySlice(ids, last)


def _is_stale(connection: sqlite3.Connection, id: EndpointId, *, now: float) -> bool:
    newest, as_of = connection.execute(NEWEST, {"id": id}).fetchone()
    if as_of is None:
        return newest is not None and newest >= now - 86_400.0
    return as_of <= now - 3_600.0 or (newest is not None and newest + 60.0 >= as_of)


def _window(
    connection: sqlite3.Connection, id: EndpointId, *, since: float, until: float, is_response_only: bool
) -> Iterable[LatencyPart]:
    """Hours from the first whole one up to what was added up, minutes before and after them."""
    minutes, hours = (READ_RESPONSES, READ_HOUR_RESPONSES) if is_response_only else (READ_MINUTES, READ_HOURS)
    (rolled,) = connection.execute(ROLLED, {"id": id}).fetchone()
    first = min(until, next_hour(since))
    last = max(first, min(float("-inf") if rolled is None else rolled, hour_of(until)))
    for cell in _read(connection, minutes, id, since=since, until=first):
        yield LatencyPart(cell, is_hour=False)
    for cell in _read(connection, hours, id, since=first, until=last):
        yield LatencyPart(cell, is_hour=True)
    for cell in _read(connection, minutes, id, since=last, until=until):
        yield LatencyPart(cell, is_hour=False)


def _read(
    connection: sqlite3.Connection, statement: str, id: EndpointId, *, since: float, until: float
) -> list[LatencyCell]:
    rows = connection.execute(statement, {"id": id, "since": since, "until": until}).fetchall()
    return [LatencyCell(*row) for row in rows]


def _day(row: Row) -> LatencyDay:
    return LatencyDay(**dict(zip(LatencyDay.__struct_fields__, row, strict=True)))


def _positions(late: str | None) -> tuple[int, ...]:
    return () if late is None else tuple(map(int, late.split(",")))


def _rows(cells: Iterable[LatencyCell]) -> list[Row]:
    return [
        (
            bytearray(cell.endpoint_id),
            cell.at,
            cell.seconds,
            cell.attempts,
            cell.accepted,
            bytearray(cell.response),
            bytearray(cell.rest),
        )
        for cell in cells
    ]
