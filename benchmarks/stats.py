"""Measures how long statistics of latencies take to read, with a day of attempts stored.

    python benchmarks/stats.py [--scale 1.0] [--stores sqlite,postgres] [--enforce]

A day of 10,000 attempts for each of 1,000 endpoints (`--scale` times as many endpoints, 50 at least) is written directly
into the tables, as minutes and as the hours that hookline adds up from them. Then one endpoint's statistics, a page of
50 endpoints, the percentiles of 50 endpoints from their minutes and hours, and health are asked for, as the API and the
workers do it, 20 times each. `--enforce` exits with 1 if a median misses its target.
"""

import argparse
import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from uuid import UUID

import psycopg

from database import NoPostgres, describe, start_postgres
from hookline.app import Hookline
from hookline.config import Settings
from hookline.model import Endpoint, EndpointId
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.pipeline.measuring.latency_tasks import latency_day
from hookline.reports.stats import endpoint_stats
from hookline.rules.latency_buckets import FIRST_ANSWER, KIND_BITS, LatencyKind, bucket_of
from hookline.store.contract import EVERY_ENDPOINT, LatencyCell
from hookline.store.contract.measuring.latency import ROLL_AFTER
from machine import describe_machine, is_in_memory

ENDPOINTS, PAGE, TIMES = 1_000, 50, 20
A_MINUTE = 7  # attempts of an endpoint, 10,000 a day
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
VARIETY = 8  # different hours that the rows are made of
MOST_MS = {"one endpoint": 50.0, "page of 50 endpoints": 200.0, "health": 50.0}
COLUMNS = ("endpoint_id", "at", "seconds", "attempts", "accepted", "response", "rest")


Measure = Callable[
    ..., Awaitable[list[str]]
]  # of a database's URL and a number of endpoints: what was missed


def main() -> int:
    return run(measure, description=__doc__ or "")


def run(measure: Measure, *, description: str) -> int:
    """Measure what was asked for on the command line; the exit status."""
    asked = arguments(description)
    with tempfile.TemporaryDirectory(prefix="hookline-stats-", dir=asked.directory) as name:
        directory = Path(name)
        directory.chmod(0o755)  # PostgreSQL may have to run as another user than we
        return asyncio.run(measure_all(measure, asked, directory))


async def measure_all(measure: Measure, asked: argparse.Namespace, directory: Path) -> int:
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
                url = f"sqlite:///{directory / 'stats.db'}"
                stack.callback(lambda: [file.unlink() for file in directory.glob("stats.db*")])
            missed += await measure(url, endpoints=max(PAGE, round(ENDPOINTS * asked.scale)))
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if missed and asked.enforce else 0


async def measure(url: str, *, endpoints: int) -> list[str]:
    """Fill a database and ask; the targets that were missed."""
    name = url.partition(":")[0]
    hooks = Hookline(url, settings=Settings(dev=True), deliver=False)
    store = hooks.store
    await store.migrate()
    await store.open(serve=False)
    try:
        made = await create_endpoints(hooks, endpoints)
        ids = [each.id for each in made]
        until = (hooks.clock.now() // MINUTE + 1) * MINUTE
        began = time.perf_counter()
        minutes, hours = await asyncio.to_thread(fill, url, ids, until)

        async def reckon() -> int:
            """The percentiles of a page from its minutes and hours, as workers reckon them."""
            parts = await store.latency_window(
                ids[:PAGE], since=until - DAY, until=until, is_response_only=True
            )
            days = [latency_day(id, parts, as_of=until) for id in ids[:PAGE]]
            await store.write_latency_days(days)
            return min(day.attempts for day in days)

        attempts = await reckon()
        found = await endpoint_stats(store, hooks.clock, ids[0], window=DAY)
        assert found.samples >= attempts > 0.99 * A_MINUTE * 1_440, (found.samples, attempts)
        print(
            f"\n{name}: {endpoints:,} endpoints, {endpoints * found.samples:,} attempts, {minutes:,} minutes, "
            f"{hours:,} hours, written in {time.perf_counter() - began:.0f} s"
        )
        asks: dict[str, Callable[[], Awaitable[object]]] = {
            "one endpoint": lambda: endpoint_stats(store, hooks.clock, ids[1], window=DAY),
            "page of 50 endpoints": lambda: hooks.reports.endpoints(made[:PAGE]),
            "percentiles of 50": reckon,
            "health": hooks.health.report,
        }
        missed = []
        for asked, ask in asks.items():
            times = [await timed(ask) for _ in range(TIMES)]
            median = statistics.median(times)
            target = MOST_MS.get(asked)
            said = "nobody waits for it" if target is None else f"target {target:.0f} ms"
            print(f"  {asked}: {median:.1f} ms, longest {max(times):.1f} ms ({said})")
            if target is not None and median > target:
                missed.append(f"{name} {asked}")
        return missed
    finally:
        await store.close()


async def timed(ask: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await ask()
    return (time.perf_counter() - began) * 1e3


async def create_endpoints(hooks: Hookline, number: int) -> list[Endpoint]:
    found = []
    for _ in range(number):
        now = hooks.clock.now()
        endpoint = Endpoint(
            id=hooks.ids.endpoint(),
            account="default",
            url="http://127.0.0.1:9/",
            events=("a.b",),
            secret="-",  # noqa: S106 - nobody signs anything here
            created_at=now,
            updated_at=now,
        )
        await hooks.store.create_endpoint(endpoint, now=now)
        found.append(endpoint)
    return found


def an_hour(rng: Random, attempts: int) -> tuple[list[LatencyCell], LatencyCell]:
    """The minutes of an hour, and the hour that they add up to."""
    minutes = []
    for n in range(60):
        counts: Counter[int] = Counter()
        for _ in range(attempts):
            took = rng.lognormvariate(-3.0, 1.0)
            counts[bucket_of(took)] += 1
            counts[LatencyKind.QUEUE_WAIT << KIND_BITS | bucket_of(rng.lognormvariate(-6.0, 1.0))] += 1
            counts[LatencyKind.END_TO_END << KIND_BITS | bucket_of(took * 1.2)] += 1
            counts[LatencyKind.FIRST_BYTE << KIND_BITS | bucket_of(took * 0.9)] += 1
            counts[FIRST_ANSWER + (200 if rng.random() < 0.99 else 503)] += 1
        minutes.append(cell_of(EVERY_ENDPOINT, n * MINUTE, counts))
    return minutes, LATENCY_COUNTS.hour(minutes)


Row = tuple[EndpointId, float, LatencyCell]


def cells(ids: list[EndpointId], until: float, *, are_hours: bool) -> Iterator[Row]:
    """The minutes or hours of a day of all endpoints, in the order of their keys, the sum of all first."""
    rng = Random(1)
    few = [an_hour(rng, A_MINUTE) for _ in range(VARIETY)]
    # The sum of more endpoints has hardly more buckets.
    many = [an_hour(rng, A_MINUTE * min(len(ids), 200)) for _ in range(2)]
    first = (until - DAY) // HOUR * HOUR
    rolled = (until - ROLL_AFTER) // HOUR * HOUR
    for n, id in enumerate([EVERY_ENDPOINT, *sorted(ids)]):
        made = many if n == 0 else few
        for place in range(26):
            minutes, hour = made[(n * 31 + place * 7) % len(made)]
            begins = first + place * HOUR
            if are_hours:
                if begins < rolled:
                    yield id, begins, hour
                continue
            for minute in minutes:
                if until - DAY <= begins + minute.at < until or begins + minute.at < rolled:
                    yield id, begins + minute.at, minute


def fill(url: str, ids: list[EndpointId], until: float) -> tuple[int, int]:
    """Write the rows past the store; the numbers of minutes and hours."""
    written = []
    for table, source in (("latency_minutes", (1,)), ("latency_hours", ())):
        rows = cells(ids, until, are_hours=not source)
        columns = (*COLUMNS, *(("source",) if source else ()))
        count = 0
        if url.startswith("sqlite:"):
            marks = ", ".join("?" * len(columns))
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
                count = connection.executemany(
                    f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})",
                    ((id, at, *of(cell), *source) for id, at, cell in rows),
                ).rowcount
        else:
            with psycopg.connect(url, options="-c search_path=hookline", autocommit=True) as connection:
                with (
                    connection.cursor() as cursor,
                    cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy,
                ):
                    for id, at, cell in rows:
                        moment = time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(at))
                        copy.write_row((UUID(bytes=id), moment, *of(cell), *source))
                        count += 1
                connection.execute(f"VACUUM ANALYZE {table}")
        written.append(count)
    return written[0], written[1]


def of(cell: LatencyCell) -> tuple[float, int, int, bytes, bytes]:
    return cell.seconds, cell.attempts, cell.accepted, cell.response, cell.rest


def arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of 1,000 endpoints")
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
