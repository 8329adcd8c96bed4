"""How does an SQLite file get its schema?"""

import sqlite3
from collections.abc import Iterator, Sequence

from hookline.store.migrations import Applied, Migration, outstanding, read_migrations
from hookline.store.sqlite import sql

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
