"""Refuses a connection whose transaction would not carry an event: in autocommit, failed or closed.

Only what the driver already knows is asked: nothing is sent.
"""

from typing import Any

from hookline.outbox.errors import NotInTransaction, OutboxError, TransactionFailed
from hookline.outbox.failures import CLOSED, FAILED

# libpq's PGTransactionStatusType
_IDLE = 0
_INERROR = 3


def check_asyncpg(connection: Any) -> None:
    if connection.is_closed():
        raise OutboxError(CLOSED)
    if not connection.is_in_transaction():
        raise NotInTransaction("Publish inside `async with connection.transaction():`.")


def check_psycopg(connection: Any) -> None:
    status = connection.info.transaction_status
    if status == _INERROR:  # in a pipeline the database would say so later
        raise TransactionFailed(FAILED)
    if connection.autocommit and status == _IDLE:
        raise NotInTransaction(
            "Publish inside `with connection.transaction():` (`async with` on an AsyncConnection)."
        )


def check_psycopg2(connection: Any) -> None:
    if connection.autocommit and connection.get_transaction_status() == _IDLE:
        raise NotInTransaction("Set `connection.autocommit = False`, and commit when all is done.")


def check_django(connection: Any) -> None:
    if connection.closed_in_transaction:
        raise OutboxError(CLOSED)
    if connection.needs_rollback:
        raise TransactionFailed(FAILED)
    if not connection.in_atomic_block and connection.get_autocommit():
        raise NotInTransaction("Publish inside `with transaction.atomic():`.")


SQLITE_STEP = "Execute BEGIN IMMEDIATE first, and commit when all is done."


def check_sqlite3(connection: Any) -> None:
    if not connection.in_transaction and commits_at_once(connection):
        raise NotInTransaction(SQLITE_STEP)


def commits_at_once(connection: Any) -> bool:
    """Whether a statement outside a transaction is one by itself on this connection of `sqlite3` or `aiosqlite`."""
    # Since Python 3.12: True and False mean what they say; with any other value isolation_level decides.
    autocommit = getattr(connection, "autocommit", None)
    if autocommit is True or autocommit is False:
        return bool(autocommit)
    return connection.isolation_level is None


def check_sqlalchemy(connection: Any) -> None:
    """`connection` is a synchronous `Connection`, perhaps behind an asynchronous one."""
    # As the first statement would. Before: an application may have SQLAlchemy send BEGIN IMMEDIATE itself at this point.
    begun = None if connection.in_transaction() else connection.begin()
    pooled = connection.connection
    if connection.dialect.name == "sqlite":
        driver = pooled.driver_connection
        is_refused = not driver.in_transaction and commits_at_once(driver)
    else:
        is_refused = bool(pooled.dbapi_connection.autocommit)  # get_isolation_level() says READ COMMITTED
    if is_refused:
        if begun is not None:
            begun.rollback()
        raise NotInTransaction("Use an engine, connection or session without the isolation level AUTOCOMMIT.")
