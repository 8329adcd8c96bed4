"""Migrating makes the table that `hookline.outbox.ddl` makes, or leaves the one that an application made first."""

import sqlite3
from contextlib import closing
from importlib import resources

import psycopg
import pytest

from hookline.outbox import ddl
from hookline.outbox.table import ddl_statements
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.anyio


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
def test_the_migration_has_the_statements_of_the_ddl(dialect):
    package = f"hookline.store.{'postgres' if dialect == 'postgresql' else 'sqlite'}.migrations"
    migration = words((resources.files(package) / "0022_outbox.sql").read_text("utf-8"))
    made = [each for each in ddl_statements(dialect) if not each.startswith("CREATE SCHEMA")]
    assert len(made) == (3 if dialect == "postgresql" else 2)
    for statement in made:
        assert words(statement) + ";" in migration


async def test_an_application_that_was_first_keeps_its_rows(bare, store_kind):
    if store_kind == "sqlite":
        store = bare.new_store()
        assert isinstance(store, SqliteStore)
        with closing(sqlite3.connect(store._path)) as connection:
            connection.executescript(ddl("sqlite"))
    else:
        store = bare.new_store()
        assert isinstance(store, PostgresStore)
        with psycopg.connect(store._url) as session:
            session.execute(ddl("postgresql"))
            session.execute("INSERT INTO hookline.outbox (type, payload) VALUES ('a', '{}')")
    await store.migrate()
    await store.open()
    try:
        assert (await store.outbox_backlog()).rows == (0 if store_kind == "sqlite" else 1)
    finally:
        await store.close()
