"""Measures the outbox against a publish by the API, up to the same receiver.

Two comparisons, on each store: what is delivered a second if clients publish by the API (single events, and batches of
100) and if an application publishes in its own transactions, one each; and, in one process and without receivers, how
fast prefilled rows are moved and how fast the same events are accepted directly. The application's transactions are
measured without the outbox too: they are its own cost.
"""

import argparse
import asyncio
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
import psycopg
import uvloop

from children import Child
from database import DiskServer, start_postgres
from hookline.app import Hookline
from hookline.config import Settings
from hookline.outbox import Draft as Row
from hookline.outbox import publish_many
from hookline.pipeline.intake.drafts import Draft
from machine import describe_machine
from measure import Timing, measure
from payload import ENDPOINTS, event_type, payload_of
from systems import HERE, Load, System, free_port, hookline

APPLICATION_CONNECTIONS = 16
PURE_ROWS = 10_000
PURE_BATCH = 500
PURE_ENDPOINTS = 10


@contextmanager
def with_application(port: int, *, database: str, publishes: bool, **options: object) -> Iterator[System]:
    """hookline, and an application on its database instead of clients."""
    with hookline(port, database=database, **options) as system:  # type: ignore[arg-type]  # handed through
        command = (sys.executable, str(HERE / "application.py"), "--database", database)
        yield msgspec.structs.replace(system, publisher=(*command, "--publishes", str(int(publishes))))


class Bench:
    """The runs of one invocation."""

    def __init__(self, options: argparse.Namespace, directory: Path, postgres: DiskServer | None) -> None:
        self._options = options
        self._directory = directory
        self._postgres = postgres
        self._count = 0

    @contextmanager
    def _database(self, store: str) -> Iterator[tuple[str, Path]]:
        self._count += 1
        folder = self._directory / f"run-{self._count}"
        folder.mkdir()
        if store == "sqlite":
            yield f"sqlite:///{folder / 'bench.db'}", folder
            return
        assert self._postgres is not None
        name = self._postgres.create_database()
        yield self._postgres.url(name), folder
        self._postgres.drop_database(name)

    def delivered(self, store: str, way: str) -> float:
        """Delivered a second, or committed, if nothing is published."""
        batch, connections = {"batches": (100, 16), "single": (1, 128)}.get(way, (1, APPLICATION_CONNECTIONS))
        load = Load(pace="closed", batch=batch, rate=0.0, connections=connections)
        with self._database(store) as (url, folder):
            options = {
                "command": [str(Path(sys.executable).with_name("hookline"))],
                "database": url,
                "directory": folder,
                "max_in_flight": 50,
            }
            if way in ("single", "batches"):
                start = partial(hookline, **options)  # type: ignore[arg-type]
            else:
                start = partial(with_application, publishes=way == "outbox", **options)  # type: ignore[arg-type]
            timing = Timing(warmup=2.0, measured=self._options.seconds, drain=60.0)
            if way == "application":
                return self._committed(start, load, timing, folder)
            postmaster = self._postgres.pid if store == "postgres" and self._postgres else None
            result = measure(way, store, load, start, timing=timing, directory=folder, postmaster=postmaster)
            if not result.check.holds():
                print(f"not received as sent: {result.check}", file=sys.stderr)
            return result.speed.delivered_per_s

    def _committed(self, start: partial, load: Load, timing: Timing, folder: Path) -> float:  # type: ignore[type-arg]
        with start(free_port()) as system:
            began = time.monotonic_ns() + 10**9
            stop = began + int(timing.measured * 1e9)
            times = ("--start", str(began), "--stop", str(stop), "--file", str(folder / "times"))
            command = [*system.publisher, "--connections", str(load.connections), *times]
            with Child("application", command, directory=folder) as child:
                summary = msgspec.json.decode(child.last_line(within=timing.measured + 60.0))
        return float(summary["accepted"]) / timing.measured

    def pure(self, store: str) -> tuple[float, float]:
        """Accepted and moved a second, in this process; the median of turns."""
        with self._database(store) as (url, _):
            return uvloop.run(_pure(url, turns=self._options.turns))


async def _pure(url: str, *, turns: int) -> tuple[float, float]:
    payload = payload_of(1, 1)
    async with Hookline(settings=Settings(database=url)) as running:
        for number in range(PURE_ENDPOINTS):
            endpoint = await running.create_endpoint(
                url=f"https://{number}.example/", events=[event_type(number)]
            )
            await running.update_endpoint(endpoint.id, paused=True)
        kinds = [event_type(number % PURE_ENDPOINTS) for number in range(PURE_BATCH)]
        drafts = [Draft(kind, payload) for kind in kinds]
        mover = running.mover
        own = mover.watches[0].mover
        accepted, moved = [], []
        for _ in range(turns):
            began = time.perf_counter()
            two = asyncio.Semaphore(2)  # one is stored while the next one is gathered

            async def accept(two: asyncio.Semaphore = two) -> None:
                async with two:
                    await running.accept(drafts)

            await asyncio.gather(*(accept() for _ in range(PURE_ROWS // PURE_BATCH)))
            accepted.append(PURE_ROWS / (time.perf_counter() - began))
            was = own.moved
            await asyncio.to_thread(_fill, url, [Row(kind, payload) for kind in kinds])
            while own.moved == was:  # noqa: ASYNC110 - it is measured from outside
                await asyncio.sleep(0.0005)
            began, first = time.perf_counter(), own.moved
            while (await running.store.outbox_backlog()).rows:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.01)
            moved.append((own.moved - first) / (time.perf_counter() - began))
    return statistics.median(accepted), statistics.median(moved)


def _fill(url: str, rows: list[Row]) -> None:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
    else:
        connection = psycopg.connect(url)  # type: ignore[assignment]
    for _ in range(PURE_ROWS // PURE_BATCH):
        publish_many(connection, rows)
    connection.execute("COMMIT")
    connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stores", default="sqlite,postgres", type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=15.0, help="measured (%(default)s)")
    parser.add_argument("--turns", type=int, default=9, help="of the pure rates (%(default)s)")
    parser.add_argument("--only-pure", action="store_true")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"))  # noqa: S108 - our own directory in it
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hookline-bench-", dir=options.directory) as name:
        directory = Path(name)
        directory.chmod(0o755)
        for fact, value in describe_machine(directory).items():
            print(f"{fact}: {value}")
        print(f"load: {os.getloadavg()[0]:.1f}; {ENDPOINTS} endpoints")
        postgres = start_postgres(directory / "pg", major=None) if "postgres" in options.stores else None
        try:
            bench = Bench(options, directory, postgres)
            for store in options.stores:
                _show(bench, store, only_pure=options.only_pure)
        finally:
            if postgres is not None:
                postgres.destroy()
    return 0


def _show(bench: Bench, store: str, *, only_pure: bool) -> None:
    accepted, moved = bench.pure(store)
    print(f"{store}: accepted {accepted:,.0f}/s, moved {moved:,.0f}/s: {moved / accepted:.0%}", flush=True)
    if only_pure:
        return
    rates = {way: bench.delivered(store, way) for way in ("single", "batches", "outbox", "application")}
    print(
        f"{store}: delivered by the API {rates['single']:,.0f}/s single, {rates['batches']:,.0f}/s in batches; "
        f"by the outbox {rates['outbox']:,.0f}/s: {rates['outbox'] / rates['single']:.0%} of single, "
        f"{rates['outbox'] / rates['batches']:.0%} of batches; "
        f"the application without the outbox commits {rates['application']:,.0f}/s",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
