"""What does the database say, asked beside hookline?"""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from hookline import ids
from tests.chaos.checker import Stored

ROWS = """
SELECT d.id, e.payload, d.state, {done_at}, d.settled, d.late FROM (
  SELECT d.id, {event_id} AS event_id, d.state, d.done_at,
    (SELECT count(*) FROM {schema}attempts a WHERE a.delivery_id = d.id AND NOT a.late) AS settled,
    (SELECT count(*) FROM {schema}attempts a WHERE a.delivery_id = d.id AND a.late) AS late
  FROM {schema}deliveries d) d
JOIN {schema}events e ON e.id = d.event_id
"""
PENDING = "SELECT count(*) FROM {schema}deliveries WHERE state = 'pending'"
OWNED = """
SELECT e.url FROM hookline.lanes l JOIN hookline.workers w ON w.id = l.owner
JOIN hookline.endpoints e ON e.id = l.endpoint_id WHERE w.pid = %s
"""


class Database:
    """Reads only."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.is_sqlite = url.startswith("sqlite:")

    def pending(self) -> int:
        """How many deliveries are not at their end."""
        return int(self._query(PENDING.format(schema="" if self.is_sqlite else "hookline."))[0][0])

    def rows(self) -> dict[str, Stored]:
        """Every delivery, by its event's id."""
        if self.is_sqlite:
            # Every event here goes to one endpoint, and the first delivery's id is the event's.
            statement = ROWS.format(done_at="d.done_at", event_id="d.id", schema="")
        else:
            statement = ROWS.format(
                done_at="extract(epoch FROM d.done_at)",
                event_id="hookline.event_of(d.id)",
                schema="hookline.",
            )
        found = {}
        for id, payload, state, done_at, settled, late in self._query(statement):
            event_id = ids.show("event", id if self.is_sqlite else id.bytes)
            digest = hashlib.sha256(payload).hexdigest()
            found[event_id] = Stored(
                digest, state, None if done_at is None else float(done_at), settled, late
            )
        return found

    def paths_of(self, pid: int) -> frozenset[str] | None:
        """The paths of the endpoints whose lanes this process owns; None: all of them, there is no other."""
        if self.is_sqlite:
            return None
        return frozenset(urlsplit(url).path for (url,) in self._query(OWNED, pid))

    def is_whole(self) -> bool:
        """Does SQLite find its file in order? PostgreSQL looks for itself when it starts."""
        return not self.is_sqlite or self._query("PRAGMA integrity_check") == [("ok",)]

    def _query(self, statement: str, *values: Any) -> list[Any]:
        if self.is_sqlite:
            path = Path(self._url.removeprefix("sqlite:///"))
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
                return connection.execute(statement, values).fetchall()
        with psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection:
            return connection.execute(statement, values or None).fetchall()  # type: ignore[call-overload,no-any-return]
