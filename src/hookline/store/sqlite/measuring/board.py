"""Tells about all endpoints at once, on SQLite."""

import sqlite3
from collections.abc import Sequence

from hookline.model import EndpointId
from hookline.store import board_row, spoiled_rows
from hookline.store.contract.measuring.board import BoardFigures, HourAttempts
from hookline.store.latency_hours import hour_of
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister
from hookline.store.sqlite.measuring.latency import ROLLED

# With max(), the bare columns are those of the newest minute. `t` is small: SQLite makes an index of it on the way.
BOARD = """
WITH p AS MATERIALIZED (
  SELECT id, account, url, description, events, enabled, paused, disabled_reason, circuit
  FROM endpoints WHERE {mine} id > :after ORDER BY id LIMIT :limit),
t (id, attempts_1h, accepted_1h, attempts_15m, accepted_15m, is_back, accepts, newest) AS MATERIALIZED (
  SELECT p.id, sum(m.attempts), sum(m.accepted), sum(iif(m.at >= :quarter, m.attempts, 0)),
    sum(iif(m.at >= :quarter, m.accepted, 0)), m.accepted >= m.attempts, m.accepted > 0, max(m.at)
  FROM p CROSS JOIN latency_minutes m ON m.endpoint_id = p.id AND m.at >= :hour GROUP BY p.id)
SELECT p.id AS endpoint_id, p.account, p.url, p.description, p.events, p.enabled, p.paused, p.disabled_reason,
  iif(p.circuit IS NULL, 'closed', coalesce(l.circuit, 'closed')) AS circuit,
  iif(p.circuit IS NULL, NULL, l.opened_at) AS opened_at, iif(p.circuit IS NULL, NULL, l.probe_at) AS probe_at,
  coalesce(c.pending + c.awaiting_retry, 0) AS waiting, coalesce(c.dead, 0) AS dead,
  coalesce(d.attempts, 0) AS attempts_24h, d.p95 AS p95_24h,
  coalesce(t.attempts_1h, 0) AS attempts_1h, coalesce(t.accepted_1h, 0) AS accepted_1h,
  coalesce(t.attempts_15m, 0) AS attempts_15m, coalesce(t.accepted_15m, 0) AS accepted_15m,
  coalesce((t.is_back OR t.accepts AND coalesce(l.last_failure_at < :quarter + 840, 0)) AND t.newest >= :quarter, 0)
    AS is_back
FROM p LEFT JOIN lanes l ON l.endpoint_id = p.id LEFT JOIN endpoint_counts c ON c.endpoint_id = p.id
  LEFT JOIN latency_days d ON d.endpoint_id = p.id LEFT JOIN t ON t.id = p.id
ORDER BY p.id
"""
BOARD_OF_ALL = BOARD.format(mine="")
BOARD_OF_ACCOUNT = BOARD.format(mine="account = :account AND")
# Hours up to what was added up, minutes after it.
HOURLY = """
SELECT at, attempts, accepted FROM latency_hours WHERE endpoint_id = :id AND at >= :since AND at < :last
UNION ALL
SELECT 3600.0 * CAST(at / 3600.0 AS INTEGER) AS hour, sum(attempts), sum(accepted) FROM latency_minutes
WHERE endpoint_id = :id AND at >= max(:since, :last) AND at < :until GROUP BY hour
"""
ID_BYTES = 16  # a row with another id is left out


class SqliteBoard(SqliteConnections):
    """The contract's verbs about all endpoints at once."""

    @on_lister
    def board_figures(
        self,
        connection: sqlite3.Connection,
        *,
        after: EndpointId | None,
        limit: int,
        hour: float,
        quarter: float,
        account: str | None = None,
    ) -> list[BoardFigures]:
        """The next endpoints above the id `after`, by id, of one account or of all."""
        values = {"after": after or b"", "limit": limit, "hour": hour, "quarter": quarter, "account": account}
        rows = connection.execute(BOARD_OF_ALL if account is None else BOARD_OF_ACCOUNT, values)
        return [_read(row) for row in rows if isinstance(row[0], bytes) and len(row[0]) == ID_BYTES]

    @on_lister
    def hourly_attempts(
        self, connection: sqlite3.Connection, endpoints: Sequence[EndpointId], *, since: float, until: float
    ) -> list[HourAttempts]:
        """The attempts of these endpoints in each hour that has any, by endpoint and time."""
        found = []
        for id in sorted(endpoints):
            (rolled,) = connection.execute(ROLLED, {"id": id}).fetchone()
            last = since if rolled is None else min(rolled, hour_of(until))
            values = {"id": id, "since": since, "last": last, "until": until}
            found += [HourAttempts(id, *row) for row in sorted(connection.execute(HOURLY, values))]
        return found


def _read(row: Row) -> BoardFigures:
    values = dict(zip(BoardFigures.__struct_fields__, row, strict=True))
    return board_row.read(values, events=spoiled_rows.decoded(values["events"]))
