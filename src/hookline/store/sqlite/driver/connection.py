"""Opens safe connections to an SQLite file."""

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from hookline.errors import SchemaMissing, StoreRefused, StoreUnavailable
from hookline.store.sqlite.driver.faults import translated

BUSY_TIMEOUT_S = 5.0  # other processes write one short transaction at a time
CACHED_STATEMENTS = 256  # every statement in every bulk length, with room to spare
OLDEST_SQLITE = (3, 35)  # RETURNING
SWITCHES = 100  # more processes than ever start at once on one new file
LOG_BYTES = 64 * 1024 * 1024  # a longer log is cut back to this when it starts over; mostly it has 4 MiB
_FULL = 2


def connect(path: str, *, create: bool = False) -> sqlite3.Connection:
    """A connection that is durable at commit; `StoreRefused` in one line when that is impossible."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreRefused(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed.")
    refuse_unwritable(path, create=create)
    if create:
        _create_private(path)
    uri = f"file:{quote(path)}?mode={'rwc' if create else 'rw'}"
    try:
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=CACHED_STATEMENTS,
        )
    except sqlite3.Error as error:
        raise StoreRefused(f"Cannot open {path}: {_reason(path, create=create) or error}.") from error
    try:
        _make_durable(connection, path)
    except sqlite3.Error as error:
        connection.close()
        refusal = translated(error)
        raise type(refusal)(f"Cannot open {path}: {error}.") from error
    except (StoreRefused, StoreUnavailable):
        connection.close()
        raise
    return connection


def _create_private(path: str) -> None:
    """Create a missing file for its owner alone: it will hold secrets, and SQLite would let everybody read it."""
    with contextlib.suppress(OSError):  # opening it reports what is wrong
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _make_durable(connection: sqlite3.Connection, path: str) -> None:
    mode = _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous = FULL")
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    if mode != "wal" or synchronous != _FULL:
        raise StoreRefused(
            f"Cannot use {path}: SQLite answers journal_mode={mode}, synchronous={synchronous}; "
            "WAL and FULL are needed to keep what was accepted."
        )
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")  # what savepoints undo stays off the disk


def _switch_to_wal(connection: sqlite3.Connection) -> str:
    """The journal mode after asking for WAL.

    While another process makes the same switch on a new file, SQLite answers "locked" at once, whatever the busy
    timeout. A transaction does wait for the other process, so we wait behind it with one and ask again.
    """
    for _ in range(SWITCHES):
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return str(mode)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    raise StoreUnavailable("SQLite could not switch the file to WAL: others keep it locked.")


def _reason(path: str, *, create: bool) -> str | None:
    """Why the system refuses to open the file; SQLite does not tell."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644))
    except OSError as error:
        verb = "opened" if os.path.exists(path) else "created"
        return f"it cannot be {verb} there ({error.strerror})"
    return None


def refuse_unwritable(path: str, *, create: bool) -> None:
    """Say what is wrong, where SQLite would only say that it is unable to open the file."""
    file = Path(path)
    if file.is_dir():
        raise StoreRefused(f"Cannot open {path}: it is a directory.")
    if not file.parent.is_dir():
        raise StoreRefused(f"Cannot open {path}: there is no directory {file.parent}.")
    if not os.access(file.parent, os.W_OK | os.X_OK):
        raise StoreRefused(f"Cannot open {path}: the directory {file.parent} is not writable.")
    if file.exists():
        if not os.access(file, os.R_OK | os.W_OK):
            raise StoreRefused(f"Cannot open {path}: the file is not writable.")
    elif not create:
        raise SchemaMissing(f"There is no database {path}: run `hookline migrate`.")
