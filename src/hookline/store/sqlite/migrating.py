"""How does an SQLite file get its schema?"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from urllib.parse import quote

from hookline.store.migrations import Applied, Migration, outstanding, read_migrations
from hookline.store.sqlite import sql
from hookline.store.sqlite.connection import refuse_unwritable
from hookline.store.sqlite.faults import translated

MIGRATIONS = read_migrations("hookline.store.sqlite.migrations")


def applied(connection: sqlite3.Connection) -> list[Applied]:
    """What the file's schema consists of; nothing in a new file."""
    (exists,) = connection.execute(sql.MIGRATIONS_EXIST).fetchone()
    return [Applied(*row) for row in connection.execute(sql.MIGRATIONS_READ)] if exists else []


def migrate(
    connection: sqlite3.Connection, *, at: float, migrations: Sequence[Migration] = MIGRATIONS
) -> list[str]:
    """Apply what is outstanding, each with its record in one transaction; the names.

    The write lock is held from the look to the commit, so of many processes each finds what the others left.
    """
    names: list[str] = []
    while outstanding(migrations, applied(connection)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(sql.MIGRATIONS_CREATE)
            for migration in outstanding(migrations, applied(connection))[:1]:
                for statement in _statements(migration.sql):
                    connection.execute(statement)
                connection.execute(
                    sql.MIGRATIONS_RECORD,
                    {
                        "number": migration.number,
                        "name": migration.name,
                        "checksum": migration.checksum,
                        "at": at,
                    },
                )
                names.append(migration.name)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return names


def would_apply(path: str) -> list[str]:
    """The names of what is outstanding, found without writing: a new file needs everything, and is not made."""
    refuse_unwritable(path, create=True)
    found: list[Applied] = []
    if os.path.exists(path):
        try:
            with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
                found = applied(connection)
        except sqlite3.Error as error:
            raise translated(error) from error
    return [migration.name for migration in outstanding(MIGRATIONS, found)]


def _statements(script: str) -> Iterator[str]:
    """The statements of a script: `executescript` would commit the transaction before the first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
