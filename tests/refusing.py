"""Makes a database refuse certain rows, as a rule of its own would."""

import sqlite3
from contextlib import closing

import psycopg

from hookline.store.contract import Store
from hookline.store.sqlite.store import SqliteStore


def refuse(store: Store, table: str, condition: str) -> None:
    """Refuse every row of the table with such columns from now on."""
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path, timeout=30)) as file, file:
            for event in ("INSERT", "UPDATE"):
                file.execute(
                    f"CREATE TRIGGER refuse_{event} BEFORE {event} ON {table} WHEN NEW.{condition} "
                    "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
                )
        return
    _run(
        store, f"ALTER TABLE {table} ADD CONSTRAINT refuse CHECK ((NOT ({condition})) IS NOT FALSE) NOT VALID"
    )


def relent(store: Store, table: str) -> None:
    """Accept them again."""
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store._path, timeout=30)) as file, file:
            for event in ("INSERT", "UPDATE"):
                file.execute(f"DROP TRIGGER refuse_{event}")
        return
    _run(store, f"ALTER TABLE {table} DROP CONSTRAINT refuse")


def _run(store: Store, statement: str) -> None:
    url: str = store._url  # type: ignore[attr-defined]
    with psycopg.connect(
        url, options="-c search_path=hookline -c lock_timeout=2s", autocommit=True
    ) as session:
        while True:
            try:
                session.execute(statement)  # type: ignore[arg-type]
                return
            except psycopg.errors.LockNotAvailable:
                # A transaction of this very process: it cannot go on while the test waits here.
                session.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND state = 'idle in transaction'"
                )
