"""Measures how many webhooks a second hookline delivers, how late and at what cost.

Load generator, receiver, hookline and PostgreSQL are processes of their own on this one machine. Every run
starts afresh; it counts only if every accepted event arrived exactly once and exactly as it was sent. The
textbook worker is measured in the same run, as the baseline.
"""

import argparse
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec

import report
from children import ChildFailed
from database import DiskServer, NoPostgres, describe, start_postgres
from machine import describe_machine, is_in_memory
from measure import Result, Start, Timing, measure
from payload import ENDPOINTS, SIZE_BYTES
from systems import Load, hookline, textbook

STORES = ("sqlite", "postgres")
MODES = ("single", "batch")
BATCH = 100
BATCH_CONNECTIONS = 16  # 1,600 events on their way: enough to keep two cores busy
OPEN_SHARE = 0.5  # of what the closed loop delivered
OPEN_CONNECTIONS = 256  # more than are ever busy: an event that is due must not wait for a free one
IDLE_RATE, IDLE_SECONDS = 20.0, 10.0
PUBLISHED_PAUSE = 0.5


class Bench:
    """The runs of one invocation, one after the other."""

    def __init__(self, options: argparse.Namespace, directory: Path, postgres: DiskServer | None) -> None:
        self._options = options
        self._directory = directory
        self._postgres = postgres
        self._timing = Timing(warmup=options.warmup, measured=options.seconds, drain=options.drain)
        self.results: list[Result] = []

    def run_hookline(self) -> None:
        """Each store: each way to publish in a closed and an open loop, then idle."""
        for store in self._options.stores:
            for mode in self._options.modes:
                batch, connections = (
                    (1, self._options.connections) if mode == "single" else (BATCH, BATCH_CONNECTIONS)
                )
                closed = Load(pace="closed", batch=batch, rate=0.0, connections=connections)
                if self._options.rate:
                    self._run_hookline(store, _open(closed, self._options.rate))
                else:
                    self._closed_and_open(closed, partial(self._run_hookline, store))
            if not self._options.closed and not self._options.rate:
                idle = Load(pace="idle", batch=1, rate=IDLE_RATE, connections=4)
                self._run_hookline(store, idle)

    def run_baseline(self) -> None:
        """The textbook worker as published, and without its sleep."""
        for name, pause in (("textbook", PUBLISHED_PAUSE), (report.BASELINE, 0.0)):
            closed = Load(pace="closed", batch=1, rate=0.0, connections=1)
            self._closed_and_open(closed, partial(self._run_textbook, name, pause))

    def _closed_and_open(self, closed: Load, run: Callable[[Load], Result]) -> None:
        reached = run(closed).speed.delivered_per_s
        if reached and not self._options.closed:
            run(_open(closed, reached * OPEN_SHARE))

    def _run_hookline(self, store: str, load: Load) -> Result:
        with self._fresh_directory() as directory, self._fresh_database(store, directory) as url:
            start = partial(
                hookline,
                command=self._options.hookline,
                database=url,
                directory=directory,
                max_in_flight=self._options.max_in_flight,
                processes=self._options.processes if store == "postgres" else 1,
                pages=self._options.pages,
            )
            return self._measure("hookline", store, load, start, directory)

    def _run_textbook(self, name: str, pause: float, load: Load) -> Result:
        with self._fresh_directory() as directory, self._fresh_database("postgres", directory) as url:
            start = partial(textbook, database=url, directory=directory, pause=pause)
            return self._measure(name, "postgres", load, start, directory)

    def _measure(self, name: str, store: str, load: Load, start: Start, directory: Path) -> Result:
        timing = self._timing
        if load.pace == "idle":
            timing = msgspec.structs.replace(timing, measured=min(IDLE_SECONDS, timing.measured))
        postmaster = self._postgres.pid if store == "postgres" and self._postgres else None
        result = measure(name, store, load, start, timing=timing, directory=directory, postmaster=postmaster)
        self.results.append(result)
        print("  ".join(report.row(result)), file=sys.stderr, flush=True)
        return result

    @contextmanager
    def _fresh_directory(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self._directory, prefix="run-") as name:
            yield Path(name)

    @contextmanager
    def _fresh_database(self, store: str, directory: Path) -> Iterator[str]:
        if store == "sqlite":
            yield f"sqlite:///{directory / 'bench.db'}"
            return
        assert self._postgres is not None
        name = self._postgres.create_database()
        try:
            yield self._postgres.url(name)
        finally:
            self._postgres.drop_database(name)


def _open(closed: Load, rate: float) -> Load:
    return msgspec.structs.replace(closed, pace="open", rate=rate, connections=OPEN_CONNECTIONS)


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the children are ended
    if is_in_memory(options.directory):
        print(
            f"{options.directory} is in memory, where fsync costs nothing: give --directory", file=sys.stderr
        )
        return 2
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="hookline-bench-", dir=options.directory))
        )
        directory.chmod(0o755)  # PostgreSQL may have to run as another user than we
        machine = describe_machine(directory)
        postgres = None
        try:
            if options.baseline or "postgres" in options.stores:
                postgres = start_postgres(directory / "pg", major=options.postgres)
                stack.callback(postgres.destroy)
                machine["PostgreSQL"] = describe(postgres)
            bench = Bench(options, directory, postgres)
            bench.run_hookline()
            if options.baseline:
                bench.run_baseline()
        except (ChildFailed, NoPostgres) as failure:
            print(failure, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return _conclude(options, bench.results, machine)


def _conclude(options: argparse.Namespace, results: list[Result], machine: dict[str, str]) -> int:
    """Show the figures; 1 when something was not received as sent or, if asked to enforce, missed its target."""
    load = _describe_load(options)
    promised = report.targets(results)
    if options.json:
        figures = {"machine": machine, "load": load, "results": results, "targets": promised}
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
    if options.markdown:
        print(report.markdown(results, machine, load))
    else:
        for name, value in (machine | {"load": load}).items():
            print(f"{name}: {value}")
        print("\n" + report.table(results) + "\n")
    if (compared := report.comparison(results)) is not None:
        print(("\n" if options.markdown else "") + compared)
    missed = [target for target in promised if not target.met]
    for target in missed:
        print(f"missed: {target.text} (was {target.actual:,.1f})", file=sys.stderr)
    for remark in report.remarks(results):
        print(f"note: {remark}", file=sys.stderr)
    wrong = report.problems(results)
    for problem in wrong:
        print(f"not received as sent: {problem}", file=sys.stderr)
    return 1 if wrong or (options.enforce and missed) else 0


def _describe_load(options: argparse.Namespace) -> str:
    return (
        f"{SIZE_BYTES}-byte payloads, {ENDPOINTS} endpoints on one receiver, default settings but "
        f"max_in_flight {options.max_in_flight}, {options.warmup:g} s warm-up, {options.seconds:g} s measured, "
        f"fsync on; hookline in {options.processes} process{'es' if options.processes > 1 else ''} on PostgreSQL; "
        f"{options.connections} connections (single) and {BATCH_CONNECTIONS} (batches) in the closed loop"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(sys.executable).with_name("hookline")
    parser.add_argument("--stores", type=_some_of(STORES), default=STORES, help="sqlite,postgres")
    parser.add_argument("--modes", type=_some_of(MODES), default=MODES, help="single,batch")
    parser.add_argument("--closed", action="store_true", help="only the closed loop: the most it takes")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="only an open loop, of so many events a second"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="measured (%(default)s)")
    parser.add_argument("--warmup", type=float, default=5.0, help="before that (%(default)s)")
    parser.add_argument("--drain", type=float, default=60.0, help="at most, for what is left (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="2 s measured after 0.5 s: to see that it works")
    parser.add_argument("--connections", type=int, default=128, help="single, closed loop (%(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="of hookline, on PostgreSQL (%(default)s)")
    parser.add_argument("--max-in-flight", type=int, default=50, help="of each endpoint (%(default)s)")
    parser.add_argument(
        "--pages", type=int, default=0, help="of the dashboard that are open meanwhile (%(default)s)"
    )
    parser.add_argument(
        "--baseline", action=argparse.BooleanOptionalAction, default=True, help="the textbook worker"
    )
    parser.add_argument("--postgres", type=int, metavar="MAJOR", help="version (the newest there is)")
    parser.add_argument(
        "--hookline", type=shlex.split, default=[str(beside)], help="command, e.g. of another checkout"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("/var/tmp"),  # noqa: S108 - mkdtemp makes our own directory in it
        help="for the data; on a real disk (%(default)s)",
    )
    parser.add_argument("--enforce", action="store_true", help="fail also when a target is missed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured to it")
    parser.add_argument("--markdown", action="store_true", help="print the table as in benchmarks/README.md")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.warmup = 2.0, 0.5
    return options


def _some_of(names: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen) - set(names):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is none of {', '.join(names)}")
        return chosen

    return parse


if __name__ == "__main__":
    sys.exit(main())
