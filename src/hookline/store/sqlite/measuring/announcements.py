"""Keeps the own events that are still to be published in SQLite."""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from functools import partial

from hookline.model import OWN_ACCOUNT
from hookline.store import spoiled_rows
from hookline.store.contract.accept import Acceptance, EventFanout
from hookline.store.contract.measuring.announcements import ANNOUNCE, Announcement, NotificationRow
from hookline.store.sqlite.accept import write_batch
from hookline.store.sqlite.driver.bulk import returned_rows
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister
from hookline.store.sqlite.measuring.periodic_tasks import claim

ADD_ANNOUNCEMENT = """
INSERT INTO announcements (kind, account, subject, detail, at) VALUES (:kind, :account, :subject, :detail, :now)
"""
READ_ANNOUNCEMENTS = "SELECT n, kind, account, subject, detail, at FROM announcements ORDER BY n LIMIT :limit"
DELETE_ANNOUNCEMENTS = """
WITH u (n) AS (VALUES {rows}) DELETE FROM announcements WHERE n IN (SELECT n FROM u) RETURNING n
"""
COUNT_ANNOUNCEMENTS = "WITH u (n) AS (VALUES {rows}) SELECT n FROM announcements WHERE n IN (SELECT n FROM u)"
ADD_NOTIFICATIONS = """
INSERT INTO notifications (channel, recipient, kind, account, detail, at, due_at)
VALUES (:channel, :recipient, :kind, :account, :detail, :now, :due_at)
"""


def announce(
    connection: sqlite3.Connection,
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
    values = {"kind": kind, "account": account, "subject": subject, "detail": detail, "now": now}
    connection.execute(ADD_ANNOUNCEMENT, values)


class SqliteAnnouncements(SqliteConnections):
    """The contract's verbs about own events."""

    @on_lister
    def announcements(self, connection: sqlite3.Connection, *, limit: int) -> list[Announcement]:
        """The first ones, by number."""
        names = Announcement.__struct_fields__
        rows = connection.execute(READ_ANNOUNCEMENTS, {"limit": limit})
        read = (spoiled_rows.read(Announcement, dict(zip(names, row, strict=True))) for row in rows)
        return spoiled_rows.read_all(read)

    async def publish_announcements(
        self,
        announcements: Sequence[int],
        batch: Sequence[EventFanout],
        *,
        notifications: Sequence[NotificationRow] = (),
        catalogue: int,
        now: float,
    ) -> Acceptance | None:
        """Accept these events, delete these announcements and add these notifications, in one commit."""
        if self._presence is not None:
            self._presence.refuse_if_gone()
        work = partial(
            _publish,
            announcements=announcements,
            batch=batch,
            notifications=notifications,
            catalogue=catalogue,
            now=now,
            due=self._time.due,
            folder=self._folder,
        )
        return await self._write(work)


def _publish(
    connection: sqlite3.Connection,
    *,
    announcements: Sequence[int],
    batch: Sequence[EventFanout],
    notifications: Sequence[NotificationRow],
    catalogue: int,
    now: float,
    due: Callable[[float], float],
    folder: str,
) -> Generator[None, None, Acceptance | None]:
    numbers = [(n,) for n in announcements]
    if not claim(connection, ANNOUNCE, now=now):
        return None
    if len(returned_rows(connection, COUNT_ANNOUNCEMENTS, numbers)) < len(numbers):
        return None
    acceptance = yield from write_batch(
        connection, batch, catalogue=catalogue, now=now, due=due, folder=folder
    )
    if not acceptance.stale:
        returned_rows(connection, DELETE_ANNOUNCEMENTS, numbers)
        connection.executemany(
            ADD_NOTIFICATIONS,
            [
                {name: getattr(row, name) for name in row.__struct_fields__} | {"now": now}
                for row in notifications
            ],
        )
    return acceptance
