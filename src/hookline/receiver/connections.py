"""Runs statements on an application's own connection.

No driver is imported: the connection's class tells which driver it is.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from hookline.errors import HooklineError
from hookline.receiver.sql import POSTGRES, SQLITE, Statements

_IDLE = 0  # libpq's PQTRANS_IDLE


class UnknownConnection(HooklineError):
    """This kind of connection is not supported; names its class."""

    def __init__(self, connection: object, wanted: str) -> None:
        kind = type(connection)
        super().__init__(f"{kind.__module__}.{kind.__qualname__} cannot be used here: {wanted}.")


class NoTransaction(HooklineError):
    """No transaction is open: the mark would be kept even if the handler fails."""

    def __init__(self) -> None:
        super().__init__("Open a transaction first: a mark must not outlive a handler that fails.")


class Link(NamedTuple):
    """A kind of connection."""

    statements: Statements
    spelled: Callable[[str], str]  # a statement with the driver's own placeholders
    is_in_transaction: Callable[[Any], bool]  # or opens with the first statement


def connection_of(given: Any) -> Any:
    """The connection that a session of SQLAlchemy uses; anything else as it is."""
    return given.connection() if _names(given) & _SQLALCHEMY_SESSIONS else given


def link_of(connection: Any) -> Link:
    """How to use a synchronous connection."""
    names = _names(connection)
    if "sqlite3.Connection" in names:
        return Link(SQLITE, str, _sqlite3)
    if "psycopg.Connection" in names:
        return Link(POSTGRES, _format, _psycopg)
    # Django's own, also behind the proxy `django.db.connection`.
    if any(name.startswith("django.") for name in names):
        vendor = getattr(connection, "vendor", None)
        if vendor in ("sqlite", "postgresql"):
            return Link(SQLITE if vendor == "sqlite" else POSTGRES, _format, _django)
    if is_sqlalchemy(connection):
        found = _SQLALCHEMY.get((connection.dialect.name, connection.dialect.driver))
        if found is not None:
            return found
    raise UnknownConnection(
        connection,
        "ProcessOnce takes connections of sqlite3, psycopg, Django and SQLAlchemy, AsyncProcessOnce the others",
    )


def async_link_of(connection: Any) -> Link:
    """How to use an asynchronous connection."""
    names = _names(connection)
    if "psycopg.AsyncConnection" in names:
        return Link(POSTGRES, _format, _psycopg)
    if is_asyncpg(connection):
        return Link(POSTGRES, _numbered, _asyncpg)
    raise UnknownConnection(
        connection,
        "AsyncProcessOnce takes connections of asyncpg, psycopg and SQLAlchemy, ProcessOnce the others",
    )


def is_sqlalchemy(connection: Any) -> bool:
    """Whether it is SQLAlchemy's synchronous connection, whatever the driver."""
    return "sqlalchemy.engine.base.Connection" in _names(connection)


def is_sqlalchemy_async(connection: Any) -> bool:
    """Whether it is an asynchronous connection or session of SQLAlchemy."""
    return bool(_names(connection) & _SQLALCHEMY_ASYNC)


def is_asyncpg(connection: Any) -> bool:
    """Whether it is asyncpg's, plain or from its pool."""
    return bool(_names(connection) & {"asyncpg.connection.Connection", "asyncpg.pool.PoolConnectionProxy"})


def _names(connection: Any) -> set[str]:
    # Of all base classes: applications and tools derive their own.
    return {f"{each.__module__}.{each.__qualname__}" for each in type(connection).__mro__}


def _format(statement: str) -> str:
    return statement.replace("?", "%s")


def _numbered(statement: str) -> str:
    number = iter(range(1, 10))
    return re.sub(r"\?", lambda _: f"${next(number)}", statement)


def _sqlite3(connection: Any) -> bool:
    if connection.in_transaction:
        return True
    # Since Python 3.12: True and False mean what they say; with any other value isolation_level decides.
    autocommit = getattr(connection, "autocommit", None)
    if autocommit is True:
        return False
    return autocommit is False or connection.isolation_level is not None


def _psycopg(connection: Any) -> bool:
    return not connection.autocommit or connection.info.transaction_status != _IDLE


def _django(connection: Any) -> bool:
    return connection.in_atomic_block or not connection.get_autocommit()


def _asyncpg(connection: Any) -> bool:
    return bool(connection.is_in_transaction())


def _sqlalchemy(connection: Any) -> bool:
    # As the first statement would. Before: an application may have SQLAlchemy send BEGIN IMMEDIATE itself at this point.
    begun = None if connection.in_transaction() else connection.begin()
    pooled = connection.connection
    if connection.dialect.name == "sqlite":
        is_open = _sqlite3(pooled.driver_connection)
    else:
        is_open = not pooled.dbapi_connection.autocommit  # get_isolation_level() says READ COMMITTED
    if begun is not None and not is_open:
        begun.rollback()
    return is_open


_SQLALCHEMY_SESSIONS = frozenset({"sqlalchemy.orm.session.Session", "sqlalchemy.orm.scoping.scoped_session"})
_SQLALCHEMY_ASYNC = frozenset(
    {"sqlalchemy.ext.asyncio.engine.AsyncConnection", "sqlalchemy.ext.asyncio.session.AsyncSession"}
)
_SQLALCHEMY = {
    ("postgresql", "psycopg"): Link(POSTGRES, _format, _sqlalchemy),
    ("postgresql", "psycopg_async"): Link(POSTGRES, _format, _sqlalchemy),
    ("postgresql", "psycopg2"): Link(POSTGRES, _format, _sqlalchemy),
    ("postgresql", "asyncpg"): Link(POSTGRES, _numbered, _sqlalchemy),
    ("sqlite", "pysqlite"): Link(SQLITE, str, _sqlalchemy),
    ("sqlite", "aiosqlite"): Link(SQLITE, str, _sqlalchemy),
}
