"""Measures what accept, load and settle cost on each store.

    python benchmarks/store.py [--rows 20000] [--batch 500] [--stores sqlite postgres]

CPU is this process's (on SQLite that is all there is; on PostgreSQL the server's comes on top), milliseconds are
what a caller waits for one batch. The databases are the tests': an SQLite file in a temporary directory and
PostgreSQL servers with their data in memory where possible, so add your disk's fsync to those.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TypeVar

import uvloop

from hookline.clock import SystemClock
from hookline.ids import Ids
from hookline.model import Attempt, Endpoint, Event, Outcome, State, Timings
from hookline.store.contract import EventFanout, Loaded, Settlement, Store, Want, WorkerRow
from hookline.store.postgres.store import PostgresStore

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from postgres_server import PostgresServer, installations

T = TypeVar("T")
LANES = 50
PAYLOAD = b'{"order":42,"lines":[' + b'{"sku":"a-1","count":1},' * 20 + b"{}]}"


class Step:
    """One verb's batches: how long each took, and the CPU of all of them."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.rows = 0
        self.cpu = 0.0
        self.walls: list[float] = []

    async def time(self, call: Awaitable[T], rows: int) -> T:
        cpu, wall = time.process_time(), time.perf_counter()
        result = await call
        self.walls.append(time.perf_counter() - wall)
        self.cpu += time.process_time() - cpu
        self.rows += rows
        return result

    def __str__(self) -> str:
        walls = sorted(self.walls)
        p95 = walls[int(len(walls) * 0.95)]
        return (
            f"{self.verb:8} {self.cpu / self.rows * 1e6:10.1f} {median(walls) * 1e3:10.1f} {p95 * 1e3:10.1f} "
            f"{self.rows / sum(walls):12,.0f}"
        )


async def measure(store: Store, *, rows: int, batch: int) -> list[Step]:
    """Publish `rows` events to LANES endpoints, load them and settle them as delivered."""
    clock = SystemClock()
    ids = Ids(clock, random.Random(1))
    await store.migrate()
    await store.open()
    worker = WorkerRow(
        id=ids.worker(),
        kind="worker",
        host="bench",
        pid=1,
        version="0",
        started_at=clock.now(),
        seen_at=clock.now(),
    )
    await store.register(worker)
    lanes = [ids.endpoint() for _ in range(LANES)]
    for lane in lanes:
        now = clock.now()
        await store.create_endpoint(
            Endpoint(
                id=lane,
                account="a",
                url="http://x/",
                events=("*",),
                secret="-",  # noqa: S106 - nobody signs anything here
                created_at=now,
                updated_at=now,
            ),
            now=now,
        )
    taken = {
        lane.endpoint_id: lane.epoch for lane in await store.take_these(worker.id, lanes, now=clock.now())
    }
    accept, load, settle = Step("accept"), Step("load"), Step("settle")
    for start in range(0, rows, batch):
        now = clock.now()
        publications = [
            EventFanout(
                Event(id=ids.event(), account="a", type="order.paid", payload=PAYLOAD, created_at=now),
                (lanes[n % LANES],),
                b"",
            )
            for n in range(start, start + batch)
        ]
        await accept.time(store.accept(publications, catalogue=LANES, now=now), batch)
    for _ in range(0, rows, batch):
        wants = [Want(lane, batch // LANES, 0) for lane in lanes]
        found = await load.time(store.load(wants, known=[], now=clock.now()), batch)
        now = clock.now()
        settlements = [delivered(row, ids, epoch=taken[row.endpoint_id], now=now) for row in found]
        await settle.time(store.settle(worker.id, settlements, now=now), batch)
    await store.close()
    return [accept, load, settle]


def delivered(row: Loaded, ids: Ids, *, epoch: int, now: float) -> Settlement:
    attempt = Attempt(
        id=ids.attempt(),
        delivery_id=row.id,
        number=1,
        replays=0,
        at=now,
        outcome=Outcome.ACCEPTED,
        duration=0.012,
        status=200,
        timings=Timings(first_byte=0.011),
        request_url="http://x/",
        response_body=b'{"ok":true}',
    )
    return Settlement(attempt, row.endpoint_id, epoch, State.DELIVERED, now)


def stores(names: list[str], stack: ExitStack) -> dict[str, Callable[[], Store]]:
    """How to make each of the stores to be measured."""
    made: dict[str, Callable[[], Store]] = {}
    if "sqlite" in names:
        from hookline.store.sqlite.store import SqliteStore

        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "bench.db"
        made["sqlite"] = lambda: SqliteStore(str(path))
    for installation in installations() if "postgres" in names else []:
        server = PostgresServer(installation)
        stack.callback(server.destroy)
        server.start()
        url = server.url(server.create_database())
        made[str(installation)] = lambda url=url: PostgresStore(url)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"])
    options = parser.parse_args()
    print(f"{'store':12} {'verb':8} {'us CPU/row':>10} {'ms p50':>10} {'ms p95':>10} {'rows/s':>12}")
    with ExitStack() as stack:
        for name, make in stores(options.stores, stack).items():
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                for step in runner.run(measure(make(), rows=options.rows, batch=options.batch)):
                    print(f"{name:12} {step}")


if __name__ == "__main__":
    main()
