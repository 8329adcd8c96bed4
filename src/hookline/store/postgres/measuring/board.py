"""Tells about all endpoints at once, on PostgreSQL."""

from collections.abc import Sequence

from hookline.model import EndpointId
from hookline.store import board_row
from hookline.store.contract.measuring.board import BoardFigures, HourAttempts
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.latency_hours import hour_of
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.measuring.latency import ROLLED_OF_EACH

BOARD = """
WITH p AS MATERIALIZED (
  SELECT id, account, url, description, events, enabled, paused, disabled_reason, circuit IS NOT NULL AS has_circuit
  FROM endpoints WHERE {mine} id > $1 ORDER BY {order} LIMIT $2)
SELECT p.id AS endpoint_id, p.account, p.url, p.description, p.events, p.enabled, p.paused, p.disabled_reason,
  CASE WHEN p.has_circuit THEN coalesce(l.circuit, 'closed') ELSE 'closed' END AS circuit,
  CASE WHEN p.has_circuit THEN date_part('epoch', l.opened_at) END AS opened_at,
  CASE WHEN p.has_circuit THEN date_part('epoch', l.probe_at) END AS probe_at,
  coalesce(c.pending + c.awaiting_retry, 0) AS waiting, coalesce(c.dead, 0) AS dead,
  coalesce(d.attempts, 0) AS attempts_24h, d.p95 AS p95_24h,
  coalesce(t.attempts_1h, 0) AS attempts_1h, coalesce(t.accepted_1h, 0) AS accepted_1h,
  coalesce(t.attempts_15m, 0) AS attempts_15m, coalesce(t.accepted_15m, 0) AS accepted_15m,
  coalesce(n.is_back, false) AS is_back
FROM p LEFT JOIN lanes l ON l.endpoint_id = p.id LEFT JOIN endpoint_counts c ON c.endpoint_id = p.id
  LEFT JOIN latency_days d ON d.endpoint_id = p.id
  LEFT JOIN LATERAL (
    SELECT sum(m.attempts) AS attempts_1h, sum(m.accepted) AS accepted_1h,
      sum(m.attempts) FILTER (WHERE m.at >= to_timestamp($4)) AS attempts_15m,
      sum(m.accepted) FILTER (WHERE m.at >= to_timestamp($4)) AS accepted_15m
    FROM latency_minutes m WHERE m.endpoint_id = p.id AND m.at >= to_timestamp($3)) t ON true
  LEFT JOIN LATERAL (
    SELECT m.accepted >= m.attempts
      OR (m.accepted > 0 AND coalesce(l.last_failure_at < to_timestamp($4 + 840), false)) AS is_back FROM latency_minutes m
    WHERE m.endpoint_id = p.id AND m.at >= to_timestamp($4) ORDER BY m.at DESC LIMIT 1) n ON true
ORDER BY p.id
"""
BOARD_OF_ALL = BOARD.format(mine="", order="id")
# Both columns, so that no other index gives this order, however old the statistics are.
BOARD_OF_ACCOUNT = BOARD.format(mine="account = $5 AND", order="account, id")
# Hours up to what was added up, minutes after it.
HOURLY = f"""
WITH e AS MATERIALIZED (
  SELECT e.endpoint_id, greatest(to_timestamp($2), least(coalesce(rolled.until, '-infinity'), to_timestamp($4))) AS last
  FROM unnest($1::uuid[]) AS e (endpoint_id) {ROLLED_OF_EACH})
SELECT endpoint_id, date_part('epoch', hour) AS at, sum(attempts)::bigint AS attempts, sum(accepted)::bigint AS accepted
FROM (
  SELECT h.endpoint_id, h.at AS hour, h.attempts, h.accepted FROM e JOIN latency_hours h
    ON h.endpoint_id = e.endpoint_id AND h.at >= to_timestamp($2) AND h.at < e.last
  UNION ALL
  SELECT m.endpoint_id, date_bin('1 hour', m.at, to_timestamp(0)), m.attempts, m.accepted FROM e JOIN latency_minutes m
    ON m.endpoint_id = e.endpoint_id AND m.at >= e.last AND m.at < to_timestamp($3)) a
GROUP BY endpoint_id, hour ORDER BY endpoint_id, hour
"""


class PostgresBoard(PostgresSessions):
    """The contract's verbs about all endpoints at once."""

    async def board_figures(
        self,
        *,
        after: EndpointId | None,
        limit: int,
        hour: float,
        quarter: float,
        account: str | None = None,
    ) -> list[BoardFigures]:
        """See the contract."""
        values = (after or NO_ENDPOINT, limit, hour, quarter)
        if account is None:
            rows = await self._lists.fetch(BOARD_OF_ALL, *values)
        else:
            rows = await self._lists.fetch(BOARD_OF_ACCOUNT, *values, account)
        return [board_row.read(dict(row), events=row["events"]) for row in rows]

    async def hourly_attempts(
        self, endpoints: Sequence[EndpointId], *, since: float, until: float
    ) -> list[HourAttempts]:
        """See the contract."""
        rows = await self._lists.fetch(HOURLY, endpoints, since, until, hour_of(until))
        return [HourAttempts(**row) for row in rows]
