"""Measures how long after a kill -9 the only server delivers again.

A server on PostgreSQL owns the lanes of the benchmark's endpoints. It is killed and started again at once; as soon as it
answers, an event is published for each endpoint. The seconds are counted from the kill: until it is ready, until the
first of the events has arrived, until all have. `HOOKLINE_TAKEOVER_S` is the default, 10.
"""

import argparse
import http.client
import os
import shlex
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec

from children import Child, ChildFailed
from database import NoPostgres, describe, start_postgres
from machine import describe_machine
from measure import ANSWER_TIMEOUT
from payload import ENDPOINTS, event_type, payload_of
from systems import HERE, SECRET, free_port, hookline, wait_until_ready

LOOK_EVERY = 0.005


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the children are ended
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="hookline-restart-", dir=options.directory)
            )
        )
        directory.chmod(0o755)  # PostgreSQL may have to run as another user than we
        try:
            postgres = start_postgres(directory / "pg", major=options.postgres)
            stack.callback(postgres.destroy)
            for name, value in (describe_machine(directory) | {"PostgreSQL": describe(postgres)}).items():
                print(f"{name}: {value}")
            for _ in range(options.trials):
                _run(options, directory, postgres.url(postgres.create_database()))
        except (ChildFailed, NoPostgres) as failure:
            print(failure, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return 0


def _run(options: argparse.Namespace, directory: Path, url: str) -> None:
    receive = [sys.executable, str(HERE / "receiver.py"), SECRET, str(directory / "arrivals.times")]
    with Child("receiver", receive, directory=directory) as sink:
        port = msgspec.json.decode(sink.first_line(within=ANSWER_TIMEOUT), type=dict[str, int])["port"]
        try:
            with hookline(
                port, command=options.hookline, database=url, directory=directory, max_in_flight=5
            ) as system:
                address = int(system.publisher[system.publisher.index("--port") + 1])
                _publish(address, first=0)
                _until_arrived(port, ENDPOINTS)
                killed = time.monotonic()
                os.kill(system.pids[0], signal.SIGKILL)
        except ChildFailed:
            pass  # it was killed
        address = free_port()
        serve = [*options.hookline, "serve", "--dev", "--host", "127.0.0.1", "--port", str(address)]
        with Child("again", [*serve, "--database", url], directory=directory) as server:
            wait_until_ready(server, address)
            ready = time.monotonic() - killed
            _publish(address, first=ENDPOINTS)
            first = _until_arrived(port, ENDPOINTS + 1) - killed
            last = _until_arrived(port, 2 * ENDPOINTS) - killed
    print(f"ready {ready:.2f} s, first {first:.2f} s, all {last:.2f} s after the kill", flush=True)


def _publish(port: int, *, first: int) -> None:
    """An event for each endpoint."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_TIMEOUT)
    events = b",".join(
        b'{"type":"%b","payload":%b}'
        % (event_type(number % ENDPOINTS).encode(), payload_of(number, time.monotonic_ns()))
        for number in range(first, first + ENDPOINTS)
    )
    body = b'{"events":[%b]}' % events
    connection.request("POST", "/v1/events/batch", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 202:
        raise ChildFailed(f"hookline refused the events: {answer.status} {answer.read()!r}")
    connection.close()


def _until_arrived(port: int, number: int) -> float:
    """When so many had arrived."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_TIMEOUT)
    deadline = time.monotonic() + ANSWER_TIMEOUT
    while time.monotonic() < deadline:
        connection.request("GET", "/count")
        if int(connection.getresponse().read()) >= number:
            return time.monotonic()
        time.sleep(LOOK_EVERY)
    raise ChildFailed(f"{number} events did not arrive")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(sys.executable).with_name("hookline")
    parser.add_argument("--trials", type=int, default=3, help="(%(default)s)")
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
