"""Keeps the messages to people that are still to be sent in SQLite."""

import sqlite3
from collections.abc import Sequence

from hookline.store.contract.measuring.people import GATHER_MOST, DueNotification
from hookline.store.sqlite.driver.connections import SqliteConnections, on_writer

# A message that was tried waits for its own next try.
TAKE_NOTIFICATIONS = """
WITH due AS MATERIALIZED (
  SELECT n, channel, recipient, kind, account FROM notifications
  WHERE due_at <= :now ORDER BY due_at, n LIMIT :limit),
gathered AS MATERIALIZED (
  SELECT o.n FROM notifications o
  JOIN (SELECT DISTINCT channel, recipient, account FROM due WHERE kind = :gather) g
    ON o.channel = g.channel AND o.recipient = g.recipient AND o.account = g.account
  WHERE o.kind = :gather AND o.tries = 0 ORDER BY o.n LIMIT :most)
UPDATE notifications SET due_at = :until, tries = tries + 1
WHERE n IN (SELECT n FROM due UNION SELECT n FROM gathered)
RETURNING n, channel, recipient, kind, account, detail, at, tries
"""
DELETE_NOTIFICATION = "DELETE FROM notifications WHERE n = :n"
TRY_AGAIN = "UPDATE notifications SET due_at = :due_at WHERE n = :n"


class SqlitePeople(SqliteConnections):
    """The contract's verbs about messages to people."""

    @on_writer
    def take_notifications(
        self, connection: sqlite3.Connection, *, gather: str, limit: int, now: float, until: float
    ) -> list[DueNotification]:
        """Take messages that are due, until this time."""
        values = {"now": now, "limit": limit, "gather": gather, "most": GATHER_MOST, "until": until}
        names = DueNotification.__struct_fields__
        rows = sorted(connection.execute(TAKE_NOTIFICATIONS, values).fetchall())
        return [DueNotification(**dict(zip(names, row, strict=True))) for row in rows]

    @on_writer
    def end_notifications(
        self, connection: sqlite3.Connection, done: Sequence[int], again: Sequence[tuple[int, float]]
    ) -> None:
        """Delete the messages that were sent or given up, and try the others again at their time."""
        connection.executemany(DELETE_NOTIFICATION, [{"n": n} for n in done])
        connection.executemany(TRY_AGAIN, [{"n": n, "due_at": at} for n, at in again])
