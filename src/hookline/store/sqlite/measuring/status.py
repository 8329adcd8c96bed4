"""Tells from stored counts which endpoints fail, on SQLite."""

import sqlite3

from hookline.store.contract.measuring.health import EndpointCounts
from hookline.store.contract.measuring.status import FailingCounts, FailingSlice, StatusCounts
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister

# From one endpoint with minutes to the next, along the primary key: their other minutes are not read.
# With max(), the bare columns are those of the newest minute. Who accepted something in it and failed nothing for the last
# one is back, although both may be the same minute.
FAILING = """
WITH RECURSIVE ids (id) AS (
  SELECT min(endpoint_id) FROM latency_minutes WHERE endpoint_id > :nil
  UNION ALL
  SELECT (SELECT min(n.endpoint_id) FROM latency_minutes n WHERE n.endpoint_id > ids.id) FROM ids WHERE ids.id IS NOT NULL),
known (id, attempts, accepted, fails_now, is_open, newest) AS (
  SELECT ids.id, sum(m.attempts), sum(m.accepted),
    m.accepted < m.attempts AND NOT (m.accepted > 0 AND coalesce(l.last_failure_at < :since + 840, 0)), 0, max(m.at)
  FROM ids CROSS JOIN latency_minutes m ON m.endpoint_id = ids.id AND m.at >= :since
    LEFT JOIN lanes l ON l.endpoint_id = ids.id GROUP BY ids.id
  UNION ALL
  SELECT l.endpoint_id, 0, 0, 0, 1, NULL FROM lanes l CROSS JOIN endpoints e ON e.id = l.endpoint_id
  WHERE l.circuit <> 'closed' AND e.circuit IS NOT NULL),
active (id, attempts, accepted, is_failing) AS MATERIALIZED (
  SELECT k.id, sum(k.attempts), sum(k.accepted),
    max(k.is_open) OR max(k.fails_now) AND sum(k.attempts) >= :fewest AND 2 * sum(k.accepted) < sum(k.attempts)
  FROM known k CROSS JOIN endpoints e ON e.id = k.id
  WHERE e.enabled = 1 AND e.paused = 0 AND (:account IS NULL OR e.account = :account) GROUP BY k.id),
worst (id, attempts, accepted, waiting, dead) AS (
  SELECT a.id, a.attempts, a.accepted, coalesce(c.pending + c.awaiting_retry, 0) AS waiting, coalesce(c.dead, 0) AS dead
  FROM active a LEFT JOIN endpoint_counts c ON c.endpoint_id = a.id WHERE a.is_failing
  ORDER BY waiting + dead DESC, a.id LIMIT :limit)
SELECT (SELECT count(*) FROM active), (SELECT count(*) FROM active WHERE is_failing), w.id, w.attempts, w.accepted,
  (SELECT min(m.at) FROM latency_minutes m WHERE m.endpoint_id = w.id AND m.attempts > m.accepted AND m.at >= coalesce(
    (SELECT max(g.at) FROM latency_minutes g WHERE g.endpoint_id = w.id AND g.accepted > 0), 0.0)),
  w.waiting, w.dead
FROM (SELECT 1) LEFT JOIN worst w ON true ORDER BY w.waiting + w.dead DESC, w.id
"""
WORST = """
SELECT c.endpoint_id, c.pending, c.awaiting_retry, c.dead, c.failed_last_hour, c.oldest_pending, c.oldest_due
FROM endpoint_counts c CROSS JOIN endpoints e ON e.id = c.endpoint_id WHERE :account IS NULL OR e.account = :account
ORDER BY c.dead DESC, c.pending + c.awaiting_retry DESC, c.endpoint_id LIMIT :limit
"""
COUNT_SMALL = """
SELECT
  (SELECT count(*) FROM latency_days d CROSS JOIN endpoints e ON e.id = d.endpoint_id
   WHERE d.p95 IS NOT NULL AND d.p95 > :above AND d.attempts >= :attempts AND (:account IS NULL OR e.account = :account)),
  (SELECT count(*) FROM endpoints WHERE enabled = 0 AND (:account IS NULL OR account = :account)),
  CASE WHEN :account IS NULL OR :account = 'default' THEN EXISTS (SELECT 1 FROM events) OR EXISTS (SELECT 1 FROM pruned WHERE events > 0)
    ELSE EXISTS (SELECT 1 FROM events WHERE account = :account) OR EXISTS (SELECT 1 FROM pruned WHERE account = :account AND events > 0) END
"""


class SqliteStatus(SqliteConnections):
    """The contract's verbs about how the installation is."""

    @on_lister
    def failing_endpoints(
        self,
        connection: sqlite3.Connection,
        *,
        since: float,
        fewest: int,
        limit: int,
        account: str | None = None,
    ) -> FailingSlice:
        """The endpoints whose circuit is not closed, or that accepted under half of at least `fewest` attempts."""
        values = {"since": since, "fewest": fewest, "limit": limit, "account": account, "nil": NO_ENDPOINT}
        rows = connection.execute(FAILING, values).fetchall()
        names = FailingCounts.__struct_fields__
        return FailingSlice(
            active=rows[0][0],
            failing=rows[0][1],
            endpoints=tuple(
                FailingCounts(**dict(zip(names, row[2:], strict=True))) for row in rows if row[2] is not None
            ),
        )

    @on_lister
    def worst_endpoints(
        self, connection: sqlite3.Connection, *, limit: int, account: str | None = None
    ) -> list[EndpointCounts]:
        """The stored counts of the endpoints with the most dead letters; of two with as many, what waits decides."""
        names = EndpointCounts.__struct_fields__
        rows = connection.execute(WORST, {"limit": limit, "account": account})
        return [EndpointCounts(**dict(zip(names, row, strict=True))) for row in rows]

    @on_lister
    def status_counts(
        self,
        connection: sqlite3.Connection,
        *,
        slow_above: float,
        slow_attempts: int,
        account: str | None = None,
    ) -> StatusCounts:
        """How many endpoints are slow or disabled."""
        values = {"above": slow_above, "attempts": slow_attempts, "account": account}
        slow, disabled, has_events = connection.execute(COUNT_SMALL, values).fetchone()
        return StatusCounts(slow=slow, disabled=disabled, has_events=bool(has_events))
