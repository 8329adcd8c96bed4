"""Publishes in an application's own transactions, as fast as they commit.

A process of its own, with the options and the summary of the load generator: each connection runs one transaction after
the other, with an INSERT of its own and `hookline.outbox.publish` (or without, to know what the application costs).
"""

import argparse
import asyncio
import itertools
import sqlite3
import time
from array import array
from pathlib import Path

import asyncpg
import msgspec
import uvloop

import loadgen
from hookline.outbox import apublish, publish
from payload import endpoint_of, event_type, payload_of

ORDERS = "CREATE TABLE IF NOT EXISTS orders (number bigint NOT NULL)"


class Application:
    """Transactions, until the time is over."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._numbers = itertools.count()
        self.accepted_at = array("q")

    def _next(self) -> int:
        number = next(self._numbers)
        self.accepted_at.append(0)
        return number

    def _is_over(self) -> bool:
        return time.monotonic_ns() >= self._options.stop

    async def on_postgres(self) -> None:
        """Each connection a task."""
        async with asyncpg.create_pool(
            self._options.database, min_size=self._options.connections, max_size=self._options.connections
        ) as pool:
            await pool.execute(ORDERS)
            await asyncio.sleep(max(0, self._options.start - time.monotonic_ns()) / 1e9)
            await asyncio.gather(*(self._transactions(pool) for _ in range(self._options.connections)))

    async def _transactions(self, pool: asyncpg.Pool) -> None:
        async with pool.acquire() as connection:
            while not self._is_over():
                number = self._next()
                async with connection.transaction():
                    await connection.execute("INSERT INTO orders VALUES ($1)", number)
                    if self._options.publishes:
                        payload = payload_of(number, time.monotonic_ns())
                        await apublish(connection, event_type(endpoint_of(number)), payload)
                self.accepted_at[number] = time.monotonic_ns()

    def on_sqlite(self) -> None:
        """One connection: a file has one writer at a time."""
        path = self._options.database.removeprefix("sqlite:///")
        connection = sqlite3.connect(path, timeout=60, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(ORDERS)
        time.sleep(max(0, self._options.start - time.monotonic_ns()) / 1e9)
        while not self._is_over():
            number = self._next()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO orders VALUES (?)", (number,))
            if self._options.publishes:
                publish(connection, event_type(endpoint_of(number)), payload_of(number, time.monotonic_ns()))
            connection.execute("COMMIT")
            self.accepted_at[number] = time.monotonic_ns()
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True)
    parser.add_argument("--publishes", type=int, default=1)
    for name in ("pace", "batch", "rate"):
        parser.add_argument(f"--{name}")  # of the load generator: here each event is a transaction
    for name in ("connections", "start", "stop"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    application = Application(options)
    if options.database.startswith("sqlite"):
        application.on_sqlite()
    else:
        uvloop.run(application.on_postgres())
    with options.file.open("wb") as out:
        application.accepted_at.tofile(out)
    count = len(application.accepted_at)
    summary = loadgen.Summary(
        sent=count, accepted=count, refused=0, unanswered=0, lost=0, statuses={}, cpu=time.process_time()
    )
    print(msgspec.json.encode(summary).decode(), flush=True)


if __name__ == "__main__":
    main()
