"""What does a doctor see of an SQLite file, without changing it?"""

import sqlite3
from urllib.parse import quote

from hookline.errors import HooklineError
from hookline.store.checkup import Examined
from hookline.store.sqlite import migrating, sql
from hookline.store.sqlite.connection import OLDEST_SQLITE
from hookline.store.sqlite.faults import translated


def examine(path: str) -> Examined:
    """The facts of a file that is there; raises hookline's errors when it cannot be read."""
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=1.0)
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            schema = _schema(connection)
            written = 0.0 if schema else connection.execute(sql.PULSE_CLOCK).fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise translated(error) from error
    too_old = sqlite3.sqlite_version_info < OLDEST_SQLITE
    return Examined(
        server=f"SQLite {sqlite3.sqlite_version}",
        now=written,
        settings={"journal_mode": mode},
        unsafe=f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed." if too_old else None,
        schema=schema,
    )


def _schema(connection: sqlite3.Connection) -> str | None:
    try:
        migrating.refuse_unless_usable(connection)
    except HooklineError as error:
        return str(error)
    return None
