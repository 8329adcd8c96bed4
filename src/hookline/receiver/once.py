"""Processes each event once.

The mark is written in the handler's own transaction, on the application's connection: both are kept or neither is.
While one delivery is being processed, another one of the same event waits until that transaction ends.
"""

from typing import Any

from hookline.receiver.connections import (
    NoTransaction,
    async_link_of,
    connection_of,
    is_asyncpg,
    is_sqlalchemy,
    is_sqlalchemy_async,
    link_of,
)

# As long as hookline keeps dead letters by default: until then each of them may be replayed.
KEEP = 90 * 86_400.0
PRUNE_LIMIT = 10_000  # marks at a time: short transactions


class ProcessOnce:
    """Remembers which events were processed, in a table beside the application's own.

    It takes connections of `sqlite3`, `psycopg` and Django, and connections and sessions of SQLAlchemy. A `consumer` processes each event once: two consumers that
    share a database, each with its own endpoint, need two names.
    """

    def __init__(self, consumer: str = "default") -> None:
        self.consumer = consumer

    def setup(self, connection: Any) -> None:
        """Create the table unless it exists; commit as for any other change."""
        connection = connection_of(connection)
        for statement in link_of(connection).statements.setup:
            _rows(connection, statement)

    def mark(self, connection: Any, event_id: str) -> bool:
        """Mark the event as processed; returns whether it is new. The mark lasts only if the open transaction commits.

        Call it first in the transaction. It raises `NoTransaction` where the mark would be kept at once.
        """
        connection = connection_of(connection)
        link = link_of(connection)
        if not link.is_in_transaction(connection):
            raise NoTransaction
        return _rows(connection, link.spelled(link.statements.mark), self.consumer, event_id) > 0

    def prune(self, connection: Any, *, older_than: float = KEEP, limit: int = PRUNE_LIMIT) -> int:
        """Delete marks made more than `older_than` seconds ago, of all consumers; returns their number.

        If the number equals `limit`, there may be more.
        """
        connection = connection_of(connection)
        link = link_of(connection)
        return _rows(connection, link.spelled(link.statements.prune), older_than, limit)


class AsyncProcessOnce:
    """`ProcessOnce` for `asyncpg`, `psycopg.AsyncConnection`, and SQLAlchemy's `AsyncSession` and `AsyncConnection`."""

    def __init__(self, consumer: str = "default") -> None:
        self.consumer = consumer

    async def setup(self, connection: Any) -> None:
        """Create the table unless it exists; commit as for any other change."""
        if is_sqlalchemy_async(connection):
            await connection.run_sync(ProcessOnce(self.consumer).setup)
            return
        for statement in async_link_of(connection).statements.setup:
            await _fetched(connection, statement)

    async def mark(self, connection: Any, event_id: str) -> bool:
        """Mark the event as processed; returns whether it is new. The mark lasts only if the open transaction commits.

        Call it first in the transaction. It raises `NoTransaction` where the mark would be kept at once.
        """
        if is_sqlalchemy_async(connection):
            return bool(await connection.run_sync(ProcessOnce(self.consumer).mark, event_id))
        link = async_link_of(connection)
        if not link.is_in_transaction(connection):
            raise NoTransaction
        return await _fetched(connection, link.spelled(link.statements.mark), self.consumer, event_id) > 0

    async def prune(self, connection: Any, *, older_than: float = KEEP, limit: int = PRUNE_LIMIT) -> int:
        """Delete marks made more than `older_than` seconds ago, of all consumers; returns their number.

        If the number equals `limit`, there may be more.
        """
        if is_sqlalchemy_async(connection):
            prune = ProcessOnce(self.consumer).prune
            return int(await connection.run_sync(prune, older_than=older_than, limit=limit))
        link = async_link_of(connection)
        return await _fetched(connection, link.spelled(link.statements.prune), older_than, limit)


def _rows(connection: Any, statement: str, *values: object) -> int:
    """Run a statement; returns the number of rows."""
    if is_sqlalchemy(connection):
        result = connection.exec_driver_sql(statement, values or None)
        return len(result.fetchall()) if result.returns_rows else 0
    cursor = connection.cursor()
    try:
        cursor.execute(statement, values) if values else cursor.execute(statement)
        return len(cursor.fetchall()) if cursor.description else 0
    finally:
        cursor.close()


async def _fetched(connection: Any, statement: str, *values: object) -> int:
    """Run a statement; returns the number of rows."""
    if is_asyncpg(connection):
        return len(await connection.fetch(statement, *values))
    async with connection.cursor() as cursor:
        await cursor.execute(statement, values or None)
        return len(await cursor.fetchall()) if cursor.description else 0
