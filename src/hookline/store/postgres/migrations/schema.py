"""Migrates the schema of a PostgreSQL while other processes use it.

An ALTER waits for everybody who uses its table, and everybody else then waits behind it: one forgotten open report
would stop all publishing. So a migration waits for a lock only a moment, lets the others continue, and tries again.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import asyncpg

from hookline.errors import StoreRefused, StoreUnavailable
from hookline.failpoints import failpoint
from hookline.store.migrations import (
    Applied,
    Migration,
    level,
    outstanding,
    read_migrations,
    refuse_outgrown,
    refuse_unless_current,
)
from hookline.store.postgres import sql
from hookline.store.postgres.driver.session import SCHEMA

_LOCK = int.from_bytes(b"hookline")  # the advisory lock of the process that migrates this database
LOCK_TIMEOUT = "SET lock_timeout = '300ms'"
NO_LOCK_TIMEOUT = "SET lock_timeout = 0"
PAUSE = "SELECT pg_sleep(0.3)"  # between two tries; meanwhile the others do what had to wait
TRIES = 100  # a minute


@cache
def known() -> tuple[Migration, ...]:
    """The migrations of this code."""
    return read_migrations("hookline.store.postgres.migrations")


@cache
def own_level() -> int:
    """The level of this code."""
    return level(known())


async def bring_up_to_date(
    connection: Any, *, migrations: Sequence[Migration] | None = None, tries: int = TRIES
) -> list[str]:
    """Apply the missing migrations, each file with its record, beside processes that they still serve.

    Waits for a process that already migrates: the lock belongs to its session and ends with it.
    """
    await connection.execute(sql.MIGRATIONS_LOCK, _LOCK)
    if not await connection.fetchval(sql.MIGRATIONS_EXIST):
        await _refuse_hidden(connection)
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await connection.execute(sql.MIGRATIONS_CREATE)
    missing = outstanding(
        migrations or known(), await _applied(connection), serves=await _served_level(connection)
    )
    for migration in missing:
        failpoint("migrate.step")
        if migration.is_stepwise:
            await connection.execute(NO_LOCK_TIMEOUT)  # these wait without making anybody else wait
            for statement in statements(migration.sql):
                await connection.execute(statement)
                failpoint("migrate.step")
        await connection.execute(LOCK_TIMEOUT)
        await _apply_patiently(connection, migration, tries)
    return [migration.name for migration in missing]


async def _apply_patiently(connection: Any, migration: Migration, tries: int) -> None:
    for _ in range(tries):
        try:
            await _apply(connection, migration)
            return
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            await connection.execute(PAUSE)
    raise StoreUnavailable(
        f"Migration {migration.name} could not get its locks within a minute, because of a transaction that stays "
        "open (see pg_stat_activity): end it and run `hookline migrate` again."
    )


async def _apply(connection: Any, migration: Migration) -> None:
    async with connection.transaction():
        if not migration.is_stepwise:
            await connection.execute(migration.sql)
        await connection.execute(sql.MIGRATIONS_RECORD, migration.number, migration.name, migration.checksum)
        if await connection.fetchval(sql.SERVES_EXISTS):
            await connection.execute(sql.SERVES_RAISE, migration.serves)
        failpoint("migrate.step")


def statements(script: str) -> Iterator[str]:
    """The statements of a script; each ends at the end of a line."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";"):
            yield statement
            statement = ""


async def would_apply(connection: Any) -> list[str]:
    """The names of the missing migrations."""
    found, serves = await _found(connection)
    return [migration.name for migration in outstanding(known(), found, serves=serves)]


async def refuse_unless_usable(connection: Any) -> None:
    """Refuse a database whose schema this code cannot use."""
    found, serves = await _found(connection)
    refuse_unless_current(known(), found, serves=serves)


async def refuse_if_outgrown(connection: Any, *, serves: int) -> None:
    """Refuse a database that was migrated beyond this code since it was opened."""
    refuse_outgrown(known(), newest=await connection.fetchval(sql.NEWEST_MIGRATION) or "", serves=serves)


async def _found(connection: Any) -> tuple[list[Applied], int | None]:
    if not await connection.fetchval(sql.MIGRATIONS_EXIST):
        await _refuse_hidden(connection)
        return [], None
    return await _applied(connection), await _served_level(connection)


async def _refuse_hidden(connection: Any) -> None:
    user = await connection.fetchval(sql.HIDDEN_FROM, SCHEMA)
    if user is not None:
        raise StoreRefused(
            f"The user {user} may not use the schema `{SCHEMA}`: GRANT USAGE ON SCHEMA {SCHEMA} TO {user}; "
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {user}."
        )


async def _applied(connection: Any) -> list[Applied]:
    return [Applied(*row) for row in await connection.fetch(sql.MIGRATIONS_READ)]


async def _served_level(connection: Any) -> int | None:
    """The lowest level of code that the schema serves; None: the schema is too old to say."""
    if not await connection.fetchval(sql.SERVES_EXISTS):
        return None
    found: int = await connection.fetchval(sql.SERVES_READ)
    return found
