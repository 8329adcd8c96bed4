"""Reads what applications have left in the outbox and in their own table, whatever they wrote it with."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from hookline.ids import show
from hookline.outbox import ddl

ORDERS = "CREATE TABLE orders (number integer NOT NULL)"


class Kept(NamedTuple):
    """A row of the outbox."""

    id: str
    account: str
    type: str
    idempotency_key: str | None
    deliver_at: float | None
    hops: int
    payload: bytes


class Postgres:
    """An application's own database, with the outbox in it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def orders(self) -> list[int]:
        return [number for (number,) in self.run("SELECT number FROM orders ORDER BY ctid")]

    def kept(self) -> list[Kept]:
        rows = self.run(
            "SELECT id, account, type, idempotency_key, extract(epoch FROM deliver_at)::float8, hops, payload "
            "FROM hookline.outbox ORDER BY seq"
        )
        return [Kept(show("event", id.bytes), *rest) for id, *rest in rows]

    def empty(self) -> None:
        self.run("TRUNCATE hookline.outbox, orders")


class Sqlite:
    """An application's own file, with the outbox in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, timeout=20)) as connection, connection:
            return connection.execute(statement, values).fetchall()

    def orders(self) -> list[int]:
        return [number for (number,) in self.run("SELECT number FROM orders ORDER BY rowid")]

    def kept(self) -> list[Kept]:
        rows = self.run(
            "SELECT id, account, type, idempotency_key, deliver_at, hops, payload FROM hookline_outbox ORDER BY seq"
        )
        return [Kept(show("event", id), *rest) for id, *rest in rows]


def made_on_postgres(url: str) -> Postgres:
    database = Postgres(url)
    database.run(ddl("postgresql"))
    database.run(ORDERS)
    return database


def made_on_sqlite(path: Path) -> Sqlite:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(ddl("sqlite"))
        connection.execute(ORDERS)
        connection.commit()
    return Sqlite(path)


Database = Postgres | Sqlite
Made = Callable[[], Database]
