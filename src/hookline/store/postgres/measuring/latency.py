"""Keeps the latencies of attempts in PostgreSQL.

Locks are taken in this order: the worker, then the row of the task that adds up hours. Under that row's lock nobody else
changes hours, so a fold sees which of them were added up already.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

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
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction
from hookline.store.postgres.driver.values import Columns

_ARRAYS = (
    "unnest(${}::uuid[], ${}::float8[], ${}::float8[], ${}::int[], ${}::int[], ${}::bytea[], ${}::bytea[])"
)
_COLUMNS = "endpoint_id, at, seconds, attempts, accepted, response, rest"
_READ = "{t}.endpoint_id, date_part('epoch', {t}.at) AS at, {t}.seconds, {t}.attempts, {t}.accepted, {t}.response, {t}.rest"

NEW_SOURCE = "SELECT nextval('latency_sources') AS source"

# Cells only grow. A flush that was believed lost and ends after a later one must not undo it.
FLUSH = f"""
WITH me AS MATERIALIZED (SELECT id FROM workers WHERE id = $1 AND buried_at IS NULL FOR KEY SHARE),
kept AS (
  INSERT INTO latency_minutes (endpoint_id, at, source, seconds, attempts, accepted, response, rest)
  SELECT c.endpoint_id, to_timestamp(c.at), $2::bigint, c.seconds, c.attempts, c.accepted, c.response, c.rest
  FROM me CROSS JOIN {_ARRAYS.format(*range(3, 10))} AS c ({_COLUMNS})
  ON CONFLICT (endpoint_id, at, source) DO UPDATE SET seconds = excluded.seconds, attempts = excluded.attempts,
    accepted = excluded.accepted, response = excluded.response, rest = excluded.rest
  WHERE excluded.attempts >= latency_minutes.attempts),
gone AS (DELETE FROM latency_log l USING me WHERE l.worker = me.id AND l.n <= $10)
SELECT id FROM me
"""
LOCK_LIVING = "SELECT id FROM workers WHERE id = $1 AND buried_at IS NULL FOR KEY SHARE"

# FOR UPDATE: two who bury one worker fold one after the other, and no settle of it is under way.
LOCK_BURIED = "SELECT id FROM workers WHERE id = $1 AND buried_at IS NOT NULL FOR UPDATE"
READ_LOG = """
SELECT n, date_part('epoch', minute) AS minute, samples, coalesce(late, '{}') AS late FROM latency_log
WHERE worker = $1 ORDER BY n LIMIT $2
"""
DELETE_LOG = "DELETE FROM latency_log WHERE worker = $1 AND n <= $2"
ADD_MINUTES = f"""
INSERT INTO latency_minutes (endpoint_id, at, source, seconds, attempts, accepted, response, rest)
SELECT c.endpoint_id, to_timestamp(c.at), $1::bigint, c.seconds, c.attempts, c.accepted, c.response, c.rest
FROM {_ARRAYS.format(*range(2, 9))} AS c ({_COLUMNS})
"""

CREATE_TASK = "INSERT INTO periodic_tasks (name) VALUES ($1) ON CONFLICT (name) DO NOTHING"
LOCK_TASK = "SELECT name FROM periodic_tasks WHERE name = $1 FOR UPDATE"
CLAIM_TASK = """
SELECT name FROM periodic_tasks WHERE name = $1 AND (next_at <= to_timestamp($2) OR $3) FOR UPDATE SKIP LOCKED
"""
MOVE_TASK = "UPDATE periodic_tasks SET next_at = to_timestamp($2) WHERE name = $1"
STEP_LEASE = 60.0  # seconds until another process continues what this one did not finish

# From one endpoint to the next, along the primary keys: the cost depends on the endpoints, not on their rows.
_NEXT = """
  (SELECT endpoint_id FROM {table} WHERE endpoint_id >= $1 ORDER BY endpoint_id LIMIT 1)
  UNION ALL
  SELECT n.endpoint_id FROM {name} CROSS JOIN LATERAL (
    SELECT t.endpoint_id FROM {table} t WHERE t.endpoint_id > {name}.endpoint_id ORDER BY t.endpoint_id LIMIT 1) n"""
NEXT_ENDPOINTS = f"""
WITH RECURSIVE minutes AS ({_NEXT.format(table="latency_minutes", name="minutes")}),
hours AS ({_NEXT.format(table="latency_hours", name="hours")}),
days AS ({_NEXT.format(table="latency_days", name="days")})
SELECT endpoint_id FROM ((SELECT endpoint_id FROM minutes LIMIT $2) UNION (SELECT endpoint_id FROM hours LIMIT $2)
  UNION (SELECT endpoint_id FROM days LIMIT $2)) e
ORDER BY endpoint_id LIMIT $2
"""

# When the hours of each endpoint were last added up, as the end of the last one.
ROLLED_OF_EACH = """
LEFT JOIN LATERAL (SELECT h.at + interval '1 hour' AS until FROM latency_hours h
  WHERE h.endpoint_id = e.endpoint_id ORDER BY h.at DESC LIMIT 1) rolled ON true"""
ROLLED = f"""
SELECT e.endpoint_id, date_part('epoch', rolled.until) AS until FROM unnest($1::uuid[]) AS e (endpoint_id) {ROLLED_OF_EACH}
WHERE rolled.until IS NOT NULL
"""
UNROLLED = f"""
SELECT {_READ.format(t="m")} FROM unnest($1::uuid[]) AS e (endpoint_id) {ROLLED_OF_EACH}
JOIN latency_minutes m ON m.endpoint_id = e.endpoint_id AND m.at >= coalesce(rolled.until, '-infinity')
  AND m.at < to_timestamp($2)
ORDER BY m.endpoint_id, m.at
"""
READ_MINUTES = f"""
SELECT {_READ.format(t="m")} FROM unnest($1::uuid[], $2::float8[]) AS e (endpoint_id, at)
JOIN latency_minutes m ON m.endpoint_id = e.endpoint_id AND m.at >= to_timestamp(e.at) AND m.at < to_timestamp(e.at + 3600)
ORDER BY m.endpoint_id, m.at
"""
READ_HOURS = f"""
SELECT {_READ.format(t="h")} FROM unnest($1::uuid[], $2::float8[]) AS e (endpoint_id, at)
JOIN latency_hours h ON h.endpoint_id = e.endpoint_id AND h.at = to_timestamp(e.at)
"""
WRITE_HOURS = f"""
INSERT INTO latency_hours ({_COLUMNS})
SELECT c.endpoint_id, to_timestamp(c.at), c.seconds, c.attempts, c.accepted, c.response, c.rest
FROM {_ARRAYS.format(*range(1, 8))} AS c ({_COLUMNS})
ON CONFLICT (endpoint_id, at) DO UPDATE SET seconds = excluded.seconds, attempts = excluded.attempts,
  accepted = excluded.accepted, response = excluded.response, rest = excluded.rest
"""
DELETE_MINUTES = "DELETE FROM latency_minutes WHERE endpoint_id = ANY($1::uuid[]) AND at < to_timestamp($2)"
DELETE_HOURS = "DELETE FROM latency_hours WHERE endpoint_id = ANY($1::uuid[]) AND at < to_timestamp($2)"

# A day is reckoned again when there are newer attempts, and every hour because old attempts leave it.
STALE_DAYS = """
SELECT e.endpoint_id FROM unnest($1::uuid[]) AS e (endpoint_id)
LEFT JOIN latency_days d ON d.endpoint_id = e.endpoint_id
LEFT JOIN LATERAL (SELECT m.at FROM latency_minutes m WHERE m.endpoint_id = e.endpoint_id ORDER BY m.at DESC LIMIT 1) m ON true
WHERE CASE WHEN d.as_of IS NULL THEN m.at >= to_timestamp($2 - 86400)
  ELSE d.as_of <= to_timestamp($2 - 3600) OR m.at + interval '1 minute' >= d.as_of END
ORDER BY e.endpoint_id
"""
WRITE_DAYS = """
INSERT INTO latency_days (endpoint_id, as_of, attempts, accepted, p50, p95, p99)
SELECT d.endpoint_id, to_timestamp(d.as_of), d.attempts, d.accepted, d.p50, d.p95, d.p99
FROM unnest($1::uuid[], $2::float8[], $3::bigint[], $4::bigint[], $5::float8[], $6::float8[], $7::float8[])
  AS d (endpoint_id, as_of, attempts, accepted, p50, p95, p99)
ON CONFLICT (endpoint_id) DO UPDATE SET as_of = excluded.as_of, attempts = excluded.attempts,
  accepted = excluded.accepted, p50 = excluded.p50, p95 = excluded.p95, p99 = excluded.p99
WHERE excluded.as_of >= latency_days.as_of
"""
DELETE_DAYS = "DELETE FROM latency_days WHERE endpoint_id = ANY($1::uuid[])"
_DAY = "endpoint_id, date_part('epoch', as_of) AS as_of, attempts, accepted, p50, p95, p99"
READ_DAYS = f"SELECT {_DAY} FROM latency_days WHERE endpoint_id = ANY($1::uuid[]) ORDER BY endpoint_id"
SLOWEST = f"""
SELECT {_DAY} FROM latency_days WHERE p95 IS NOT NULL AND p95 > $1 AND (p95, endpoint_id) < ($2, $3)
ORDER BY p95 DESC, endpoint_id DESC LIMIT $4
"""

# Hours from the first whole one up to what was added up, minutes before and after them.
WINDOW = """
WITH e AS MATERIALIZED (
  SELECT e.endpoint_id, least(to_timestamp($3),
    greatest(to_timestamp($4), least(coalesce(rolled.until, '-infinity'), to_timestamp($5)))) AS until
  FROM unnest($1::uuid[]) AS e (endpoint_id) {rolled})
SELECT true AS is_hour, {hour} FROM e JOIN latency_hours h ON h.endpoint_id = e.endpoint_id
  AND h.at >= to_timestamp($4) AND h.at < e.until
UNION ALL
SELECT false AS is_hour, {minute} FROM e JOIN latency_minutes m ON m.endpoint_id = e.endpoint_id
  AND m.at >= to_timestamp($2) AND m.at < to_timestamp(least($3, $4))
UNION ALL
SELECT false AS is_hour, {minute} FROM e JOIN latency_minutes m ON m.endpoint_id = e.endpoint_id
  AND m.at >= e.until AND m.at < to_timestamp($3)
"""


def _window(*, is_response_only: bool) -> str:
    hour, minute = _READ.format(t="h"), _READ.format(t="m")
    if is_response_only:
        hour, minute = (
            hour.replace("h.rest", "''::bytea AS rest"),
            minute.replace("m.rest", "''::bytea AS rest"),
        )
    return WINDOW.format(rolled=ROLLED_OF_EACH, hour=hour, minute=minute)


WINDOW_OF_ALL = _window(is_response_only=False)
WINDOW_OF_RESPONSES = _window(is_response_only=True)


class PostgresLatency(PostgresSessions):
    """The contract's verbs about latencies."""

    async def new_latency_source(self) -> int:
        """See the contract."""
        [[source]] = await self._settle.fetch(NEW_SOURCE)
        return int(source)

    async def flush_latencies(
        self,
        worker: WorkerId,
        cells: Sequence[LatencyCell],
        *,
        source: int,
        n: int,
        math: LatencyMath,
        now: float,
    ) -> bool:
        """See the contract."""
        values = (worker, source, *_columns(cells), n)
        late = may_be_rolled(cells, now=now)
        if not late:
            return bool(await self._settle.fetch(FLUSH, *values))
        return await self._settle.transaction(partial(_flush_late, values, late, math=math, now=now))

    @in_transaction
    async def fold_latencies(
        self, connection: Connection, worker: WorkerId, *, math: LatencyMath, now: float
    ) -> bool:
        """See the contract."""
        if not await connection.fetch(LOCK_BURIED, worker):
            return False
        logged = await connection.fetch(READ_LOG, worker, FOLD_CHUNK)
        if not logged:
            return False
        cells = math.cells([LoggedBatch(row["minute"], row["samples"], tuple(row["late"])) for row in logged])
        if cells:
            await _add(connection, cells, math=math, now=now)
        await connection.fetch(DELETE_LOG, worker, logged[-1]["n"])
        return True

    @in_transaction
    async def roll_latencies(
        self,
        connection: Connection,
        *,
        after: EndpointId | None,
        math: LatencyMath,
        now: float,
        next_at: float,
    ) -> LatencySlice | None:
        """See the contract."""
        step = await _claim(connection, ROLL_TASK, after, limit=ROLL_CHUNK, now=now, next_at=next_at)
        if step is None:
            return None
        ids = step.endpoints
        minutes = _cells(await connection.fetch(UNROLLED, ids, hour_of(now - ROLL_AFTER)))
        await connection.fetch(WRITE_HOURS, *_columns(by_hour(minutes, math)))
        await connection.fetch(DELETE_MINUTES, ids, minutes_end(now))
        await connection.fetch(DELETE_HOURS, ids, hour_of(now - HOURS_KEPT))
        return step

    @in_transaction
    async def claim_latency_days(
        self,
        connection: Connection,
        *,
        after: EndpointId | None,
        limit: int,
        now: float,
        next_at: float,
    ) -> LatencySlice | None:
        """See the contract."""
        step = await _claim(connection, DAYS_TASK, after, limit=limit, now=now, next_at=next_at)
        if step is None:
            return None
        stale = await connection.fetch(STALE_DAYS, step.endpoints, now)
        return LatencySlice(tuple(row["endpoint_id"] for row in stale), step.after)

    @in_transaction
    async def write_latency_days(self, connection: Connection, days: Sequence[LatencyDay]) -> None:
        """See the contract."""
        some = [day for day in days if day.attempts]
        await connection.fetch(
            WRITE_DAYS,
            [day.endpoint_id for day in some],
            [day.as_of for day in some],
            [day.attempts for day in some],
            [day.accepted for day in some],
            [day.p50 for day in some],
            [day.p95 for day in some],
            [day.p99 for day in some],
        )
        await connection.fetch(DELETE_DAYS, [day.endpoint_id for day in days if not day.attempts])

    async def latency_window(
        self, endpoints: Sequence[EndpointId], *, since: float, until: float, is_response_only: bool = False
    ) -> list[LatencyPart]:
        """See the contract."""
        statement = WINDOW_OF_RESPONSES if is_response_only else WINDOW_OF_ALL
        hours = next_hour(since), hour_of(until)
        found = await self._lists.fetch(statement, endpoints, since, until, *hours)
        parts = [LatencyPart(LatencyCell(*row), is_hour) for is_hour, *row in found]
        return sorted(parts, key=lambda part: part.cell.at)

    async def latency_days(self, endpoints: Sequence[EndpointId]) -> list[LatencyDay]:
        """See the contract."""
        return [LatencyDay(**row) for row in await self._general.fetch(READ_DAYS, endpoints)]

    async def slowest(
        self, *, after: tuple[float, EndpointId] | None, above: float, limit: int
    ) -> list[LatencyDay]:
        """See the contract."""
        p95, id = after or (float("inf"), EndpointId(b"\xff" * 16))
        return [LatencyDay(**row) for row in await self._general.fetch(SLOWEST, above, p95, id, limit)]


async def _flush_late(
    values: Sequence[object],
    places: Sequence[Place],
    connection: Connection,
    *,
    math: LatencyMath,
    now: float,
) -> bool:
    """Flush minutes of hours that may be added up already, and add up those again."""
    if not await connection.fetch(LOCK_LIVING, values[0]):
        return False
    await _lock_hours(connection)
    await connection.fetch(FLUSH, *values)
    again, _ = to_roll_again(places, await _rolled(connection, places), now=now)
    await _roll_again(connection, again, math)
    return True


async def _add(
    connection: Connection, cells: Sequence[LatencyCell], *, math: LatencyMath, now: float
) -> None:
    """Add minutes of a dead worker, also to the hours that were added up without them."""
    await _lock_hours(connection)
    where = placed(cells, await _rolled(connection, map(place_of, cells)), now=now)
    [[source]] = await connection.fetch(NEW_SOURCE)
    await connection.fetch(ADD_MINUTES, source, *_columns(where.minutes))
    await _roll_again(connection, where.again, math)
    if where.old:
        kept = {place_of(cell): cell for cell in await _read(connection, READ_HOURS, list(where.old))}
        more = [math.hour(minutes, kept.get(place)) for place, minutes in where.old.items()]
        await connection.fetch(WRITE_HOURS, *_columns(more))


async def _lock_hours(connection: Connection) -> None:
    await connection.fetch(CREATE_TASK, ROLL_TASK)
    await connection.fetch(LOCK_TASK, ROLL_TASK)


async def _rolled(connection: Connection, places: Iterable[Place]) -> dict[EndpointId, float]:
    """Until when the hours of these endpoints were added up."""
    found = await connection.fetch(ROLLED, sorted({id for id, _ in places}))
    return {row["endpoint_id"]: row["until"] for row in found}


async def _roll_again(connection: Connection, places: Sequence[Place], math: LatencyMath) -> None:
    if places:
        minutes = await _read(connection, READ_MINUTES, places)
        await connection.fetch(WRITE_HOURS, *_columns(by_hour(minutes, math)))


async def _read(connection: Connection, statement: str, places: Sequence[Place]) -> list[LatencyCell]:
    return _cells(await connection.fetch(statement, [id for id, _ in places], [at for _, at in places]))


async def _claim(
    connection: Connection, task: str, after: EndpointId | None, *, limit: int, now: float, next_at: float
) -> LatencySlice | None:
    """Do the next step of a task; the caller's transaction holds it until its end."""
    await connection.fetch(CREATE_TASK, task)
    if not await connection.fetch(CLAIM_TASK, task, now, after is not None):
        return None
    first = bytes(16) if after is None else (int.from_bytes(after) + 1).to_bytes(16)
    ids = tuple(row["endpoint_id"] for row in await connection.fetch(NEXT_ENDPOINTS, first, limit))
    last = ids[-1] if len(ids) == limit else None
    await connection.fetch(MOVE_TASK, task, next_at if last is None else now + STEP_LEASE)
    return LatencySlice(ids, last)


def _cells(rows: Iterable[Any]) -> list[LatencyCell]:
    return [LatencyCell(*row) for row in rows]


def _columns(cells: Sequence[LatencyCell]) -> Columns:
    return [
        [cell.endpoint_id for cell in cells],
        [cell.at for cell in cells],
        [cell.seconds for cell in cells],
        [cell.attempts for cell in cells],
        [cell.accepted for cell in cells],
        [cell.response for cell in cells],
        [cell.rest for cell in cells],
    ]
