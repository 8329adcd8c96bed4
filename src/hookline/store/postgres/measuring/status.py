"""Tells from stored counts which endpoints fail, on PostgreSQL."""

from hookline.store.contract.measuring.health import EndpointCounts
from hookline.store.contract.measuring.status import FailingCounts, FailingSlice, StatusCounts
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.postgres.driver.sessions import PostgresSessions

# From one endpoint with minutes to the next, along the primary key: their other minutes are not read. Who accepted
# something in its newest minute and failed nothing for the last one is back, although both may be the same minute.
FAILING = """
WITH RECURSIVE ids AS (
  (SELECT endpoint_id FROM latency_minutes WHERE endpoint_id > $5 ORDER BY endpoint_id LIMIT 1)
  UNION ALL
  SELECT n.endpoint_id FROM ids CROSS JOIN LATERAL (
    SELECT t.endpoint_id FROM latency_minutes t WHERE t.endpoint_id > ids.endpoint_id ORDER BY t.endpoint_id LIMIT 1) n),
known (id, attempts, accepted, fails_now, is_open) AS (
  SELECT ids.endpoint_id, m.attempts, m.accepted, m.fails_now, false
  FROM ids LEFT JOIN lanes l ON l.endpoint_id = ids.endpoint_id CROSS JOIN LATERAL (
    SELECT sum(m.attempts) AS attempts, sum(m.accepted) AS accepted,
      (array_agg(m.accepted < m.attempts
        AND NOT (m.accepted > 0 AND coalesce(l.last_failure_at < to_timestamp($1 + 840), false)) ORDER BY m.at DESC))[1]
      AS fails_now
    FROM latency_minutes m WHERE m.endpoint_id = ids.endpoint_id AND m.at >= to_timestamp($1)) m
  WHERE m.attempts IS NOT NULL
  UNION ALL
  SELECT l.endpoint_id, 0, 0, false, true FROM lanes l JOIN endpoints e ON e.id = l.endpoint_id
  WHERE l.circuit <> 'closed' AND e.circuit IS NOT NULL),
active (id, attempts, accepted, is_failing) AS MATERIALIZED (
  SELECT k.id, sum(k.attempts), sum(k.accepted),
    bool_or(k.is_open) OR bool_or(k.fails_now) AND sum(k.attempts) >= $2 AND 2 * sum(k.accepted) < sum(k.attempts)
  FROM known k JOIN endpoints e ON e.id = k.id
  WHERE e.enabled AND NOT e.paused AND ($4::text IS NULL OR e.account = $4) GROUP BY k.id),
worst AS (
  SELECT a.id, a.attempts, a.accepted, coalesce(c.pending + c.awaiting_retry, 0) AS waiting, coalesce(c.dead, 0) AS dead
  FROM active a LEFT JOIN endpoint_counts c ON c.endpoint_id = a.id WHERE a.is_failing
  ORDER BY coalesce(c.pending + c.awaiting_retry + c.dead, 0) DESC, a.id LIMIT $3)
SELECT (SELECT count(*) FROM active) AS active, (SELECT count(*) FROM active WHERE is_failing) AS failing,
  w.id AS endpoint_id, w.attempts::bigint AS attempts, w.accepted::bigint AS accepted,
  (SELECT date_part('epoch', min(m.at)) FROM latency_minutes m
   WHERE m.endpoint_id = w.id AND m.attempts > m.accepted AND m.at >= coalesce(
     (SELECT g.at FROM latency_minutes g WHERE g.endpoint_id = w.id AND g.accepted > 0 ORDER BY g.at DESC LIMIT 1),
     '-infinity')) AS since,
  w.waiting, w.dead
FROM (SELECT 1) one LEFT JOIN worst w ON true ORDER BY w.waiting + w.dead DESC, w.id
"""
WORST = """
SELECT c.endpoint_id, c.pending, c.awaiting_retry, c.dead, c.failed_last_hour,
  date_part('epoch', c.oldest_pending) AS oldest_pending, date_part('epoch', c.oldest_due) AS oldest_due
FROM endpoint_counts c JOIN endpoints e ON e.id = c.endpoint_id WHERE $2::text IS NULL OR e.account = $2
ORDER BY c.dead DESC, c.pending + c.awaiting_retry DESC, c.endpoint_id LIMIT $1
"""
# The index of the accounts' events does not contain the default account.
COUNT_SMALL = """
SELECT
  (SELECT count(*) FROM latency_days d JOIN endpoints e ON e.id = d.endpoint_id
   WHERE d.p95 IS NOT NULL AND d.p95 > $1 AND d.attempts >= $2 AND ($3::text IS NULL OR e.account = $3)) AS slow,
  (SELECT count(*) FROM endpoints WHERE NOT enabled AND ($3::text IS NULL OR account = $3)) AS disabled,
  CASE WHEN $3 IS NULL OR $3 = 'default' THEN EXISTS (SELECT FROM events) OR EXISTS (SELECT FROM pruned WHERE events > 0)
    ELSE EXISTS (SELECT FROM events WHERE account = $3 AND account <> 'default')
      OR EXISTS (SELECT FROM pruned WHERE account = $3 AND events > 0) END AS has_events
"""


class PostgresStatus(PostgresSessions):
    """The contract's verbs about how the installation is."""

    async def failing_endpoints(
        self, *, since: float, fewest: int, limit: int, account: str | None = None
    ) -> FailingSlice:
        """See the contract."""
        rows = await self._general.fetch(FAILING, since, fewest, limit, account, NO_ENDPOINT)
        names = FailingCounts.__struct_fields__
        return FailingSlice(
            active=rows[0]["active"],
            failing=rows[0]["failing"],
            endpoints=tuple(
                FailingCounts(**{name: row[name] for name in names})
                for row in rows
                if row["endpoint_id"] is not None
            ),
        )

    async def worst_endpoints(self, *, limit: int, account: str | None = None) -> list[EndpointCounts]:
        """See the contract."""
        return [EndpointCounts(**row) for row in await self._general.fetch(WORST, limit, account)]

    async def status_counts(
        self, *, slow_above: float, slow_attempts: int, account: str | None = None
    ) -> StatusCounts:
        """See the contract."""
        [found] = await self._general.fetch(COUNT_SMALL, slow_above, slow_attempts, account)
        return StatusCounts(**found)
