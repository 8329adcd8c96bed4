"""Reads the database without hookline."""

import contextlib
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import psycopg

from hookline import ids
from tests.chaos.checker import Stored

ROWS = """
SELECT d.id, e.payload, d.state, {done_at}, d.settled, d.late, d.reason FROM (
  SELECT d.id, {event_id} AS event_id, d.state, d.done_at, d.reason,
    (SELECT count(*) FROM {schema}attempts a WHERE a.delivery_id = d.id AND NOT a.late) AS settled,
    (SELECT count(*) FROM {schema}attempts a WHERE a.delivery_id = d.id AND a.late) AS late
  FROM {schema}deliveries d) d
JOIN {schema}events e ON e.id = d.event_id
"""
STARTS = "SELECT delivery_id, number, {at} FROM {schema}attempts"
ENDS = """
SELECT e.url, d.state, d.reason, a.status, a.error, a.duration, coalesce(length(a.response_body), 0)
FROM {schema}deliveries d JOIN {schema}endpoints e ON e.id = d.endpoint_id
LEFT JOIN {schema}attempts a ON a.delivery_id = d.id
"""
PENDING = "SELECT count(*) FROM {schema}deliveries WHERE state = 'pending'"
LEFT = """
SELECT {all} FROM {schema}deliveries d LEFT JOIN {schema}lanes l ON l.endpoint_id = d.endpoint_id
LEFT JOIN {schema}workers w ON w.id = l.owner WHERE d.state = 'pending' LIMIT 20
"""
OWNED = """
SELECT e.url FROM hookline.lanes l JOIN hookline.workers w ON w.id = l.owner
JOIN hookline.endpoints e ON e.id = l.endpoint_id WHERE w.pid = %s
"""


class End(NamedTuple):
    """A delivery with one of its attempts, or with none."""

    url: str
    state: str
    reason: str | None
    status: int | None
    error: str | None
    duration: float | None
    kept_bytes: int  # of the response


class Database:
    """Reads only."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.is_sqlite = url.startswith("sqlite:")
        self._kept: psycopg.Connection[Any] | None = None

    def pending(self) -> int:
        """How many deliveries have not ended."""
        return int(self._query(PENDING.format(schema="" if self.is_sqlite else "hookline."))[0][0])

    def left(self) -> list[str]:
        """Deliveries that have not ended, with their lanes and the lanes' owners, for finding out why."""
        if self.is_sqlite:
            statement = LEFT.format(all="d.*, l.*, w.*", schema="")
        else:  # as text: Python has no infinite times
            statement = LEFT.format(all="d::text, l::text, w::text", schema="hookline.")
        return [repr(row) for row in self._query(statement)]

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
        for id, payload, state, done_at, settled, late, reason in self._query(statement):
            digest = hashlib.sha256(payload).hexdigest()
            found[self._event(id)] = Stored(
                digest, state, None if done_at is None else float(done_at), settled, late, reason
            )
        return found

    def state(self, event: str) -> str:
        """Of the delivery of this event."""
        [(state,)] = self._query(
            "SELECT state FROM deliveries WHERE id = ?"
            if self.is_sqlite
            else "SELECT state FROM hookline.deliveries WHERE id = %s",
            ids.read("event", event) if self.is_sqlite else UUID(bytes=ids.read("event", event)),
        )
        return str(state)

    def starts(self) -> dict[tuple[str, int], float]:
        """When each attempt began, by the store's clock; if one was settled twice, the last."""
        at = "at" if self.is_sqlite else "extract(epoch FROM at)::double precision"
        found = self._query(STARTS.format(at=at, schema="" if self.is_sqlite else "hookline."))
        return {(self._event(id), number): began for id, number, began in found}

    def ends(self) -> list[End]:
        """Every delivery with each of its attempts: where it went, and what became of it."""
        found = self._query(ENDS.format(schema="" if self.is_sqlite else "hookline."))
        return [End(*row) for row in found]

    def _event(self, id: Any) -> str:
        return ids.show("event", id if self.is_sqlite else id.bytes)

    def paths_of(self, pid: int) -> frozenset[str] | None:
        """The paths of the endpoints whose lanes this process owns; None means all: there is no other process."""
        if self.is_sqlite:
            return None
        return frozenset(urlsplit(url).path for (url,) in self._query(OWNED, pid))

    def is_whole(self) -> bool:
        """Whether SQLite finds its file intact. PostgreSQL checks by itself when it starts."""
        return not self.is_sqlite or self._query("PRAGMA integrity_check") == [("ok",)]

    def _query(self, statement: str, *values: Any) -> list[Any]:
        if self.is_sqlite:
            path = Path(self._url.removeprefix("sqlite:///"))
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
                return connection.execute(statement, values).fetchall()
        for _ in range(2):
            with contextlib.suppress(psycopg.OperationalError):  # the server was away since we last asked
                return self._session().execute(statement, values or None).fetchall()
        return self._session().execute(statement, values or None).fetchall()

    def _session(self) -> "psycopg.Connection[Any]":
        """A session that is kept: waiting code asks often, and a session costs the server a process."""
        if self._kept is None or self._kept.closed or self._kept.broken:
            self._kept = psycopg.connect(self._url, autocommit=True, connect_timeout=5)
        return self._kept

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
