"""Writes into a database around the store, as an operator with an SQL prompt would."""

import sqlite3
import uuid
from contextlib import closing
from typing import Any

import psycopg

TELL = {
    "sqlite": (
        "UPDATE change_counter SET n = n + 1, catalogue = n + 1",
        "INSERT INTO changes (n, endpoint_id, kind, at) SELECT n, ?, 'endpoint', 0.0 FROM change_counter",
    ),
    "postgres": (
        "UPDATE change_counter SET n = n + 1, catalogue = n + 1",
        "INSERT INTO changes (n, endpoint_id, kind, at) SELECT n, %s, 'endpoint', now() FROM change_counter",
    ),
}


def is_sqlite(database: str) -> bool:
    return database.startswith("sqlite:")


def plant(database: str, endpoint: bytes, column: str, value: Any, *, tell: bool = False) -> None:
    """Put a value into an endpoint's row; with `tell`, running processes hear of it."""
    kind = "sqlite" if is_sqlite(database) else "postgres"
    mark = "?" if kind == "sqlite" else "%s"
    statements: list[tuple[str, tuple[Any, ...]]] = [
        (f"UPDATE endpoints SET {column} = {mark} WHERE id = {mark}", (value, endpoint))
    ]
    if tell:
        statements += [(TELL[kind][0], ()), (TELL[kind][1], (endpoint,))]
    with closing(_connect(database)) as connection, connection:
        for statement, values in statements:
            connection.execute(statement, _bound(kind, values))


def _connect(database: str) -> Any:
    if is_sqlite(database):
        return sqlite3.connect(database.removeprefix("sqlite:///"), timeout=30.0)
    return psycopg.connect(database, options="-c search_path=hookline")


def _bound(kind: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if kind == "sqlite":
        return values
    return tuple(uuid.UUID(bytes=each) if isinstance(each, bytes) else each for each in values)
