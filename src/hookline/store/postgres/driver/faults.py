"""Translates errors of PostgreSQL, or of the connection to it, into hookline's errors."""

import contextlib
from collections.abc import Iterator
from typing import Any

import asyncpg

from hookline.errors import (
    HooklineError,
    RowRefused,
    StorageFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
)
from hookline.store.database_url import is_plain

# The server rolled the whole transaction back; the same one succeeds when it is run again.
REPEATABLE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.InvalidCachedStatementError)

RIGHTS_STEP = (
    "grant the user rights on the schema `hookline` and its tables (on an empty database: CREATE on it)"
)
_NEXT_STEP = {
    "28000": "check the user and pg_hba.conf",
    "28P01": "check the password in the database URL",
    "3D000": "create the database, or check its name in the database URL",
    "3F000": "run `hookline migrate`",
    "42501": RIGHTS_STEP,
    "42704": "check the parameters after the ? in the database URL",
    "42703": "run `hookline migrate`",
    "42883": "run `hookline migrate`",
    "42P01": "run `hookline migrate`",
}

# Whole classes (first two characters) and single codes of errors that pass without anybody changing anything.
_PASSING_CLASSES = frozenset({"08", "40", "53", "57", "58"})
# About the row to be written: its types, its constraints, its size, and what a trigger raises.
_DATA_CLASSES = frozenset({"22", "23", "44", "54", "P0"})
_PASSING = frozenset({"25P03", "55P03"})  # idle too long, lock not available
_READ_ONLY = "25006"  # after a failover, or because an operator set it
_DISK_FULL = "53100"
_NOT_REPEATED = "what it says may hold a part of the database URL and is not shown; check user, password, name and parameters"
# A session may have started as read-only and stays so: only a new session shows whether the database still is.
_ENDS_SESSION = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", _READ_ONLY})


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise hookline's errors instead of the driver's and the system's."""
    try:
        yield
    except HooklineError:
        raise
    except asyncpg.PostgresError as error:
        raise _meaning(error) from error
    except asyncpg.ClientConfigurationError as error:
        raise StoreRefused(f"The database URL cannot be used: {_line(error)}. Check it.") from error
    except (OverflowError, UnicodeError) as error:  # raised while encoding
        raise RowRefused(f"PostgreSQL cannot hold what it was given: {type(error).__name__}.") from error
    except TimeoutError as error:
        raise StoreUnavailable("PostgreSQL did not answer in time.") from error
    except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise StoreUnavailable(f"PostgreSQL cannot be reached: {_line(error)}") from error


@contextlib.contextmanager
def while_connecting(url: str) -> Iterator[None]:
    """Raise hookline's errors for a connection to this URL.

    The driver and the server repeat names and parameters of the URL. In a misspelt URL they may be the password. Then
    only the error code is shown, and the driver's error is not chained to ours, where a traceback would print it.
    """
    try:
        yield
    except HooklineError:
        raise
    except asyncpg.PostgresError as error:
        if is_plain(url):
            raise
        raise _meaning(error, said=_NOT_REPEATED) from None
    except (asyncpg.ClientConfigurationError, ValueError):
        if is_plain(url):
            raise
        raise StoreRefused(f"The database URL cannot be used: {_NOT_REPEATED}.") from None


async def refuse_read_only(connection: Any) -> None:
    """Fail like a write in a session that may only read; the session is dropped with it."""
    raise asyncpg.ReadOnlySQLTransactionError("nothing can be written in a read-only transaction")


def keeps_session(error: Exception) -> bool:
    """Whether the session can still be used after this error."""
    if isinstance(error, HooklineError):
        return True
    if not isinstance(error, asyncpg.PostgresError) or isinstance(error, asyncpg.InvalidCachedStatementError):
        return False
    code = error.sqlstate or ""
    return not code.startswith("08") and code not in _ENDS_SESSION


def _meaning(error: asyncpg.PostgresError, *, said: str | None = None) -> HooklineError:
    code = error.sqlstate or ""
    said = said or _line(error)
    if code == _DISK_FULL:
        return StorageFull(f"PostgreSQL has no disk space left: {said}")
    if code == _READ_ONLY:
        return StoreReadOnly(f"PostgreSQL is read-only: {said} ({code})")
    if code in _PASSING or code[:2] in _PASSING_CLASSES:
        return StoreUnavailable(f"PostgreSQL is not available: {said} ({code})")
    if code[:2] in _DATA_CLASSES:
        return RowRefused(f"PostgreSQL refuses what it was given: {_culprit(error)} ({code}).")
    step = _NEXT_STEP.get(code, "this is a bug in hookline or a changed schema")
    return StoreRefused(f"PostgreSQL refuses: {said} ({code}); {step}.")


def _culprit(error: asyncpg.PostgresError) -> str:
    """The kind of error and its place; the server's own text quotes the row, which may hold confidential data."""
    names = (getattr(error, name, None) for name in ("table_name", "column_name", "constraint_name"))
    return " ".join([type(error).__name__, *(str(name) for name in names if name)])


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
