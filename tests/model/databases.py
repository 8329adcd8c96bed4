"""Reads a store's tables without the store.

The contract shows no lane's epoch or `wake_at` without taking it, and a store that answers wrongly might answer
the same way twice; so the tests look at the rows. Both dialects are read into one shape.
"""

import sqlite3
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg

from hookline.model import DeliveryId

Rows = dict[str, list[tuple[Any, ...]]]

# By table: what to read and in which order; a name that ends in `_at` or `_until` is a time.
COLUMNS = {
    "deliveries": (
        "id endpoint_id state queue due_at done_at attempts replays marks reason last_status last_error "
        "death_reason death_at death_attempts",
        "seq",
    ),
    "attempts": ("delivery_id id number replays late at outcome status", "delivery_id, id"),
    "lanes": (
        "endpoint_id owner epoch wake_at hold_until paused deleted suspect strict head circuit failures probe_at "
        "tokens tokens_at applied rest_until",
        "endpoint_id",
    ),
    "events": ("id account type idempotency_key deliver_at created_at size", "id"),
    "idempotency": ("account key event_id digest", "account, key"),
    "workers": ("id beat buried_at", "id"),
    "changes": ("n endpoint_id kind", "n"),
    "change_counter": ("n catalogue", "n"),
    "endpoints": ("id account enabled paused ordering updated_at", "id"),
    "jobs": ("id kind state matched done failed finished_at", "id"),
}
PUT_TOGETHER = {
    "size": "length(payload)",
}


def statement(table: str, time: str) -> str:
    names, order = COLUMNS[table]
    columns = [
        time.format(name)
        if name == "at" or name.endswith(("_at", "_until"))
        else PUT_TOGETHER.get(name, name)
        for name in names.split()
    ]
    return f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}"


def plain(value: Any) -> Any:
    match value:
        case UUID():
            return value.bytes
        case memoryview():
            return bytes(value)
    return value


class Tables:
    """The tables of one store, through a connection of their own."""

    def __init__(self, execute: Callable[[str], Any], *, time: str) -> None:
        self._execute = execute
        self._statements = {table: statement(table, time) for table in COLUMNS}

    def read(self) -> Rows:
        return {
            table: [tuple(map(plain, row)) for row in self._execute(text).fetchall()]
            for table, text in self._statements.items()
        }

    def seqs(self) -> dict[DeliveryId, int]:
        rows = self._execute("SELECT id, seq FROM deliveries").fetchall()
        return {plain(id): seq for id, seq in rows}

    def empty(self) -> None:
        """Make it as if nothing had ever been done."""
        for table in COLUMNS:
            if table != "change_counter":
                self._execute(f"DELETE FROM {table}")
        self._execute("UPDATE change_counter SET n = 0, catalogue = 0")


def sqlite_tables(connection: sqlite3.Connection) -> Tables:
    return Tables(connection.execute, time="{}")


def postgres_tables(connection: psycopg.Connection) -> Tables:
    return Tables(connection.execute, time="date_part('epoch', {})")
