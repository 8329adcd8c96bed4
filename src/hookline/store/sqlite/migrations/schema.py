"""Migrates the schema of an SQLite file."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from urllib.parse import quote

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
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.connection import refuse_unwritable
from hookline.store.sqlite.driver.faults import translated

MIGRATIONS = read_migrations("hookline.store.sqlite.migrations")
LEVEL = level(MIGRATIONS)


def applied(connection: sqlite3.Connection) -> list[Applied]:
    """The migrations applied to the file; none in a new file."""
    (exists,) = connection.execute(sql.MIGRATIONS_EXIST).fetchone()
    return [Applied(*row) for row in connection.execute(sql.MIGRATIONS_READ)] if exists else []


def served_level(connection: sqlite3.Connection) -> int | None:
    """The lowest level of code that the schema serves; None: the schema is too old to say."""
    (exists,) = connection.execute(sql.SERVES_EXISTS).fetchone()
    if not exists:
        return None
    (found,) = connection.execute(sql.SERVES_READ).fetchone()
    return int(found)


def refuse_unless_usable(connection: sqlite3.Connection) -> None:
    """Refuse a file whose schema this code cannot use."""
    refuse_unless_current(MIGRATIONS, applied(connection), serves=served_level(connection))


def refuse_if_outgrown(connection: sqlite3.Connection) -> None:
    """Refuse a file that was migrated beyond this code since it was opened."""
    (serves,) = connection.execute(sql.SERVES_READ).fetchone()
    if serves > LEVEL:
        (newest,) = connection.execute(sql.NEWEST_MIGRATION).fetchone()
        refuse_outgrown(MIGRATIONS, newest=newest, serves=serves)


def migrate(
    connection: sqlite3.Connection, *, at: float, migrations: Sequence[Migration] = MIGRATIONS
) -> list[str]:
    """Apply the outstanding migrations, each with its record in one transaction; their names.

    The write lock is held from the check to the commit, so of many processes each finds what the others left to do.
    """
    names: list[str] = []
    while outstanding(migrations, applied(connection), serves=served_level(connection)):
        failpoint("migrate.step")
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(sql.MIGRATIONS_CREATE)
            left = outstanding(migrations, applied(connection), serves=served_level(connection))
            for migration in left[:1]:
                for statement in _statements(migration.sql):
                    connection.execute(statement)
                    failpoint("migrate.step")
                connection.execute(
                    sql.MIGRATIONS_RECORD,
                    {
                        "number": migration.number,
                        "name": migration.name,
                        "checksum": migration.checksum,
                        "at": at,
                    },
                )
                if served_level(connection) is not None:
                    connection.execute(sql.SERVES_RAISE, {"level": migration.serves})
                names.append(migration.name)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return names


def would_apply(path: str) -> list[str]:
    """The names of the outstanding migrations, found without writing: a new file needs all and is not created."""
    refuse_unwritable(path, create=True)
    found: list[Applied] = []
    serves: int | None = None
    if os.path.exists(path):
        try:
            with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
                found = applied(connection)
                serves = served_level(connection)
        except sqlite3.Error as error:
            raise translated(error) from error
    return [migration.name for migration in outstanding(MIGRATIONS, found, serves=serves)]


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit the transaction before the first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
