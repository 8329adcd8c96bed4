"""Reads what `hookline doctor` needs of an SQLite file, without changing it."""

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from hookline.clock import ThreadClock
from hookline.errors import HooklineError
from hookline.model import Account
from hookline.store import spoiled_rows
from hookline.store.account_row import notify_of
from hookline.store.contract import JobKind
from hookline.store.contract.doctor import (
    HOUR,
    MOST_COUNTED,
    NOTIFIED,
    PLAIN,
    REFUSED,
    SEAL,
    SEALED,
    SOURCES,
    Examination,
    Holder,
    OpenCircuit,
    Waiting,
)
from hookline.store.sqlite import sql
from hookline.store.sqlite.access.keys import LIST_KEYS, read_key
from hookline.store.sqlite.driver.connection import OLDEST_SQLITE
from hookline.store.sqlite.driver.faults import translated
from hookline.store.sqlite.driver.texts import readable
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS
from hookline.store.sqlite.endpoints import read_endpoints
from hookline.store.sqlite.event_types import EVENT_TYPES, read_event_type
from hookline.store.sqlite.figures import OLDEST_DUE
from hookline.store.sqlite.installation import READ_ACCOUNTS, read_account
from hookline.store.sqlite.jobs import read_job
from hookline.store.sqlite.measuring.alerts import LIST_ALERTS, read_alert
from hookline.store.sqlite.migrations import schema
from hookline.store.sqlite.workers import read_worker

T = TypeVar("T")

# A person waits, and a busy file must not keep them.
LOCK_S = 0.5
WRITE_LOCK_S = 0.6  # a server's own transactions are much shorter
ALL_S = 1.5  # after which nothing more is asked
STEPS = 10_000  # of SQLite's machine between two looks at the time

ALL_OF_THEM: dict[str, Any] = {
    "after": "",
    "before": ABOVE_ALL_IDS,
    "limit": MOST_COUNTED,
    "is_firing": None,
    "account": None,
    "endpoint": None,
}
_KINDS = {"replays": JobKind.REPLAY.value, "discards": JobKind.DISCARD.value}
CIRCUITS = """
SELECT endpoint_id, reason, probe_at FROM lanes WHERE circuit <> 'closed' ORDER BY endpoint_id LIMIT :most
"""
COUNT_DEAD = """
SELECT count(*) FROM (
  SELECT 1 FROM deliveries WHERE state = 'dead' AND done_at >= :hour_ago LIMIT :most)
"""
COUNT_DUE = """
SELECT count(*) FROM (
  SELECT 1 FROM lanes l CROSS JOIN deliveries d INDEXED BY deliveries_ready ON d.endpoint_id = l.endpoint_id
  WHERE d.state = 'pending' AND d.queue = 'ready' AND l.paused = 0 AND l.hold_until <= :now AND d.due_at <= :now
  UNION ALL
  SELECT 1 FROM lanes l CROSS JOIN deliveries d INDEXED BY deliveries_timed ON d.endpoint_id = l.endpoint_id
  WHERE d.state = 'pending' AND d.queue = 'timed' AND l.paused = 0 AND l.hold_until <= :now AND d.due_at <= :now
  LIMIT :most)
"""


def examine(path: str, *, wall: float) -> Examination:
    """The facts about an existing file; raises hookline's errors when it cannot be read."""
    contents: dict[str, Any] = {}
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=LOCK_S)
        connection.text_factory = readable
        try:
            questions = _FileQuestions(connection)
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            schema = _schema(connection)
            written = 0.0 if schema else connection.execute(sql.PULSE_CLOCK).fetchone()[0]
            if schema is None:
                contents = _contents(connection, questions, now=max(written, wall))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise translated(error) from error
    too_old = sqlite3.sqlite_version_info < OLDEST_SQLITE
    return Examination(
        server=f"SQLite {sqlite3.sqlite_version}",
        now=written,
        settings={"journal_mode": mode},
        unsafe=f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed." if too_old else None,
        schema=schema,
        holders=() if _can_be_locked(path) else (Holder(what="the file", pid=None, name="", seconds=None),),
        **contents,
        unanswered=tuple(questions.unanswered),
    )


class _FileQuestions:
    """Asks within a time limit; a question without an answer in time is named and left."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._now = ThreadClock().monotonic
        self._until = self._now() + ALL_S
        self.unanswered: list[str] = []
        connection.set_progress_handler(lambda: self._now() >= self._until, STEPS)

    def rows(self, about: str, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
        """The rows; none if the time was not enough."""
        return self.answer(about, lambda: self._connection.execute(statement, values or {}).fetchall()) or []

    def answer(self, about: str, ask: Callable[[], T]) -> T | None:
        """The answer; None if the time was not enough."""
        try:
            return ask()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
        self.unanswered.append(about)
        return None


def _can_be_locked(path: str) -> bool:
    """Can a write begin? Nothing is written: the lock is given back at once."""
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=rw", uri=True, timeout=WRITE_LOCK_S, isolation_level=None
    )
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
    finally:
        connection.close()
    return True


def _contents(connection: sqlite3.Connection, questions: _FileQuestions, *, now: float) -> dict[str, Any]:
    mark = connection.execute(SEAL).fetchone()
    values = {"now": now, "most": MOST_COUNTED, "hour_ago": now - HOUR}
    plain = questions.rows("secrets", PLAIN)
    notified = questions.rows("secrets", NOTIFIED)
    endpoints = questions.answer(
        "endpoints",
        lambda: read_endpoints(
            connection,
            sql.LIST_ENDPOINTS,
            {"enabled": None, "before": ABOVE_ALL_IDS, "limit": MOST_COUNTED},
        ),
    )
    with spoiled_rows.noted() as spoiled:
        workers = [read_worker(row) for row in questions.rows("workers", sql.PULSE_WORKERS)]
        types = [read_event_type(row) for row in questions.rows("event types", EVENT_TYPES, ALL_OF_THEM)]
        for about, statement, read in (
            ("keys", LIST_KEYS, read_key),
            ("accounts", READ_ACCOUNTS, read_account),
            ("replays", sql.LIST_JOBS, read_job),
            ("discards", sql.LIST_JOBS, read_job),
            ("alerts", LIST_ALERTS, read_alert),
        ):
            for row in questions.rows(about, statement, ALL_OF_THEM | {"kind": _KINDS.get(about)}):
                read(row)
    circuits = questions.rows("circuits", CIRCUITS, values)
    since = questions.rows("deliveries that are due", OLDEST_DUE, values)
    waiting = None
    if since and since[0][0] is not None:
        due = questions.rows("deliveries that are due", COUNT_DUE, values)
        waiting = Waiting(deliveries=due[0][0] if due else 1, since=since[0][0])
    dead = questions.rows("dead letters", COUNT_DEAD, values)
    refused = questions.rows("outboxes", REFUSED)
    sources = questions.rows("outboxes", SOURCES)
    return {
        "seal": mark[0] if mark else "",
        "sealed": tuple(questions.rows("secrets", SEALED)),
        "plain": plain[0][0] if plain else 0,
        "notified": tuple(Account(id=id, notify=notify_of(notify)) for id, notify in notified),
        "endpoints": tuple(endpoints or ()),
        "event_types": tuple(spoiled_rows.read_all(types)),
        "spoiled": tuple(spoiled),
        "workers": tuple(spoiled_rows.read_all(workers)),
        "waiting": waiting,
        "circuits": tuple(
            OpenCircuit(endpoint_id=id, reason=reason or "", probe_at=probe_at)
            for id, reason, probe_at in circuits
        ),
        "dead_last_hour": dead[0][0] if dead else 0,
        "refused": refused[0][0] if refused else 0,
        "sources": tuple(name for (name,) in sources),
    }


def _schema(connection: sqlite3.Connection) -> str | None:
    try:
        schema.refuse_unless_usable(connection)
    except HooklineError as error:
        return str(error)
    return None
