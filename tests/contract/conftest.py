"""Gives tests a database that nothing was done to yet."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from hookline.store.contract import Store
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore


class Bare:
    """A database that nothing was done to yet, and access to it without the store."""

    def __init__(self, new_store: Callable[[], Store], code: str, execute: Callable[[str], object]) -> None:
        self.new_store = new_store
        self.code = code
        self.execute = execute


@pytest.fixture
def bare(store_kind, request, tmp_path):
    if store_kind == "sqlite":
        path = str(tmp_path / "bare.db")

        def execute(statement):
            with closing(sqlite3.connect(path)) as connection, connection:
                return connection.execute(statement).fetchall()

        code = f"from hookline.store.sqlite.store import SqliteStore as S; store = S({path!r})"
        yield Bare(lambda: SqliteStore(path), code, execute)
        return
    server = request.getfixturevalue("chosen_server")
    name = server.create_database()
    url = server.url(name)

    def execute(statement):
        with psycopg.connect(url, options="-c search_path=hookline") as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    code = f"from hookline.store.postgres.store import PostgresStore as S; store = S({url!r})"
    yield Bare(lambda: PostgresStore(url), code, execute)
    server.drop_database(name)
