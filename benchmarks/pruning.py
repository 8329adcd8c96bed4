"""Measures whether deleting old data disturbs anybody.

    python benchmarks/pruning.py [--rows 100000] [--rate 1000] [--stores sqlite,postgres] [--enforce]

A database with old deliveries, hookline as a user starts it, and a steady load. A minute after its start hookline
begins to prune by itself. The latency before and during, the longest step and the longest wait for a lock are of one
and the same run.
"""

import argparse
import asyncio
import shlex
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psycopg

import ledger
import loadgen
from children import Child, ChildFailed
from database import NoPostgres, describe, start_postgres
from filling import fill
from ledger import Speed, Window
from machine import describe_machine, is_in_memory
from systems import HERE, SECRET, Load, hookline, publish_command

BEGINS = 60.0  # seconds after its start hookline looks for the first time whether there is something to prune
SETTLED = 10.0  # seconds that pass before anything is measured
LOOK_EVERY = 0.02
PATIENCE = 600.0

# What F28 asks for.
MOST_SLOWDOWN, MOST_LOCK_WAIT_MS, MOST_STEP_MS = 2.0, 100.0, 1_000.0

PRUNED = "SELECT coalesce(sum(deliveries), 0) FROM pruned"
WATCHED = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - state_change)) FILTER (WHERE wait_event_type = 'Lock'), 0),
  coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)) FILTER (WHERE application_name = 'hookline prune'), 0)
FROM pg_stat_activity WHERE application_name LIKE 'hookline %' AND state <> 'idle'
"""


class Seen(msgspec.Struct):
    """What was seen of pruning from outside."""

    began: int = 0  # nanoseconds of the machine's monotonic clock
    ended: int = 0
    pruned: int = 0
    lock_wait_ms: float = 0.0
    step_ms: float = 0.0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One store's figures."""

    store: str
    rows: int
    before: Speed
    during: Speed
    seconds: float
    seen: Seen
    missing: int

    def missed(self) -> list[str]:
        """The figures that miss their targets."""
        slower = (self.during.p99_ms or 0.0) / (self.before.p99_ms or 1.0)
        found = {
            f"p99 {slower:.1f} x": slower > MOST_SLOWDOWN,
            f"a lock waited for {self.seen.lock_wait_ms:.0f} ms": self.seen.lock_wait_ms > MOST_LOCK_WAIT_MS,
            f"a step of {self.seen.step_ms:.0f} ms": self.seen.step_ms > MOST_STEP_MS,
            f"{self.rows - self.seen.pruned} not pruned": self.seen.pruned != self.rows,
            f"{self.missing} accepted and not received": self.missing > 0,
        }
        return [text for text, is_so in found.items() if is_so]


class Watch(threading.Thread):
    """Looks at the database while it is being pruned."""

    def __init__(self, url: str, rows: int) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._rows = rows
        self.seen = Seen()
        self.is_over = threading.Event()

    def run(self) -> None:
        with closing(_connect(self._url)) as connection:
            while not self.is_over.wait(LOOK_EVERY):
                self._look(connection)

    def _look(self, connection: Any) -> None:
        seen = self.seen
        if self._url.startswith("postgres"):
            lock_wait, step = connection.execute(WATCHED).fetchone()
            seen.lock_wait_ms = max(seen.lock_wait_ms, float(lock_wait) * 1e3)
            seen.step_ms = max(seen.step_ms, float(step) * 1e3)
        pruned = int(connection.execute(PRUNED).fetchone()[0])
        if pruned != seen.pruned:
            seen.began = seen.began or time.monotonic_ns()
            seen.ended = time.monotonic_ns()
            seen.pruned = pruned
            if pruned >= self._rows:
                self.is_over.set()


def _connect(url: str) -> Any:
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    return psycopg.connect(url, autocommit=True, options="-c search_path=hookline")


def run(store: str, url: str, directory: Path, options: argparse.Namespace) -> Row:
    """Fill, serve, publish, wait until everything old is gone."""
    asyncio.run(fill(url, rows=options.rows))
    accepted, arrivals = directory / "accepted.times", directory / "arrivals.times"
    receive = [sys.executable, str(HERE / "receiver.py"), SECRET, str(arrivals)]
    load = Load(pace="open", batch=1, rate=options.rate, connections=64)
    with ExitStack() as stack:
        sink = stack.enter_context(Child("receiver", receive, directory=directory))
        port = msgspec.json.decode(sink.first_line(within=10.0), type=dict[str, int])["port"]
        start = partial(
            hookline, command=options.hookline, database=url, directory=directory, max_in_flight=50
        )
        system = stack.enter_context(start(port))
        began = time.monotonic_ns() + int(0.7e9)
        stop = began + int((options.begins + options.seconds) * 1e9)
        watch = Watch(url, options.rows)
        watch.start()
        publish = publish_command(system, load, start=began, stop=stop, file=accepted)
        generator = stack.enter_context(Child("generator", publish, directory=directory))
        generator.last_line(within=options.begins + options.seconds + loadgen.LAST_ANSWERS + 10.0)
        watch.is_over.wait(max(1.0, options.patience - options.seconds))
        watch.is_over.set()
        watch.join()
        time.sleep(1.0)
        sink.end()
    seen = watch.seen
    for line in (directory / "hookline.err").read_text().splitlines():
        if "prune.finished" in line:
            print(line, file=sys.stderr)
            seen.step_ms = max(seen.step_ms, _slowest_ms(line))
    book = ledger.read_ledger(accepted, arrivals)
    return Row(
        store=store,
        rows=options.rows,
        before=ledger.speed(book, Window(start=began + int(SETTLED * 1e9), stop=seen.began or stop)),
        during=ledger.speed(book, Window(start=seen.began, stop=max(min(seen.ended, stop), seen.began + 1))),
        seconds=(seen.ended - seen.began) / 1e9,
        seen=seen,
        missing=ledger.count_missing(book),
    )


def _slowest_ms(line: str) -> float:
    """The slowest step, as the server's log says."""
    _, _, rest = line.partition("slowest_ms")
    return float("".join(each for each in rest.lstrip('=": ').split()[0] if each in "0123456789.") or 0)


def show(row: Row) -> str:
    """One line of the table."""
    figures = [
        f"{speed.p50_ms or 0:.1f} / {speed.p99_ms or 0:.1f} / {speed.max_ms or 0:.0f}"
        for speed in (row.before, row.during)
    ]
    return (
        f"| {row.store} | {row.rows:,} | {row.seconds:.0f} s | {row.before.delivered_per_s:,.0f}/s | {figures[0]} | {figures[1]} "
        f"| {row.seen.step_ms:.0f} | {row.seen.lock_wait_ms:.0f} |"
    )


@contextmanager
def databases(stores: list[str], directory: Path) -> Iterator[dict[str, str]]:
    """A new database of each kind."""
    urls: dict[str, str] = {}
    with ExitStack() as stack:
        if "sqlite" in stores:
            urls["sqlite"] = f"sqlite:///{directory / 'old.db'}"
        if "postgres" in stores:
            server = start_postgres(directory / "pg", major=None)
            stack.callback(server.destroy)
            print(f"PostgreSQL: {describe(server)}")
            urls["postgres"] = server.url(server.create_database())
        yield urls


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the children are ended
    if is_in_memory(options.directory):
        print(
            f"{options.directory} is in memory, where fsync costs nothing: give --directory", file=sys.stderr
        )
        return 2
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hookline-bench-", dir=options.directory) as name:
        directory = Path(name)
        directory.chmod(0o755)  # PostgreSQL may have to run as another user than we
        for about, value in describe_machine(directory).items():
            print(f"{about}: {value}")
        try:
            with databases(options.stores, directory) as urls:
                print(
                    "\n| store | old deliveries | pruned in | load | p50 / p99 / worst ms before | during | longest step ms | longest lock wait ms |"
                )
                print("|---|---:|---:|---:|---:|---:|---:|---:|")
                for store, url in urls.items():
                    place = directory / store
                    place.mkdir()
                    row = run(store, url, place, options)
                    print(show(row), flush=True)
                    if options.report is not None:
                        options.report.write_bytes(msgspec.json.encode(row))
                    missed += [f"{store}: {text}" for text in row.missed()]
        except (ChildFailed, NoPostgres) as failure:
            print(failure, file=sys.stderr)
            return 1
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if options.enforce and missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(sys.executable).with_name("hookline")
    parser.add_argument("--rows", type=int, default=100_000, help="old deliveries (%(default)s)")
    parser.add_argument("--rate", type=float, default=1_000.0, help="events a second (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of load from the first minute on (%(default)s)"
    )
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, help="seconds until all has to be gone (%(default)s)"
    )
    parser.add_argument("--begins", type=float, default=BEGINS, help=argparse.SUPPRESS)
    parser.add_argument("--stores", type=lambda text: text.split(","), default=["sqlite", "postgres"])
    parser.add_argument(
        "--hookline", type=shlex.split, default=[str(beside)], help="command, e.g. of another checkout"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("/var/tmp"),  # noqa: S108 - mkdtemp makes our own directory in it
        help="on a real disk (%(default)s)",
    )
    parser.add_argument("--report", type=Path, help="a file for the figures of the last store, as JSON")
    parser.add_argument("--enforce", action="store_true", help="fail when a bound is missed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
