"""Keeps the messages to people that are still to be sent in PostgreSQL."""

from collections.abc import Sequence

from hookline.store.contract.measuring.people import GATHER_MOST, DueNotification
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions

# A message that was tried is held by somebody, or waits for its own next try.
TAKE_NOTIFICATIONS = """
WITH due AS MATERIALIZED (
  SELECT channel, account, bool_or(kind = $3) AS gathers FROM notifications
  WHERE due_at <= to_timestamp($1) AND channel = ANY($2::text[])
  GROUP BY channel, account ORDER BY min(due_at) LIMIT $4),
chosen AS MATERIALIZED (
  SELECT o.n FROM notifications o
  JOIN due d ON o.channel = d.channel AND o.account IS NOT DISTINCT FROM d.account
  WHERE o.due_at <= to_timestamp($1) OR (d.gathers AND o.kind = $3 AND o.tries = 0)
  ORDER BY o.n LIMIT $5 FOR UPDATE OF o SKIP LOCKED),
taken AS (
  UPDATE notifications t SET due_at = to_timestamp($6), tries = t.tries + 1
  WHERE t.n IN (SELECT n FROM chosen)
  RETURNING t.n, t.channel, t.recipient, t.kind, t.account, t.detail, t.at, t.tries)
SELECT n, channel, recipient, kind, account, detail, date_part('epoch', at) AS at, tries FROM taken ORDER BY n
"""
DELETE_NOTIFICATIONS = "DELETE FROM notifications WHERE n = ANY($1::bigint[])"
TRY_AGAIN = """
UPDATE notifications t SET due_at = to_timestamp(s.due_at)
FROM unnest($1::bigint[], $2::float8[]) AS s (n, due_at) WHERE t.n = s.n
"""


class PostgresPeople(PostgresSessions):
    """The contract's verbs about messages to people."""

    async def take_notifications(
        self, *, channels: Sequence[str], gather: str, limit: int, now: float, until: float
    ) -> list[DueNotification]:
        """See the contract."""
        values = now, list(channels), gather, limit, GATHER_MOST, until
        taken = await self._tasks.fetch(TAKE_NOTIFICATIONS, *values)
        return [DueNotification(**row) for row in taken]

    async def end_notifications(self, done: Sequence[int], again: Sequence[tuple[int, float]]) -> None:
        """See the contract."""

        async def work(connection: Connection) -> None:
            if done:
                await connection.fetch(DELETE_NOTIFICATIONS, list(done))
            if again:
                await connection.fetch(TRY_AGAIN, [n for n, _ in again], [at for _, at in again])

        await self._tasks.transaction(work)
