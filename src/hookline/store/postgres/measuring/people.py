"""Keeps the messages to people that are still to be sent in PostgreSQL."""

from collections.abc import Sequence

from hookline.store.contract.measuring.people import GATHER_MOST, DueNotification
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions

# A message that was tried is held by somebody, or waits for its own next try.
TAKE_NOTIFICATIONS = """
WITH due AS MATERIALIZED (
  SELECT n, channel, recipient, kind, account FROM notifications
  WHERE due_at <= to_timestamp($1) ORDER BY due_at, n LIMIT $2 FOR UPDATE SKIP LOCKED),
gathered AS MATERIALIZED (
  SELECT o.n FROM notifications o
  JOIN (SELECT DISTINCT channel, recipient, account FROM due WHERE kind = $3) g
    ON o.channel = g.channel AND o.recipient = g.recipient AND o.account = g.account
  WHERE o.kind = $3 AND o.tries = 0 ORDER BY o.n LIMIT $4 FOR UPDATE OF o SKIP LOCKED),
taken AS (
  UPDATE notifications t SET due_at = to_timestamp($5), tries = t.tries + 1
  WHERE t.n IN (SELECT n FROM due UNION SELECT n FROM gathered)
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
        self, *, gather: str, limit: int, now: float, until: float
    ) -> list[DueNotification]:
        """See the contract."""
        taken = await self._tasks.fetch(TAKE_NOTIFICATIONS, now, limit, gather, GATHER_MOST, until)
        return [DueNotification(**row) for row in taken]

    async def end_notifications(self, done: Sequence[int], again: Sequence[tuple[int, float]]) -> None:
        """See the contract."""

        async def work(connection: Connection) -> None:
            if done:
                await connection.fetch(DELETE_NOTIFICATIONS, list(done))
            if again:
                await connection.fetch(TRY_AGAIN, [n for n, _ in again], [at for _, at in again])

        await self._tasks.transaction(work)
