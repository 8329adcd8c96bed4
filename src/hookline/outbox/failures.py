"""Translates what drivers raise on an INSERT into the outbox.

No driver is imported: SQLSTATE and SQLite's result codes tell what happened, also under the exceptions that SQLAlchemy
and Django wrap around them. What is not known here is passed on unchanged.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hookline.outbox.errors import (
    OutboxBusy,
    OutboxError,
    OutboxForbidden,
    OutboxMissing,
    TransactionFailed,
)
from hookline.outbox.table import Dialect, named

CLOSED = "This connection is closed, and its transaction with it. Open a new one and do all of the transaction again."
ENDED = (
    "The transaction of this block has ended already: it was committed, rolled back or closed. Publish before that, "
    "or do the rest in a new block."
)
FAILED = (
    "This transaction has already failed: an earlier statement raised an error, and nothing of it can be committed. "
    "Roll it back, and do all of it again."
)
READ_ONLY = "This transaction is read-only. Publish in one that may write, on the primary server or a file that may be written."

_CLOSED = re.compile(r"\bclosed\b|no active connection|has been released back to the pool")
_CLOSED_KINDS = frozenset(
    {"InterfaceError", "OperationalError", "ProgrammingError", "ResourceClosedError", "ValueError"}
)
_DEPTH = 6  # wrappings to look under; there are three at most

# The database ended the session: an administrator, a crash, or one of its limits of time.
_ENDINGS = frozenset({"57P01", "57P02", "57P05", "25P03", "25P04"})
_BUSY_SNAPSHOT = 517  # SQLite's extended code


@contextmanager
def translated(dialect: Dialect, table: str | None) -> Iterator[None]:
    """Raise what the driver raises inside as an `OutboxError` with the next step."""
    try:
        yield
    except OutboxError:
        raise
    except Exception as error:
        found = failure_of(error, dialect, table)
        if found is None:
            raise
        raise found from error


def failure_of(error: BaseException, dialect: Dialect, table: str | None) -> OutboxError | None:
    """What it means for a publish; None if that is not known."""
    name = named(dialect, table)
    making = _MAKING_WITH_DJANGO if type(error).__module__ == "django.db.utils" else _making(dialect)
    for each in _under(error):
        sqlstate = getattr(each, "sqlstate", None) or getattr(each, "pgcode", None)
        if isinstance(sqlstate, str) and (found := _of_postgres(sqlstate, name, making)):
            return found
        code = getattr(each, "sqlite_errorcode", None)
        if isinstance(code, int) and (found := _of_sqlite(code, str(each), name, making)):
            return found
        kind = type(each).__name__
        if kind == "PendingRollbackError":  # SQLAlchemy: nothing is sent until the caller has rolled back
            return TransactionFailed(FAILED)
        # SQLAlchemy, in a block of `begin()` whose transaction somebody has committed.
        if kind == "InvalidRequestError" and "closed transaction" in str(each):
            return OutboxError(ENDED)
        if kind in _CLOSED_KINDS and _CLOSED.search(str(each)):
            return OutboxError(CLOSED)
    return None


def _under(error: BaseException) -> Iterator[BaseException]:
    each: object = error
    for _ in range(_DEPTH):
        if not isinstance(each, BaseException):
            return
        yield each
        each = getattr(each, "orig", None) or each.__cause__


def _of_postgres(sqlstate: str, table: str, making: str) -> OutboxError | None:
    match sqlstate:
        case "25P02":
            return TransactionFailed(FAILED)
        case "25006":
            return TransactionFailed(READ_ONLY)
        case "42P01":
            return OutboxMissing(_missing(table, making))
        case "42703":
            return OutboxMissing(_outdated(table))
        case "42501":
            schema = table.partition(".")[0]
            return OutboxForbidden(
                f"This role may not insert into {table}. Let its owner run: "
                f"GRANT USAGE ON SCHEMA {schema} TO your_role; GRANT INSERT ON {table} TO your_role;"
            )
    if sqlstate in _ENDINGS or sqlstate.startswith("08"):  # the class of broken connections
        return OutboxError(CLOSED)
    return None


def _of_sqlite(code: int, text: str, table: str, making: str) -> OutboxError | None:
    if code == _BUSY_SNAPSHOT:
        return OutboxBusy(
            "Another connection wrote to this SQLite file after your transaction began to read, so your transaction "
            "can no longer write. Roll it back and do all of it again, and open it with BEGIN IMMEDIATE: then it waits "
            "for its turn at once."
        )
    match code & 0xFF:
        case 5 | 6:  # SQLITE_BUSY, SQLITE_LOCKED
            return OutboxBusy(
                "Another connection holds the write lock of this SQLite file, and the connection's timeout is over. "
                "Roll back and do all of it again, and open transactions with BEGIN IMMEDIATE: then they wait for "
                "their turn at the start."
            )
        case 8:  # SQLITE_READONLY
            return TransactionFailed(READ_ONLY)
        case 1 if "no such table" in text:
            return OutboxMissing(_missing(table, making))
        case 1 if "has no column" in text:
            return OutboxMissing(_outdated(table))
    return None


def _missing(table: str, making: str) -> str:
    return f"This database has no table {table}. {making}"


def _outdated(table: str) -> str:
    return (
        f"The table {table} is of another version of hookline: it lacks a column. "
        "`hookline doctor`, with this database in HOOKLINE_OUTBOX, shows the statement that adds it."
    )


_MAKING_WITH_DJANGO = "Have `hookline.outbox.django` in INSTALLED_APPS, and run `python manage.py migrate`."


def _making(dialect: Dialect) -> str:
    return (
        "If the database is hookline's own, run `hookline migrate`. If not, let your migrations make what this prints: "
        f"python -c 'from hookline import outbox; print(outbox.ddl(\"{dialect}\"))'"
    )
