"""Puts rows into the table of those that an outbox refused, as the process that moves rows does."""

import itertools
import json
import sqlite3
import time
from contextlib import closing
from random import Random
from typing import Any
from uuid import UUID

import psycopg

from hookline import ids
from hookline.clock import SystemClock

_IDS = ids.Ids(SystemClock(), Random())
_SEQ = itertools.count(1)
_COLUMNS = (
    "source, seq, id, at, deliver_at, account, type, idempotency_key, hops, payload, refused_at, code, detail"
)


def add_refused_row(
    database: str,
    *,
    id: str | None = None,
    account: str = "default",
    type: str = "order.paid",
    payload: Any = None,
    code: str = "schema_mismatch",
    detail: str = "The payload does not match the schema of order.paid.",
    source: str = "own",
    age: float = 0.0,
    idempotency_key: str | None = None,
    deliver_at: float | None = None,
    hops: int = 0,
) -> str:
    """One row, refused so many seconds ago; its id."""
    id = id or ids.show("event", _IDS.event())
    at = time.time() - age
    body = payload if isinstance(payload, bytes) else json.dumps(payload or {"id": 42}).encode()
    raw = ids.read("event", id)
    rest = (account, type, idempotency_key, hops, body)
    if database.startswith("sqlite:"):
        path = database.removeprefix("sqlite:///")
        values = (source, next(_SEQ), raw, at, deliver_at, *rest, at, code, detail)
        with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO outbox_refused ({_COLUMNS}) VALUES ({marks})", values)
        return id
    with psycopg.connect(database) as session:
        session.execute(
            f"INSERT INTO hookline.outbox_refused ({_COLUMNS}) VALUES (%s, %s, %s, to_timestamp(%s),"
            " to_timestamp(%s), %s, %s, %s, %s, %s, to_timestamp(%s), %s, %s)",
            (source, next(_SEQ), UUID(bytes=raw), at, deliver_at, *rest, at, code, detail),
        )
    return id


def note_source(database: str, name: str, **facts: Any) -> None:
    """What was noted of an outbox when it was last read."""
    facts = {"looked_at": time.time(), "clear_at": time.time(), "waiting": 0, **facts}
    names, times = ["name", *facts], {"looked_at", "clear_at", "oldest_at"}
    values = [name, *facts.values()]
    if database.startswith("sqlite:"):
        with (
            closing(sqlite3.connect(database.removeprefix("sqlite:///"), timeout=30)) as connection,
            connection,
        ):
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO outbox_sources ({', '.join(names)}) VALUES ({marks})", values)
        return
    marks = ", ".join("to_timestamp(%s)" if each in times else "%s" for each in names)
    with psycopg.connect(database) as session:
        session.execute(f"INSERT INTO hookline.outbox_sources ({', '.join(names)}) VALUES ({marks})", values)
