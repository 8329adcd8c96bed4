"""Makes a database refuse certain rows, as a rule of its own would."""

import asyncio
import sqlite3
from contextlib import closing

import psycopg

from hookline.store.contract import Store
from hookline.store.sqlite.store import SqliteStore

REAL_SECONDS = 60.0  # after which a table that stays locked fails the test


async def refuse(store: Store, table: str, condition: str) -> None:
    """Refuse every row of the table with such columns from now on."""
    if isinstance(store, SqliteStore):
        await _change_file(
            store._path,
            *(
                f"CREATE TRIGGER refuse_{event} BEFORE {event} ON {table} WHEN NEW.{condition} "
                "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
                for event in ("INSERT", "UPDATE")
            ),
        )
        return
    await _change_database(
        store, f"ALTER TABLE {table} ADD CONSTRAINT refuse CHECK ((NOT ({condition})) IS NOT FALSE) NOT VALID"
    )


async def relent(store: Store, table: str) -> None:
    """Accept them again."""
    if isinstance(store, SqliteStore):
        await _change_file(store._path, "DROP TRIGGER refuse_INSERT", "DROP TRIGGER refuse_UPDATE")
        return
    await _change_database(store, f"ALTER TABLE {table} DROP CONSTRAINT refuse")


async def _change_file(path: str, *statements: str) -> None:
    def change() -> None:
        with closing(sqlite3.connect(path, timeout=REAL_SECONDS)) as file, file:
            for statement in statements:
                file.execute(statement)

    await asyncio.to_thread(change)


async def _change_database(store: Store, statement: str) -> None:
    """In a session that does not keep this process waiting: one of its own transactions may hold the table."""
    url: str = store._url  # type: ignore[attr-defined]
    async with asyncio.timeout(REAL_SECONDS):
        session = await psycopg.AsyncConnection.connect(
            url, options="-c search_path=hookline", autocommit=True
        )
        async with session:
            await session.execute(statement)  # type: ignore[arg-type]
