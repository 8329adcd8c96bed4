"""Inserts rows through an application's asynchronous connection."""

from collections.abc import Sequence
from typing import Any

from hookline.outbox.blocking import insert_in_session, insert_with_sqlalchemy, psycopg_placeholders
from hookline.outbox.errors import NotInTransaction
from hookline.outbox.failures import translated
from hookline.outbox.kinds import ConnectionKind, async_kind_of
from hookline.outbox.states import SQLITE_STEP, check_asyncpg, check_psycopg, commits_at_once
from hookline.outbox.table import OutboxRow, Placeholders, insert_of


async def insert(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    """Insert the rows in the connection's open transaction."""
    match async_kind_of(connection):
        case ConnectionKind.ASYNCPG:
            await _asyncpg(connection, rows, table)
        case ConnectionKind.PSYCOPG_ASYNC:
            await _psycopg(connection, rows, table)
        case ConnectionKind.SQLALCHEMY_ASYNC:
            with translated("postgresql", table):
                await connection.run_sync(insert_with_sqlalchemy, rows, table)
        case ConnectionKind.SQLALCHEMY_ASYNC_SESSION:
            await connection.run_sync(insert_in_session, rows, table)
        case ConnectionKind.SQLALCHEMY_ASYNC_REGISTRY:
            await connection().run_sync(insert_in_session, rows, table)
        case _:
            await _aiosqlite(connection, rows, table)


async def _asyncpg(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    with translated("postgresql", table):
        check_asyncpg(connection)
        statement, values = insert_of(rows, "postgresql", Placeholders.NUMBERED, table)
        await connection.execute(statement, *values)


async def _psycopg(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    with translated("postgresql", table):
        check_psycopg(connection)
        async with connection.cursor() as cursor:
            await cursor.execute(*insert_of(rows, "postgresql", psycopg_placeholders(cursor), table))


async def _aiosqlite(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    with translated("sqlite", table):
        # On the connection's own thread: since Python 3.12 another one may not ask.
        if not connection.in_transaction and await connection._execute(commits_at_once, connection._conn):
            raise NotInTransaction(SQLITE_STEP)
        cursor = await connection.execute(*insert_of(rows, "sqlite", Placeholders.QUESTION, table))
        await cursor.close()
