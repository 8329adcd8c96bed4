"""Gives tests two stores that get the same steps."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore
from tests.model.databases import postgres_tables, sqlite_tables
from tests.model.driver import Driver, Subject


@pytest.fixture
def new_driver(sqlite_path: Path, postgres_url: str) -> Iterator[Callable[[], Driver]]:
    """Starts over, on an empty SQLite file and an empty PostgreSQL database."""
    stores = {"sqlite": SqliteStore(str(sqlite_path)), "postgres": PostgresStore(postgres_url)}
    with (
        asyncio.Runner() as runner,
        closing(sqlite3.connect(sqlite_path, isolation_level=None)) as file,
        psycopg.connect(postgres_url, options="-c search_path=hookline", autocommit=True) as server,
    ):
        tables = {"sqlite": sqlite_tables(file), "postgres": postgres_tables(server)}
        for store in stores.values():
            runner.run(store.open())
        subjects = [Subject(name, store, tables[name]) for name, store in stores.items()]
        yield lambda: Driver(subjects, runner)
        for store in stores.values():
            runner.run(store.close())
