"""Measures how soon /readyz follows a locked database, and how long `hookline doctor` takes meanwhile.

Nobody publishes. A table of PostgreSQL is locked by another session, or the SQLite file by another connection, at a random
moment; /readyz is asked every 50 ms, as a busy load balancer does.
"""

import argparse
import http.client
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import psycopg

from children import Child
from database import NoPostgres, start_postgres
from machine import describe_machine
from systems import wait_until_ready

EVERY = 0.05
WITHIN = 2.0  # the promise
DOCTOR_WITHIN = 5.0


@contextmanager
def locked_table(database: str, table: str) -> Iterator[None]:
    with psycopg.connect(database) as session:
        session.execute(f"LOCK TABLE hookline.{table} IN ACCESS EXCLUSIVE MODE")  # type: ignore[arg-type]
        yield


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
    finally:
        connection.close()


def seconds_until(port: int, status: int) -> float:
    """Until /readyz answers with this status."""
    began = time.monotonic()
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/readyz")
        answered = connection.getresponse().status
        connection.close()
        if answered == status:
            return time.monotonic() - began
        time.sleep(EVERY)


def measure(database: str, hold: partial[object], directory: Path, rounds: int) -> dict[str, float]:
    """The worst of some rounds."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "hookline"]
    serve = [*command, "serve", "--dev", "--port", str(port), "--database", database]
    worst = {"503 after": 0.0, "200 after": 0.0, "doctor": 0.0}
    with Child("server", serve, directory=directory) as server:
        wait_until_ready(server, port)
        for _ in range(rounds):
            time.sleep(random.random())
            with ExitStack() as stack:
                stack.enter_context(hold())  # type: ignore[arg-type]
                worst["503 after"] = max(worst["503 after"], seconds_until(port, 503))
                began = time.monotonic()
                doctor = [*command, "doctor", "--database", database, "--url", f"http://127.0.0.1:{port}"]
                said = subprocess.run(
                    doctor, capture_output=True, text=True, check=False, cwd=directory
                ).stdout
                worst["doctor"] = max(worst["doctor"], time.monotonic() - began)
                if "bad   locks" not in said:
                    raise SystemExit(f"the doctor did not find the lock:\n{said}")
            worst["200 after"] = max(worst["200 after"], seconds_until(port, 200))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="where the databases are")
    parser.add_argument("--enforce", action="store_true", help="exit with 1 if a promise is missed")
    given = parser.parse_args()
    missed = False
    with (
        tempfile.TemporaryDirectory(prefix="hookline-readiness-", dir=given.directory) as name,
        ExitStack() as stack,
    ):
        directory = Path(name)
        directory.chmod(0o711)  # PostgreSQL runs as another user
        print(describe_machine(directory))
        file = directory / "hooks.db"
        cases = {"SQLite file": (f"sqlite:///{file}", partial(locked_file, file))}
        try:
            server = start_postgres(directory / "pg", major=None)
            stack.callback(server.destroy)
            database = server.url(server.create_database())
            for table in ("events", "deliveries"):
                cases[f"PostgreSQL {table}"] = (database, partial(locked_table, database, table))
        except NoPostgres as error:
            print(error)
        for case, (database, hold) in cases.items():
            worst = measure(database, hold, directory, given.rounds)
            limits = {"doctor": DOCTOR_WITHIN}
            missed |= any(value > limits.get(what, WITHIN) for what, value in worst.items())
            print(f"{case}: " + ", ".join(f"{what} {value:.2f} s" for what, value in worst.items()))
    sys.exit(1 if given.enforce and missed else 0)


if __name__ == "__main__":
    main()
