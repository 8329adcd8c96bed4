"""Translates errors of SQLite into hookline's errors."""

import sqlite3

from hookline.errors import HooklineError, RowRefused, StorageFull, StoreRefused, StoreUnavailable

_FULL = frozenset(
    {
        sqlite3.SQLITE_FULL,
        # A full disk also appears as a failed write, sync or growth of a file.
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)
_UNUSABLE = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM}
)
_REFUSED = frozenset({sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG})
_PRIMARY = 0xFF  # the rest of an extended code says where it happened


def translated(error: sqlite3.Error) -> HooklineError:
    """The matching hookline error."""
    code = getattr(error, "sqlite_errorcode", 0)  # missing when the Python module itself raises it
    if code in _FULL:
        return StorageFull(f"SQLite cannot write, its disk may be full: {error}.")
    if code & _PRIMARY in _UNUSABLE:
        return StoreRefused(f"SQLite cannot use the database: {error}.")
    if code & _PRIMARY in _REFUSED:
        return RowRefused(f"SQLite refuses what it was given: {error}.")
    return StoreUnavailable(f"SQLite failed: {error}.")
