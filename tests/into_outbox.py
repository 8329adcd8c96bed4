"""Publishes rows into the outbox of a store's own database, as an application does."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from hookline.outbox import Draft, publish_many
from hookline.store.contract import Store
from hookline.store.sqlite.store import SqliteStore


async def publish_rows(store: Store, *types: str, payload: object = None, **fields: Any) -> list[str]:
    """A committed row of each type; their ids as people see them."""
    drafts = [Draft(type, payload, **fields) for type in types]
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path, timeout=20)) as connection, connection:
            return list(publish_many(connection, drafts))
    with psycopg.connect(store._url) as session:
        return list(publish_many(session, drafts))


def execute(store: Store, statement: str, *values: object) -> None:
    """Change the database without the store; values are `?` there too."""
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path, timeout=20)) as connection, connection:
            connection.execute(statement, values)
        return
    with psycopg.connect(store._url, options="-c search_path=hookline") as session:
        session.execute(statement.replace("?", "%s").replace("hookline_outbox", "hookline.outbox"), values)
