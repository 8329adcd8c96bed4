"""Is this database's schema the one this code knows, and how does it become that?"""

from typing import Any

from hookline.store.migrations import Applied, outstanding, read_migrations, refuse_unless_current
from hookline.store.postgres import sql
from hookline.store.postgres.session import SCHEMA

_PACKAGE = "hookline.store.postgres.migrations"
_LOCK = int.from_bytes(b"hookline")  # the advisory lock of whoever migrates this database


async def bring_up_to_date(connection: Any) -> list[str]:
    """Apply what is missing, each file in a transaction with its record.

    Waits for whoever is at it already: the lock is the session's, and ends with it.
    """
    await connection.execute(sql.MIGRATIONS_LOCK, _LOCK)
    if not await connection.fetchval(sql.MIGRATIONS_EXIST):
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await connection.execute(sql.MIGRATIONS_CREATE)
    missing = outstanding(read_migrations(_PACKAGE), await _applied(connection))
    for migration in missing:
        async with connection.transaction():
            await connection.execute(migration.sql)
            await connection.execute(
                sql.MIGRATIONS_RECORD, migration.number, migration.name, migration.checksum
            )
    return [migration.name for migration in missing]


async def would_apply(connection: Any) -> list[str]:
    """The names of what is missing."""
    return [migration.name for migration in outstanding(read_migrations(_PACKAGE), await _found(connection))]


async def refuse_unless_usable(connection: Any) -> None:
    """Refuse a database whose schema this code does not know."""
    refuse_unless_current(read_migrations(_PACKAGE), await _found(connection))


async def _found(connection: Any) -> list[Applied]:
    return await _applied(connection) if await connection.fetchval(sql.MIGRATIONS_EXIST) else []


async def _applied(connection: Any) -> list[Applied]:
    return [Applied(*row) for row in await connection.fetch(sql.MIGRATIONS_READ)]
