"""Inserts rows through an application's synchronous connection."""

from collections.abc import Sequence
from typing import Any

from hookline.outbox import nudging
from hookline.outbox.failures import translated
from hookline.outbox.kinds import ConnectionKind, sync_kind_of
from hookline.outbox.states import (
    check_django,
    check_psycopg,
    check_psycopg2,
    check_sqlalchemy,
    check_sqlite3,
)
from hookline.outbox.table import Dialect, OutboxRow, Placeholders, insert_of

_NUDGES = "hookline.outbox.nudges"  # in a session's info: a commit is to nudge
_SQLALCHEMY: dict[tuple[str, str], tuple[Dialect, Placeholders]] = {
    ("postgresql", "psycopg"): ("postgresql", Placeholders.FORMAT),
    ("postgresql", "psycopg_async"): ("postgresql", Placeholders.FORMAT),
    ("postgresql", "psycopg2"): ("postgresql", Placeholders.FORMAT),
    ("postgresql", "asyncpg"): ("postgresql", Placeholders.NUMBERED),
    ("sqlite", "pysqlite"): ("sqlite", Placeholders.QUESTION),
    ("sqlite", "aiosqlite"): ("sqlite", Placeholders.QUESTION),
}


def insert(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    """Insert the rows in the connection's open transaction."""
    match sync_kind_of(connection):
        case ConnectionKind.PSYCOPG:
            _psycopg(connection, rows, table)
        case ConnectionKind.PSYCOPG2:
            _psycopg2(connection, rows, table)
        case ConnectionKind.SQLALCHEMY:
            insert_with_sqlalchemy(connection, rows, table)
        case ConnectionKind.SQLALCHEMY_SESSION:
            insert_in_session(connection, rows, table)
        case ConnectionKind.SQLALCHEMY_REGISTRY:
            insert_in_session(connection(), rows, table)
        case ConnectionKind.DJANGO:
            _django(connection, rows, table)
        case _:
            _sqlite3(connection, rows, table)


def psycopg_placeholders(cursor: Any) -> Placeholders:
    """How the cursor that psycopg's connection makes spells them: an application may have chosen raw cursors."""
    is_raw = any(each.__name__ == "RawCursorMixin" for each in type(cursor).__mro__)
    return Placeholders.NUMBERED if is_raw else Placeholders.FORMAT


def _psycopg(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    with translated("postgresql", table):
        check_psycopg(connection)
        with connection.cursor() as cursor:
            cursor.execute(*insert_of(rows, "postgresql", psycopg_placeholders(cursor), table))


def _psycopg2(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    if connection.async_:
        raise TypeError("psycopg2's asynchronous connections cannot be used here: they have no transactions.")
    with translated("postgresql", table):
        check_psycopg2(connection)
        with connection.cursor() as cursor:
            cursor.execute(*insert_of(rows, "postgresql", Placeholders.FORMAT, table))


def _sqlite3(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    with translated("sqlite", table):
        check_sqlite3(connection)
        connection.execute(*insert_of(rows, "sqlite", Placeholders.QUESTION, table)).close()


def _django(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    vendor = connection.vendor
    if vendor not in ("postgresql", "sqlite"):
        raise TypeError(
            f"Django's connection to {vendor} cannot be used here: hookline reads PostgreSQL and SQLite."
        )
    with translated(vendor, table):
        check_django(connection)
        with connection.cursor() as cursor:
            cursor.execute(*insert_of(rows, vendor, Placeholders.FORMAT, table))
    if nudging.is_watched() and connection.in_atomic_block:
        connection.on_commit(nudging.nudge)


def insert_in_session(session: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    """Insert in a session's transaction, through the connection that it uses."""
    with translated("postgresql", table):
        connection = session.connection()
    insert_with_sqlalchemy(connection, rows, table)
    if nudging.is_watched():
        _nudge_after_commit(session)


def insert_with_sqlalchemy(connection: Any, rows: Sequence[OutboxRow], table: str | None) -> None:
    """Insert through SQLAlchemy's synchronous `Connection`, perhaps behind an asynchronous one."""
    dialect = connection.dialect
    known = _SQLALCHEMY.get((dialect.name, dialect.driver))
    if known is None:
        raise TypeError(
            f"SQLAlchemy on {dialect.name}+{dialect.driver} cannot be used here. "
            "It can be on PostgreSQL with psycopg, psycopg2 or asyncpg, and on SQLite with sqlite3 or aiosqlite."
        )
    name, placeholders = known
    with translated(name, table):
        check_sqlalchemy(connection)
        connection.exec_driver_sql(*insert_of(rows, name, placeholders, table))


def _nudge_after_commit(session: Any) -> None:
    from sqlalchemy import event  # loaded already: the session is of it

    if _NUDGES not in session.info:
        event.listen(session, "after_commit", _committed)
    session.info[_NUDGES] = True


def _committed(session: Any) -> None:
    if session.info[_NUDGES] and not session.in_nested_transaction():
        session.info[_NUDGES] = False
        nudging.nudge()
