"""Measures whether four workers on one PostgreSQL are at least as fast as one, and keep an endpoint's limits exactly.

    python benchmarks/scaling.py [--workers 1,4] [--events 20000] [--endpoints 400] [--rounds 2]

An API without a worker accepts the events, all due at the same moment; by then the workers are there. What counts is
how long they take from that moment to the last arrival, and the ratio between numbers of workers within one run. Two
more endpoints have limits, of rate and of requests in flight: the receiver counts. Then single events are published, with the
workers' hints and without: how soon do they arrive? Exits 1 when a limit was not kept, or the most workers are
slower than one.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import msgspec
import psycopg
import uvloop

from children import Child
from database import DiskServer, start_postgres
from machine import describe_machine
from systems import free_port, wait_until_ready

COMMAND = (sys.executable, "-m", "hookline")
BATCH = 1_000
RATE, BURST = 50, 10
MOST = RATE * 1.1 + BURST  # in a second, as counted on arrival: requests are not all equally long under way
CAP = 5
LIMITED_EVENTS = 300
CAPPED_EVENTS = 200
CAPPED_TAKES_S = 0.05
LEAD_S = 8.0  # for the workers to start
SINGLES = 30  # each for a lane that nobody owns, so that somebody has to take it
NO_SLOWER = 1.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
STARTS = """
SELECT extract(epoch FROM a.at)
FROM endpoints e JOIN deliveries d ON d.endpoint_id = e.id JOIN attempts a ON a.delivery_id = d.id
WHERE e.url LIKE '%/limited' ORDER BY a.at
"""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Arrivals(msgspec.Struct):
    """What came, by the monotonic clock."""

    plain: int = 0
    last_plain: float = 0.0
    limited: list[float] = msgspec.field(default_factory=list)
    capped: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    single: threading.Event = msgspec.field(default_factory=threading.Event)


class Connection(asyncio.Protocol):
    """One kept-alive connection, read by hand: what is spent here is taken from those that are measured."""

    def __init__(self, seen: Arrivals) -> None:
        self._seen = seen
        self._read = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        read = self._read + data if self._read else data
        while (end := read.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(read, 0, end + 2)
            done = end + 4 + (int(length[1]) if length else 0)
            if len(read) < done:
                break
            self._note(read[read.index(b" ") + 1 : read.index(b" HTTP/")])
            read = read[done:]
        self._read = read

    def _note(self, path: bytes) -> None:
        """Count it and answer; the path says what is counted."""
        seen = self._seen
        if path.startswith(b"/plain"):
            seen.plain += 1
            seen.last_plain = time.monotonic()
        elif path == b"/limited":
            seen.limited.append(time.monotonic())
        elif path == b"/capped":
            seen.in_flight += 1
            seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
            asyncio.get_running_loop().call_later(CAPPED_TAKES_S, self._answer_capped)
            return
        else:
            seen.single.set()
        self._answer()

    def _answer_capped(self) -> None:
        self._seen.in_flight -= 1
        self._seen.capped += 1
        self._answer()

    def _answer(self) -> None:
        if self._transport is not None:
            self._transport.write(OK)


class Receiver(threading.Thread):
    """Answers on a loop of its own."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen = Arrivals()
        self.port = 0
        self._ready = threading.Event()
        self.start()
        self._ready.wait()

    def run(self) -> None:
        uvloop.run(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self.seen), "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()


class Api:
    """An API without a worker."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def post(self, path: str, body: object) -> None:
        request = urllib.request.Request(  # noqa: S310 - our own server
            self._url + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own server
            answer.read()


def most_in_a_second(times: list[float]) -> int:
    """The fullest window of one second."""
    most = first = 0
    for last, at in enumerate(times):
        while times[first] <= at - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


def starts_of_limited(url: str) -> list[float]:
    """When the limited endpoint's attempts began, by the workers that sent them; waits until all are settled."""
    with psycopg.connect(url, autocommit=True, options="-c search_path=hookline") as connection:
        while True:
            found = connection.execute(STARTS).fetchall()
            if len(found) >= LIMITED_EVENTS:
                return [float(at) for (at,) in found]
            time.sleep(0.05)


@contextmanager
def hookline(
    server: DiskServer, directory: Path, *, workers: int, notify: bool = True
) -> Iterator[tuple[Api, list[Child], str]]:
    """An API, so many workers, and the address of the database they have to themselves."""
    name = server.create_database()
    directory.mkdir()
    url = server.url(name)
    (directory / "hookline.toml").write_text(f"notify = {str(notify).lower()}\n")
    port = free_port()
    serve = [*COMMAND, "serve", "--dev", "--no-worker", "--port", str(port), "--database", url]
    with ExitStack() as stack:
        stack.callback(server.drop_database, name)
        api = stack.enter_context(Child("api", serve, directory=directory))
        wait_until_ready(api, port)
        started = [
            stack.enter_context(
                Child(f"worker-{n}", [*COMMAND, "worker", "--dev", "--database", url], directory=directory)
            )
            for n in range(workers)
        ]
        yield Api(port), started, url


def measure(
    server: DiskServer, directory: Path, *, workers: int, events: int, endpoints: int
) -> dict[str, float]:
    """One number of workers."""
    receiver = Receiver()
    base = f"http://127.0.0.1:{receiver.port}"
    with hookline(server, directory, workers=workers) as (api, _, url):
        for n in range(endpoints):
            api.post("/v1/endpoints", {"url": f"{base}/plain/{n}", "events": [f"plain.t{n}"]})
        limit = {"per_second": RATE, "burst": BURST}
        api.post("/v1/endpoints", {"url": f"{base}/limited", "events": ["limited"], "rate_limit": limit})
        api.post("/v1/endpoints", {"url": f"{base}/capped", "events": ["capped"], "max_in_flight": CAP})
        types = [f"plain.t{n % endpoints}" for n in range(events)]
        types += ["limited"] * LIMITED_EVENTS + ["capped"] * CAPPED_EVENTS
        publish_s = events / 5_000
        due = time.monotonic() + publish_s + LEAD_S
        at = (datetime.now(UTC) + timedelta(seconds=publish_s + LEAD_S)).isoformat()
        for start in range(0, len(types), BATCH):
            batch = [
                {"type": type, "payload": start, "deliver_at": at} for type in types[start : start + BATCH]
            ]
            api.post("/v1/events/batch", {"events": batch})
        late = time.monotonic() - due
        if late > 0:
            print(f"  publishing was {late:.1f} s late: count from its end")
            due += late
        seen = receiver.seen
        deadline = due + 300
        while seen.plain < events or len(seen.limited) < LIMITED_EVENTS or seen.capped < CAPPED_EVENTS:
            if time.monotonic() > deadline:
                raise SystemExit(f"only {seen.plain:,} of {events:,} arrived")
            time.sleep(0.05)
        starts = starts_of_limited(url)
    rates = seen.limited
    return {
        "rate": events / (seen.last_plain - due),
        "most_in_a_second": most_in_a_second(rates),
        "most_begun_in_a_second": most_in_a_second(starts),
        "limited_per_s": (len(rates) - BURST) / (rates[-1] - rates[0]),
        "most_in_flight": seen.most_in_flight,
    }


def measure_singles(server: DiskServer, directory: Path, *, notify: bool) -> list[float]:
    """Seconds from before the publish to the arrival, of events for lanes that are free."""
    receiver = Receiver()
    base = f"http://127.0.0.1:{receiver.port}"
    found = []
    with hookline(server, directory, workers=1, notify=notify) as (api, [worker], _):
        for n in range(SINGLES):
            api.post("/v1/endpoints", {"url": f"{base}/single", "events": [f"s.t{n}"]})
        while "delivering from" not in worker.last_words():
            time.sleep(0.05)
        time.sleep(1.0)  # its session listens
        for n in range(SINGLES):
            receiver.seen.single.clear()
            began = time.monotonic()
            api.post("/v1/events", {"type": f"s.t{n}", "payload": n})
            if not receiver.seen.single.wait(30):
                raise SystemExit("a single event did not arrive")
            found.append(time.monotonic() - began)
            time.sleep(0.31 + 0.013 * (n % 19))  # out of step with every poll
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--workers", default="1,4", help="numbers of workers to compare (%(default)s)")
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--endpoints", type=int, default=400)
    options.add_argument("--rounds", type=int, default=2, help="of all numbers of workers (%(default)s)")
    chosen = options.parse_args()
    numbers = [int(text) for text in chosen.workers.split(",")]
    with tempfile.TemporaryDirectory(prefix="hookline-scaling-") as text:
        folder = Path(text)
        folder.chmod(0o755)
        print(json.dumps(describe_machine(folder)))
        print(f"load average before: {os.getloadavg()[0]:.1f}")
        server = start_postgres(folder / "server", major=None)
        try:
            fine = compare(server, folder, numbers, chosen)
            for notify in (True, False):
                times = sorted(measure_singles(server, folder / f"singles-{notify}", notify=notify))
                print(
                    f"single events, {'hints' if notify else 'polling only'}: "
                    f"p50 {statistics.median(times) * 1e3:.0f} ms, worst {times[-1] * 1e3:.0f} ms of {SINGLES}"
                )
        finally:
            server.destroy()
        print(f"load average after: {os.getloadavg()[0]:.1f}")
    return 0 if fine else 1


def compare(server: DiskServer, folder: Path, numbers: list[int], chosen: argparse.Namespace) -> bool:
    """Print a line for each run; True when limits were kept and more workers are no slower."""
    rates: dict[int, list[float]] = {number: [] for number in numbers}
    fine = True
    for round in range(chosen.rounds):
        for number in numbers:
            found = measure(
                server,
                folder / f"{round}-{number}",
                workers=number,
                events=chosen.events,
                endpoints=chosen.endpoints,
            )
            rates[number].append(found["rate"])
            fine = fine and found["most_begun_in_a_second"] <= RATE + BURST and found["most_in_flight"] <= CAP
            fine = fine and found["most_in_a_second"] <= MOST
            print(
                f"{number} workers: {found['rate']:,.0f} deliveries/s; limited to {RATE}/s + {BURST}: "
                f"{found['limited_per_s']:.1f}/s, at most {found['most_begun_in_a_second']:.0f} begun and "
                f"{found['most_in_a_second']:.0f} come in a second; "
                f"limited to {CAP} in flight: at most {found['most_in_flight']:.0f}"
            )
    medians = {number: statistics.median(found) for number, found in rates.items()}
    first, last = medians[numbers[0]], medians[numbers[-1]]
    print(f"{numbers[-1]} workers deliver {last / first:.2f} times as fast as {numbers[0]}")
    return fine and last >= NO_SLOWER * first


if __name__ == "__main__":
    sys.exit(main())
