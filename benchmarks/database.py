"""Starts the PostgreSQL that is measured.

It is our own server on the real disk, where fsync has its real cost, with PostgreSQL's defaults. It is based on the
tests' server, which keeps its data in memory and is tuned small; both are undone here.
"""

import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from children import end_with_parent

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from postgres_server import Installation, PostgresServer, installations

# PostgreSQL's own defaults, where the tests' server has other values.
SETTINGS = {"shared_buffers": "128MB", "max_wal_size": "1GB", "dynamic_shared_memory_type": "posix"}
SHOWN = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")


class NoPostgres(RuntimeError):
    """There is no PostgreSQL to measure."""


class DiskServer(PostgresServer):
    """A server with its data in `directory`."""

    def __init__(self, installation: Installation, directory: Path) -> None:
        super().__init__(installation, **SETTINGS)
        self._data = directory / "postgres"
        self._directory = directory

    @property
    def pid(self) -> int:
        """The postmaster's; all other processes are its children."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        super().start()

    def destroy(self) -> None:
        super().destroy()
        shutil.rmtree(self._data, ignore_errors=True)

    def _as_user(self) -> dict[str, object]:
        return super()._as_user() | {"preexec_fn": partial(end_with_parent, signal.SIGINT)}  # fast shutdown


def start_postgres(directory: Path, *, major: int | None) -> DiskServer:
    """A running server of this version, or of the newest there is."""
    found = [one for one in installations() if major in (None, one.major)]
    if not found:
        raise NoPostgres(f"PostgreSQL {major or ''} is not installed on this machine")
    directory.mkdir()
    server = DiskServer(found[0], directory)
    try:
        server.start()
    except BaseException:
        server.destroy()
        raise
    return server


def describe(server: DiskServer) -> str:
    """Version and the settings that decide about speed."""
    with psycopg.connect(server.url()) as connection:
        return (
            f"{_show(connection, 'server_version')} ("
            + ", ".join(f"{name} {_show(connection, name)}" for name in SHOWN)
            + ")"
        )


def _show(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return str(row[0]).split()[0] if row else "?"
