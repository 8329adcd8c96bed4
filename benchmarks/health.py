"""Measures how long health and the counts of endpoints take to read, with many deliveries stored.

    python benchmarks/health.py [--rows 1000000] [--waiting 150000] [--stores sqlite,postgres] [--enforce]

The rows are written directly into the table of deliveries: delivered ones, and those that wait or are dead, spread
evenly over 1,000 endpoints of ten accounts. A look counts them. Then health, an account's health and a page of 50
endpoints are asked for, as the API does it, 50 times each. `--enforce` exits with 1 if a median misses its target.
"""

import argparse
import asyncio
import sqlite3
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg

from database import NoPostgres, describe, start_postgres
from hookline.app import Hookline
from hookline.config import Settings
from hookline.model import Endpoint
from hookline.store.contract.measuring.health import LOOK_TIMES
from machine import describe_machine, is_in_memory

ENDPOINTS, ACCOUNTS, PAGE, TIMES = 1_000, 10, 50, 50
MOST_MS = {"health": 50.0, "health of an account": 50.0, "page of 50 endpoints": 200.0}
ID = struct.Struct(">QQ")
KINDS = (  # of those that are not delivered: state, queue, attempts, their share
    ("pending", "ready", 0, 0.4),
    ("pending", "timed", 3, 0.25),
    ("dead", "timed", 7, 0.35),
)


def main() -> int:
    asked = arguments()
    with tempfile.TemporaryDirectory(prefix="hookline-health-", dir=asked.directory) as name:
        directory = Path(name)
        directory.chmod(0o755)  # PostgreSQL may have to run as another user than we
        return asyncio.run(measure_all(asked, directory))


async def measure_all(asked: argparse.Namespace, directory: Path) -> int:
    """Measure each store; the exit status."""

    if is_in_memory(directory):
        print(f"{directory} is in memory: its times would say nothing", file=sys.stderr)
        return 2
    print(describe_machine(directory))
    missed = []
    for store in asked.stores.split(","):
        with ExitStack() as stack:
            if store == "postgres":
                try:
                    server = start_postgres(directory / "server", major=None)
                except NoPostgres as error:
                    print(error, file=sys.stderr)
                    continue
                stack.callback(server.destroy)
                print(f"PostgreSQL {describe(server)}")
                url = server.url(server.create_database())
            else:
                path = directory / "health.db"
                stack.callback(lambda: [file.unlink() for file in directory.glob("health.db*")])
                url = f"sqlite:///{path}"
            missed += await measure(url, rows=asked.rows, waiting=min(asked.waiting, asked.rows))
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if missed and asked.enforce else 0


async def measure(url: str, *, rows: int, waiting: int) -> list[str]:
    """Fill a database, look, ask; the targets that were missed."""
    name = url.partition(":")[0]
    hooks = Hookline(url, settings=Settings(dev=True), deliver=False)
    await hooks.store.migrate()
    await hooks.store.open(serve=False)
    try:
        endpoints = await create_endpoints(hooks)
        await asyncio.to_thread(fill, url, [each.id for each in endpoints], rows, waiting)
        now = hooks.clock.now()
        first = await hooks.store.look(now=now)
        assert first is not None
        # The second finds most of its rows stored: it is the usual one.
        sample = await hooks.store.look(now=now + 10 + LOOK_TIMES * first.took)
        assert sample is not None
        print(
            f"\n{name}: {rows:,} deliveries, {sample.pending:,} pending, {sample.awaiting_retry:,} awaiting a retry, "
            f"{sample.dead:,} dead\n  look: {first.took * 1e3:.0f} ms, again {sample.took * 1e3:.0f} ms"
        )
        asks: dict[str, Callable[[], Awaitable[object]]] = {
            "health": hooks.health.report,
            "health of an account": lambda: hooks.health.report("account-3"),
            "page of 50 endpoints": lambda: hooks.reports.endpoints(endpoints[:PAGE]),
        }
        missed = []
        for asked, ask in asks.items():
            times = [await timed(ask) for _ in range(TIMES)]
            median = statistics.median(times)
            print(f"  {asked}: {median:.1f} ms, longest {max(times):.1f} ms (target {MOST_MS[asked]:.0f} ms)")
            if median > MOST_MS[asked]:
                missed.append(f"{name} {asked}")
        return missed
    finally:
        await hooks.store.close()


async def timed(ask: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await ask()
    return (time.perf_counter() - began) * 1e3


async def create_endpoints(hooks: Hookline) -> list[Endpoint]:
    found = []
    for n in range(ENDPOINTS):
        now = hooks.clock.now()
        endpoint = Endpoint(
            id=hooks.ids.endpoint(),
            account=f"account-{n % ACCOUNTS}",
            url="http://127.0.0.1:9/",
            events=("a.b",),
            secret="-",  # noqa: S106 - nobody signs anything here
            created_at=now,
            updated_at=now,
        )
        await hooks.store.create_endpoint(endpoint, now=now)
        found.append(endpoint)
    return found


def deliveries(
    endpoints: list[bytes], rows: int, waiting: int
) -> Iterator[tuple[bytes, bytes, float, str, str, int]]:
    """Rows of the last two days, in the order of their ids."""
    now = time.time()
    kinds = [kind[:3] for kind in KINDS for _ in range(int(kind[3] * 100))]
    every = max(1, rows // max(1, waiting))
    for n in range(rows):
        at = now - 172_800 * (rows - n) / rows
        id = ID.pack(int(at * 1_000) << 16 | 0x7000 | n & 0xFFF, 1 << 63 | n << 20)
        state, queue, attempts = ("delivered", "ready", 1) if n % every else kinds[n // every % 100]
        yield id, endpoints[n * 7_919 % len(endpoints)], at, state, queue, attempts


def fill(url: str, endpoints: list[bytes], rows: int, waiting: int) -> None:
    """Write the rows past the store, which would need an event and several statements for each."""
    found = deliveries(endpoints, rows, waiting)
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            connection.executemany(
                "INSERT INTO deliveries (id, endpoint_id, due_at, state, queue, attempts) VALUES (?, ?, ?, ?, ?, ?)",
                found,
            )
        return
    columns = "id, endpoint_id, due_at, state, queue, attempts"
    with psycopg.connect(url, options="-c search_path=hookline", autocommit=True) as connection:
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY deliveries ({columns}) FROM STDIN") as copy,
        ):
            for id, endpoint, at, state, queue, attempts in found:
                moment = time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(at))
                copy.write_row((id.hex(), endpoint.hex(), moment, state, queue, attempts))
        connection.execute("VACUUM ANALYZE deliveries")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--waiting", type=int, default=150_000, help="pending and dead ones among them")
    parser.add_argument("--stores", default="sqlite,postgres")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("/var/tmp"),  # noqa: S108 - mkdtemp makes our own directory in it
        help="on a real disk",
    )
    parser.add_argument("--enforce", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
