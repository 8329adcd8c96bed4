"""Measures what a server costs at rest and at 20 events a second, and how late it is then.

A server with default settings: first left alone, then published to at 20 events a second that fall due at random
(Poisson). Evenly spaced events hide the tail: no two of them are ever under way at once. Commits are PostgreSQL's own
count (`pg_stat_database.xact_commit`); a look that only reads is one too.
"""

import argparse
import shlex
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import psycopg

import ledger
import loadgen
import receiver
from children import Child, ChildFailed
from database import NoPostgres, describe, start_postgres
from ledger import Window
from machine import describe_machine
from measure import ANSWER_TIMEOUT, LEAD
from systems import HERE, SECRET, Load, hookline, publish_command
from usage import cpu_of

SETTLED = 3.0  # seconds after the start in which it is not looked at
LAST_SETTLES = 1.0  # seconds after the last event until everything is written
# What a session did is counted a second after it did it at the latest.
COUNTED = 1.5


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What was used up by a moment."""

    commits: int
    server: float  # seconds of processor
    database: float

    def since(self, before: "Costs") -> "Costs":
        return Costs(
            commits=self.commits - before.commits,
            server=self.server - before.server,
            database=self.database - before.database,
        )


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the children are ended
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="hookline-idle-", dir=options.directory))
        )
        directory.chmod(0o755)  # PostgreSQL may have to run as another user than we
        try:
            postgres = start_postgres(directory / "pg", major=options.postgres)
            stack.callback(postgres.destroy)
            for name, value in (describe_machine(directory) | {"PostgreSQL": describe(postgres)}).items():
                print(f"{name}: {value}")
            database = postgres.create_database()
            _run(options, directory, postgres.url(database), postgres.pid)
        except (ChildFailed, NoPostgres) as failure:
            print(failure, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return 0


def _run(options: argparse.Namespace, directory: Path, url: str, postmaster: int) -> None:
    accepted, arrivals = directory / "accepted.times", directory / "arrivals.times"
    receive = [sys.executable, str(HERE / "receiver.py"), SECRET, str(arrivals)]
    with Child("receiver", receive, directory=directory) as sink:
        port = msgspec.json.decode(sink.first_line(within=ANSWER_TIMEOUT), type=dict[str, int])["port"]
        with hookline(
            port, command=options.hookline, database=url, directory=directory, max_in_flight=5
        ) as system:

            def costs() -> Costs:
                time.sleep(COUNTED)
                with psycopg.connect(url) as connection:
                    [[commits]] = connection.execute(
                        "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
                    ).fetchall()
                return Costs(commits=commits, server=cpu_of(*system.pids), database=cpu_of(postmaster))

            time.sleep(SETTLED)
            before, began = costs(), time.monotonic()
            time.sleep(options.seconds)
            alone, seconds = costs().since(before), time.monotonic() - began
            print(
                f"nothing to do: {alone.commits / seconds:.1f} commits/s, processor "
                f"{1e3 * alone.server / seconds:.1f} ms/s, with database {1e3 * (alone.server + alone.database) / seconds:.1f}"
            )
            before, start = costs(), time.monotonic_ns() + int(LEAD * 1e9)
            window = Window(
                start=start + int(options.warmup * 1e9),
                stop=start + int((options.warmup + options.seconds) * 1e9),
            )
            load = Load(pace="open", batch=1, rate=options.rate, connections=16)
            publish = publish_command(system, load, start=start, stop=window.stop, file=accepted)
            with Child("generator", publish, directory=directory) as generator:
                patience = options.warmup + options.seconds + loadgen.LAST_ANSWERS + ANSWER_TIMEOUT
                sent = msgspec.json.decode(generator.last_line(within=patience), type=loadgen.Summary)
            time.sleep(LAST_SETTLES)
            used, events = costs().since(before), max(1, sent.accepted)
        sink.end()
        seen = msgspec.json.decode(sink.last_line(within=ANSWER_TIMEOUT), type=receiver.Summary)
    speed = ledger.speed(ledger.read_ledger(accepted, arrivals), window)
    print(
        f"{options.rate:g} events/s: {used.commits / events:.2f} commits, processor {1e3 * used.server / events:.2f} ms, "
        f"with database {1e3 * (used.server + used.database) / events:.2f} for an event; "
        f"p50 {speed.p50_ms:.1f}, p95 {speed.p95_ms:.1f}, p99 {speed.p99_ms:.1f}, longest {speed.max_ms:.1f} ms; "
        f"accepted {sent.accepted}, arrived {seen.received}, doubled {seen.duplicates}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(sys.executable).with_name("hookline")
    parser.add_argument("--rate", type=float, default=20.0, help="events a second (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each part (%(default)s)")
    parser.add_argument("--warmup", type=float, default=3.0, help="before the second (%(default)s)")
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
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
