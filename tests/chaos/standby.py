"""Runs a second PostgreSQL that follows the first and can take its place."""

import os
import signal
import subprocess

import psutil
import psycopg

from tests.chaos.process import wait_for
from tests.chaos.proxy import Proxy
from tests.postgres_server import PostgresServer, _free_port

SECONDS = 30.0


class Standby(PostgresServer):
    """A copy of a running server that follows it, over a connection that can be cut."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__(primary.installation)
        self._primary = primary
        self.line = Proxy(primary.port)
        self._port = _free_port()  # its roles come with the copy

    def follow(self, *, waited_for: bool) -> None:
        """Start following; with `waited_for` the primary answers no commit that is not here too."""
        self.start()
        wait_for(lambda: self._state() is not None, "the standby to follow", SECONDS)
        if waited_for:
            for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
                with psycopg.connect(self._primary.url(), autocommit=True) as connection:
                    connection.execute(statement)
            wait_for(lambda: self._state() == "sync", "commits to wait for the standby", SECONDS)

    def promote(self) -> None:
        """Become the primary."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")

    def freeze_primary(self) -> None:
        """Stop all processes of the primary, as on a machine that hangs."""
        postmaster = psutil.Process(int((self._primary._data / "postmaster.pid").read_text().split()[0]))
        for each in (postmaster, *postmaster.children(recursive=True)):
            os.kill(each.pid, signal.SIGSTOP)

    def destroy(self) -> None:
        self.line.close()
        super().destroy()

    def _state(self) -> str | None:
        with psycopg.connect(self._primary.url(), autocommit=True) as connection:
            found = connection.execute(
                "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
            ).fetchone()
        return None if found is None else str(found[0])

    def _initialise(self) -> None:
        subprocess.run(
            [
                self._binaries / "pg_basebackup",
                f"--dbname=host=127.0.0.1 port={self._primary.port} user=postgres",
                f"--pgdata={self._data}",
                "--checkpoint=fast",
                "--wal-method=stream",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            **self._as_user(),
        )
        (self._data / "standby.signal").touch()
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(f"primary_conninfo = 'host=127.0.0.1 port={self.line.port} user=postgres'\n")
