"""Takes orders, and publishes each in the transaction that stores it.

The application's own table `orders` is the truth: it holds what was committed, with the event's id and the digest of its
payload. Nothing else is recorded, so this process and its database may be killed at any moment. Some orders are
rolled back, whole or to a savepoint, after they were published: nobody may hear of those.
Run as `application.py TYPES DATABASE…`; a line `FIRST COUNT` on stdin takes the orders from this number on, and `done`
follows. A database is a PostgreSQL URL or the path of an SQLite file; orders go to them in turn.
"""

import hashlib
import json
import sqlite3
import sys
import threading
import time
from typing import Any

import psycopg

from hookline import outbox

THREADS = 4
PATIENCE_S = 60.0  # how long one order is tried again while its database is away
ROLLED_BACK, TO_A_SAVEPOINT, MOST_PARTS = 5, 3, 3
ORDERS = (
    "CREATE TABLE IF NOT EXISTS orders "
    "(n integer NOT NULL, part integer NOT NULL, event text NOT NULL, digest text NOT NULL, PRIMARY KEY (n, part))"
)
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, outbox.OutboxError, sqlite3.OperationalError)


def connect(database: str) -> Any:
    """A connection whose transactions begin with BEGIN alone."""
    if database.startswith("postgresql:"):
        return psycopg.connect(database, autocommit=True, connect_timeout=5)
    connection = sqlite3.connect(database, timeout=20.0, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")  # in WAL mode a commit would not be on the disk otherwise
    return connection


class Shop(threading.Thread):
    """Takes the next order until there is none."""

    def __init__(self, types: int, databases: list[str], numbers: Any) -> None:
        super().__init__()
        self._types = types
        self._databases = databases
        self._numbers = numbers
        self._connections: dict[str, Any] = {}

    def run(self) -> None:
        for n in self._numbers:
            database = self._databases[n % len(self._databases)]
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    self._take(n, self._connection(database))
                    break
                except AWAY:
                    if time.monotonic() > deadline:
                        break  # it was never committed: nobody waits for it
                    self._forget(database)
                    time.sleep(0.1)

    def _take(self, n: int, connection: Any) -> None:
        if n % ROLLED_BACK == 0:
            connection.execute("BEGIN")
            self._order(connection, n, 0, ghost=True)
            connection.execute("ROLLBACK")
        connection.execute("BEGIN" if isinstance(connection, psycopg.Connection) else "BEGIN IMMEDIATE")
        if connection.execute(f"SELECT 1 FROM orders WHERE n = {n:d}").fetchone():
            connection.execute("ROLLBACK")  # it was committed, and the answer got lost
            return
        if n % TO_A_SAVEPOINT == 0:
            connection.execute("SAVEPOINT half")
            self._order(connection, n, 0, ghost=True)
            connection.execute("ROLLBACK TO half")
        for part in range(n % MOST_PARTS + 1):
            self._order(connection, n, part)
        connection.execute("COMMIT")

    def _order(self, connection: Any, n: int, part: int, *, ghost: bool = False) -> None:
        payload = json.dumps({"order": n, "part": part, "ghost": ghost, "filling": "x" * (n * 37 % 900)})
        body = payload.encode()
        key = f"order-{n}-{part}" if n % 2 else None
        event = outbox.publish(connection, f"chaos.t{n % self._types}", body, idempotency_key=key)
        digest = hashlib.sha256(body).hexdigest()
        connection.execute(f"INSERT INTO orders VALUES ({n:d}, {part:d}, '{event}', '{digest}')")

    def _connection(self, database: str) -> Any:
        if database not in self._connections:
            self._connections[database] = connect(database)
        return self._connections[database]

    def _forget(self, database: str) -> None:
        connection = self._connections.pop(database, None)
        if connection is not None:
            connection.close()


def main() -> None:
    types, *databases = sys.argv[1:]
    for line in sys.stdin:
        first, count = map(int, line.split())
        # One iterator for all threads: `next` of a C iterator is one step under the interpreter's lock.
        numbers = iter(range(first, first + count))
        shops = [Shop(int(types), databases, numbers) for _ in range(THREADS)]
        for each in shops:
            each.start()
        for each in shops:
            each.join()
        print("done", flush=True)


if __name__ == "__main__":
    main()
