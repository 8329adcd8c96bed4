"""Keeps the messages to people that are still to be sent in SQLite."""

import sqlite3
from collections.abc import Sequence

from hookline.store import spoiled_rows
from hookline.store.contract.measuring.people import GATHER_MOST, DueNotification
from hookline.store.sqlite.driver.connections import SqliteConnections, on_writer
from hookline.store.sqlite.driver.values import json_text

# A message that was tried waits for its own next try.
TAKE_NOTIFICATIONS = """
WITH due AS MATERIALIZED (
  SELECT channel, account, max(kind = :gather) AS gathers FROM notifications
  WHERE due_at <= :now AND channel IN (SELECT value FROM json_each(:channels))
  GROUP BY channel, account ORDER BY min(due_at) LIMIT :limit),
chosen AS MATERIALIZED (
  SELECT o.n FROM notifications o JOIN due d ON o.channel = d.channel AND o.account IS d.account
  WHERE o.due_at <= :now OR (d.gathers AND o.kind = :gather AND o.tries = 0)
  ORDER BY o.n LIMIT :most)
UPDATE notifications SET due_at = :until, tries = tries + 1 WHERE n IN (SELECT n FROM chosen)
RETURNING n, channel, recipient, kind, account, detail, at, tries
"""
DELETE_NOTIFICATION = "DELETE FROM notifications WHERE n = :n"
TRY_AGAIN = "UPDATE notifications SET due_at = :due_at WHERE n = :n"


class SqlitePeople(SqliteConnections):
    """The contract's verbs about messages to people."""

    @on_writer
    def take_notifications(
        self,
        connection: sqlite3.Connection,
        *,
        channels: Sequence[str],
        gather: str,
        limit: int,
        now: float,
        until: float,
    ) -> list[DueNotification]:
        """Take what is due on these channels for so many accounts, until this time."""
        values: dict[str, object] = {
            "now": now,
            "limit": limit,
            "gather": gather,
            "most": GATHER_MOST,
            "until": until,
        }
        values["channels"] = json_text(list(channels))
        names = DueNotification.__struct_fields__
        rows = sorted(connection.execute(TAKE_NOTIFICATIONS, values).fetchall())
        read = (spoiled_rows.read(DueNotification, dict(zip(names, row, strict=True))) for row in rows)
        return spoiled_rows.read_all(read)

    @on_writer
    def end_notifications(
        self, connection: sqlite3.Connection, done: Sequence[int], again: Sequence[tuple[int, float]]
    ) -> None:
        """Delete the messages that were sent or given up, and try the others again at their time."""
        connection.executemany(DELETE_NOTIFICATION, [{"n": n} for n in done])
        connection.executemany(TRY_AGAIN, [{"n": n, "due_at": at} for n, at in again])
