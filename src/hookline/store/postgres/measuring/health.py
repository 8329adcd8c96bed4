"""Counts what waits and what is dead on PostgreSQL."""

from collections.abc import Sequence
from typing import Any

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
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.figures import FIRST_OF_LANES, WAITS
from hookline.store.postgres.measuring.periodic_tasks import claim, move_on

# An id begins with the milliseconds at which it was made. PostgreSQL 15 has no min(uuid): ids are compared as text.
_MADE_AT = "to_timestamp(('x' || left({id}, 8) || substr({id}, 10, 4))::bit(48)::bigint / 1000.0)"

# In one statement, so that all counts are of one snapshot. Only rows that differ are written: most endpoints have
# nothing waiting, and the counts of those that have mostly stay the same from one look to the next.
LOOK_COUNTS = f"""
WITH RECURSIVE {FIRST_OF_LANES},
due AS (
  SELECT w.endpoint_id, min(w.due_at) AS due_at
  FROM (SELECT endpoint_id, due_at FROM ready UNION ALL SELECT endpoint_id, due_at FROM timed) w
  JOIN lanes l USING (endpoint_id)
  WHERE {WAITS} AND NOT w.endpoint_id = ANY($3::uuid[]) GROUP BY w.endpoint_id),
parts (endpoint_id, pending, awaiting_retry, dead, failed_last_hour, oldest) AS (
  SELECT endpoint_id, count(*), 0, 0, 0, NULL::timestamptz FROM deliveries
  WHERE state = 'pending' AND queue = 'ready' GROUP BY endpoint_id
  UNION ALL
  SELECT endpoint_id, 0, 0, 0, 0, {_MADE_AT.format(id="id::text")} FROM ready
  UNION ALL
  SELECT endpoint_id, unsent, n - unsent, 0, failed, {_MADE_AT.format(id="first")} FROM (
    SELECT endpoint_id, count(*) AS n, count(*) FILTER (WHERE attempts = 0) AS unsent,
      count(*) FILTER (WHERE attempts > 0 AND id >= $2) AS failed, min(id::text COLLATE "C") AS first
    FROM deliveries WHERE state = 'pending' AND queue = 'timed' GROUP BY endpoint_id) t
  UNION ALL
  SELECT endpoint_id, 0, 0, count(*), count(*) FILTER (WHERE id >= $2), NULL FROM deliveries
  WHERE state = 'dead' GROUP BY endpoint_id),
counted AS MATERIALIZED (
  SELECT p.*, due.due_at AS oldest_due FROM (
    SELECT endpoint_id, sum(pending)::int AS pending, sum(awaiting_retry)::int AS awaiting_retry, sum(dead)::int AS dead,
      sum(failed_last_hour)::int AS failed_last_hour, min(oldest) AS oldest_pending
    FROM parts GROUP BY endpoint_id) p
  LEFT JOIN due USING (endpoint_id)),
written AS (
  INSERT INTO endpoint_counts
    (endpoint_id, pending, awaiting_retry, dead, failed_last_hour, oldest_pending, oldest_due)
  SELECT k.* FROM counted k LEFT JOIN endpoint_counts c USING (endpoint_id)
  WHERE c.endpoint_id IS NULL
    OR (c.pending, c.awaiting_retry, c.dead, c.failed_last_hour, c.oldest_pending, c.oldest_due)
      IS DISTINCT FROM (k.pending, k.awaiting_retry, k.dead, k.failed_last_hour, k.oldest_pending, k.oldest_due)
  ON CONFLICT (endpoint_id) DO UPDATE SET pending = excluded.pending, awaiting_retry = excluded.awaiting_retry,
    dead = excluded.dead, failed_last_hour = excluded.failed_last_hour,
    oldest_pending = excluded.oldest_pending, oldest_due = excluded.oldest_due),
gone AS (
  DELETE FROM endpoint_counts c WHERE NOT EXISTS (SELECT FROM counted k WHERE k.endpoint_id = c.endpoint_id))
SELECT coalesce(sum(pending), 0)::bigint AS pending, coalesce(sum(awaiting_retry), 0)::bigint AS awaiting_retry,
  coalesce(sum(dead), 0)::bigint AS dead, coalesce(sum(failed_last_hour), 0)::bigint AS failed_last_hour,
  date_part('epoch', min(oldest_pending)) AS oldest_pending, date_part('epoch', min(oldest_due)) AS oldest_due,
  date_part('epoch', clock_timestamp() - now()) AS took
FROM counted
"""
ADD_SAMPLE = """
INSERT INTO health_samples (at, took, pending, awaiting_retry, dead, failed_last_hour, oldest_pending, oldest_due)
VALUES (to_timestamp($1), $2, $3, $4, $5, $6, to_timestamp($7), to_timestamp($8)) ON CONFLICT (at) DO NOTHING
"""
# Of each minute the first one stays, and the newest of all.
THIN_SAMPLES = """
DELETE FROM health_samples s WHERE s.at < to_timestamp($1::float8 - $2::float8)
  OR s.at >= to_timestamp($1::float8 - 3600) AND s.at < to_timestamp($1) AND EXISTS (
    SELECT FROM health_samples e WHERE e.at < s.at AND e.at >= date_trunc('minute', s.at))
"""
READ_SAMPLES = """
SELECT date_part('epoch', at) AS at, took, pending, awaiting_retry, dead, failed_last_hour,
  date_part('epoch', oldest_pending) AS oldest_pending, date_part('epoch', oldest_due) AS oldest_due
FROM health_samples WHERE at >= to_timestamp($1) ORDER BY at
"""
_COUNTS = """
SELECT c.endpoint_id, c.pending, c.awaiting_retry, c.dead, c.failed_last_hour,
  date_part('epoch', c.oldest_pending) AS oldest_pending, date_part('epoch', c.oldest_due) AS oldest_due
FROM endpoint_counts c"""
READ_COUNTS = f"{_COUNTS} WHERE c.endpoint_id = ANY($1::uuid[]) ORDER BY c.endpoint_id"
LIST_COUNTS = f"{_COUNTS} WHERE $1::uuid IS NULL OR c.endpoint_id < $1 ORDER BY c.endpoint_id DESC LIMIT $2"
ACCOUNT_COUNTS = """
SELECT coalesce(sum(c.pending), 0)::bigint AS pending, coalesce(sum(c.awaiting_retry), 0)::bigint AS awaiting_retry,
  coalesce(sum(c.dead), 0)::bigint AS dead, coalesce(sum(c.failed_last_hour), 0)::bigint AS failed_last_hour,
  date_part('epoch', min(c.oldest_pending)) AS oldest_pending, date_part('epoch', min(c.oldest_due)) AS oldest_due
FROM endpoint_counts c JOIN endpoints e ON e.id = c.endpoint_id WHERE e.account = $1
"""
# An endpoint without a circuit breaker has none that could be open, whatever its lane still says.
OPEN_CIRCUITS = """
SELECT count(*) AS n FROM lanes l JOIN endpoints e ON e.id = l.endpoint_id
WHERE l.circuit <> 'closed' AND e.circuit IS NOT NULL AND ($1::text IS NULL OR e.account = $1)
"""
_TOTALS = """
SELECT coalesce(sum(m.attempts), 0)::bigint AS attempts, coalesce(sum(m.accepted), 0)::bigint AS accepted,
  coalesce(sum(m.seconds), 0)::float8 AS seconds, coalesce(array_agg(m.rest), '{}') AS rest"""
# The row of no endpoint is the sum of all.
TOTALS = f"{_TOTALS} FROM latency_minutes m WHERE m.endpoint_id = $2 AND m.at >= to_timestamp($1)"
TOTALS_OF_ACCOUNT = f"""{_TOTALS}
FROM endpoints e JOIN latency_minutes m ON m.endpoint_id = e.id WHERE e.account = $2 AND m.at >= to_timestamp($1)
"""


class PostgresHealth(PostgresSessions):
    """The contract's verbs about health."""

    async def look(self, *, now: float, held: Sequence[EndpointId] = ()) -> HealthSample | None:
        """See the contract."""

        async def work(connection: Connection) -> HealthSample | None:
            if not await claim(connection, LOOK, now=now):
                return None
            [sums] = await connection.fetch(LOOK_COUNTS, now, first_at(now - FAILED_WITHIN_S), list(held))
            sample = HealthSample(at=now, **sums)
            await connection.fetch(
                ADD_SAMPLE,
                sample.at,
                sample.took,
                sample.pending,
                sample.awaiting_retry,
                sample.dead,
                sample.failed_last_hour,
                sample.oldest_pending,
                sample.oldest_due,
            )
            await connection.fetch(THIN_SAMPLES, now, SAMPLES_KEPT_S)
            await move_on(connection, LOOK, next_at=next_look(now=now, took=sample.took))
            return sample

        return await self._tasks.transaction(work)

    async def health_samples(self, *, since: float) -> list[HealthSample]:
        """See the contract."""
        return [HealthSample(**row) for row in await self._general.fetch(READ_SAMPLES, since)]

    async def endpoint_counts(self, ids: Sequence[EndpointId]) -> list[EndpointCounts]:
        """See the contract."""
        return _counts(await self._general.fetch(READ_COUNTS, list(ids)))

    async def all_counts(self, *, after: EndpointId | None, limit: int) -> list[EndpointCounts]:
        """See the contract."""
        return _counts(await self._general.fetch(LIST_COUNTS, after, limit))

    async def account_counts(self, account: str) -> EndpointCounts:
        """See the contract."""
        [sums] = await self._general.fetch(ACCOUNT_COUNTS, account)
        return EndpointCounts(endpoint_id=NO_ENDPOINT, **sums)

    async def open_circuits(self, *, account: str | None = None) -> int:
        """See the contract."""
        [found] = await self._general.fetch(OPEN_CIRCUITS, account)
        return int(found["n"])

    async def attempt_totals(self, *, since: float, account: str | None = None) -> AttemptTotals:
        """See the contract."""
        if account is None:
            [sums] = await self._general.fetch(TOTALS, since, NO_ENDPOINT)
        else:
            [sums] = await self._general.fetch(TOTALS_OF_ACCOUNT, since, account)
        return AttemptTotals(sums["attempts"], sums["accepted"], sums["seconds"], tuple(sums["rest"]))


def _counts(rows: Sequence[Any]) -> list[EndpointCounts]:
    return [EndpointCounts(**row) for row in rows]
