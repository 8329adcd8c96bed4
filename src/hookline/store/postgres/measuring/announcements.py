"""Keeps the own events that are still to be published in PostgreSQL."""

from collections.abc import Sequence

from hookline.model import OWN_ACCOUNT
from hookline.store.contract.accept import Acceptance, EventFanout
from hookline.store.contract.measuring.announcements import ANNOUNCE, Announcement, NotificationRow
from hookline.store.postgres import sql
from hookline.store.postgres.accept import publication_columns
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.driver.values import column
from hookline.store.postgres.measuring.periodic_tasks import claim

ADD_ANNOUNCEMENT = """
INSERT INTO announcements (kind, account, subject, detail, at) VALUES ($1, $2, $3, $4, to_timestamp($5))
"""
READ_ANNOUNCEMENTS = """
SELECT n, kind, account, subject, detail, date_part('epoch', at) AS at FROM announcements ORDER BY n LIMIT $1
"""
COUNT_ANNOUNCEMENTS = "SELECT count(*) AS n FROM announcements WHERE n = ANY($1::bigint[])"
DELETE_ANNOUNCEMENTS = "DELETE FROM announcements WHERE n = ANY($1::bigint[])"
ADD_NOTIFICATIONS = """
INSERT INTO notifications (channel, recipient, kind, account, detail, at, due_at)
SELECT channel, recipient, kind, account, detail, to_timestamp($7), to_timestamp(due_at)
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::float8[])
  WITH ORDINALITY AS r (channel, recipient, kind, account, detail, due_at, n)
ORDER BY r.n
"""


async def announce(
    connection: Connection,
    kind: str,
    *,
    account: str | None,
    subject: bytes | None,
    detail: str | None = None,
    now: float,
) -> None:
    """Announce a fact in the transaction that makes it one; never about the account that gets own events."""
    if account == OWN_ACCOUNT:
        return
    await connection.fetch(ADD_ANNOUNCEMENT, kind, account, subject, detail, now)


class PostgresAnnouncements(PostgresSessions):
    """The contract's verbs about own events."""

    async def announcements(self, *, limit: int) -> list[Announcement]:
        """See the contract."""
        return [Announcement(**row) for row in await self._general.fetch(READ_ANNOUNCEMENTS, limit)]

    async def publish_announcements(
        self,
        announcements: Sequence[int],
        batch: Sequence[EventFanout],
        *,
        notifications: Sequence[NotificationRow] = (),
        catalogue: int,
        now: float,
    ) -> Acceptance | None:
        """See the contract."""
        numbers = list(announcements)

        async def work(connection: Connection) -> Acceptance | None:
            # Who has the task is the only one to delete announcements.
            if not await claim(connection, ANNOUNCE, now=now):
                return None
            [found] = await connection.fetch(COUNT_ANNOUNCEMENTS, numbers)
            if found["n"] < len(numbers):
                return None
            columns = publication_columns(batch, now=now)
            [accepted] = await connection.fetch(sql.ACCEPT, catalogue, *columns, now)
            if accepted["stale"]:
                return Acceptance(stale=True)
            await connection.fetch(DELETE_ANNOUNCEMENTS, numbers)
            if notifications:
                await connection.fetch(ADD_NOTIFICATIONS, *_columns(notifications), now)
            return Acceptance(stale=False, first_seq=accepted["first_seq"] or 0)

        return await self._tasks.transaction(work)


def _columns(rows: Sequence[NotificationRow]) -> list[object]:
    return [
        [row.channel for row in rows],
        [row.recipient for row in rows],
        [row.kind for row in rows],
        column([row.account for row in rows]),
        [row.detail for row in rows],
        [row.due_at for row in rows],
    ]
