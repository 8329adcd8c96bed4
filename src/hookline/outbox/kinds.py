"""Tells what kind of connection an application has given.

No driver is imported: the connection's class tells. All base classes count, because applications and tools derive their
own.
"""

from collections.abc import Awaitable
from enum import StrEnum
from typing import Any, Protocol


class ConnectionKind(StrEnum):
    """The kinds of connections, in the words of an error."""

    PSYCOPG = "psycopg's Connection"
    PSYCOPG2 = "psycopg2's connection"
    SQLALCHEMY = "SQLAlchemy's Connection"
    SQLALCHEMY_SESSION = "SQLAlchemy's Session"
    SQLALCHEMY_REGISTRY = "SQLAlchemy's scoped_session"
    DJANGO = "Django's connection"
    SQLITE3 = "sqlite3's Connection"

    ASYNCPG = "asyncpg's Connection"
    PSYCOPG_ASYNC = "psycopg's AsyncConnection"
    SQLALCHEMY_ASYNC = "SQLAlchemy's AsyncConnection"
    SQLALCHEMY_ASYNC_SESSION = "SQLAlchemy's AsyncSession"
    SQLALCHEMY_ASYNC_REGISTRY = "SQLAlchemy's async_scoped_session"
    AIOSQLITE = "aiosqlite's Connection"


_BY_CLASS = {
    "psycopg.Connection": ConnectionKind.PSYCOPG,
    "psycopg2.extensions.connection": ConnectionKind.PSYCOPG2,
    "sqlalchemy.engine.base.Connection": ConnectionKind.SQLALCHEMY,
    "sqlalchemy.orm.session.Session": ConnectionKind.SQLALCHEMY_SESSION,
    "sqlalchemy.orm.scoping.scoped_session": ConnectionKind.SQLALCHEMY_REGISTRY,
    "django.db.backends.base.base.BaseDatabaseWrapper": ConnectionKind.DJANGO,
    "django.utils.connection.ConnectionProxy": ConnectionKind.DJANGO,
    "sqlite3.Connection": ConnectionKind.SQLITE3,
    "asyncpg.connection.Connection": ConnectionKind.ASYNCPG,
    "asyncpg.pool.PoolConnectionProxy": ConnectionKind.ASYNCPG,
    "psycopg.AsyncConnection": ConnectionKind.PSYCOPG_ASYNC,
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": ConnectionKind.SQLALCHEMY_ASYNC,
    "sqlalchemy.ext.asyncio.session.AsyncSession": ConnectionKind.SQLALCHEMY_ASYNC_SESSION,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": ConnectionKind.SQLALCHEMY_ASYNC_REGISTRY,
    "aiosqlite.core.Connection": ConnectionKind.AIOSQLITE,
}
_ASYNC = frozenset(
    {
        ConnectionKind.ASYNCPG,
        ConnectionKind.PSYCOPG_ASYNC,
        ConnectionKind.SQLALCHEMY_ASYNC,
        ConnectionKind.SQLALCHEMY_ASYNC_SESSION,
        ConnectionKind.SQLALCHEMY_ASYNC_REGISTRY,
        ConnectionKind.AIOSQLITE,
    }
)


class SyncConnection(Protocol):
    """A connection or session of psycopg, psycopg2, SQLAlchemy, Django or sqlite3."""

    def commit(self) -> None: ...
    def rollback(self) -> None: ...


class _AsyncCommitting(Protocol):
    def commit(self) -> Awaitable[None]: ...
    def rollback(self) -> Awaitable[None]: ...


class _Asyncpg(Protocol):
    def is_in_transaction(self) -> bool: ...
    def is_closed(self) -> bool: ...


# A connection or session of asyncpg, psycopg, SQLAlchemy or aiosqlite.
AsyncConnection = _AsyncCommitting | _Asyncpg


def sync_kind_of(connection: Any) -> ConnectionKind:
    """The kind of a synchronous connection; `TypeError` for anything else."""
    kind = _kind_of(connection)
    if kind is None or kind in _ASYNC:
        other = "" if kind is None else f"publish does not await it: use `await apublish(…)` for {kind}. "
        raise unknown(connection, other, "publish", [each for each in ConnectionKind if each not in _ASYNC])
    return kind


def async_kind_of(connection: Any) -> ConnectionKind:
    """The kind of an asynchronous connection; `TypeError` for anything else."""
    kind = _kind_of(connection)
    if kind is None or kind not in _ASYNC:
        other = "" if kind is None else f"apublish would block the event loop: use `publish(…)` for {kind}. "
        raise unknown(connection, other, "apublish", [each for each in ConnectionKind if each in _ASYNC])
    return kind


def unknown(connection: object, other: str, verb: str, accepted: list[ConnectionKind]) -> TypeError:
    """The error for a connection that cannot be used; names what is accepted."""
    given = type(connection)
    return TypeError(
        f"{given.__module__}.{given.__qualname__} cannot be used here. {other}"
        f"{verb} takes {', '.join(accepted[:-1])} or {accepted[-1]}."
    )


def _kind_of(connection: Any) -> ConnectionKind | None:
    given = type(connection)
    if given not in _known:  # its base classes are looked at once; programs have few kinds of connections
        _known[given] = _by_bases(given)
    return _known[given]


_known: dict[type, ConnectionKind | None] = {}


def _by_bases(given: type) -> ConnectionKind | None:
    for each in given.__mro__:
        kind = _BY_CLASS.get(f"{each.__module__}.{each.__qualname__}")
        if kind is not None:
            return kind
    return None
