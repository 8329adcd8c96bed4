"""Measures how long the dashboard's pages take on the server, how much they weigh, and what open pages cost.

    python benchmarks/dashboard.py [--rows 1000000] [--stores sqlite,postgres] [--enforce]

A database with delivered deliveries and 1,000 endpoints is served by a real server. Every page is loaded 20 times; the
medians count. Then five browsers' worth of live streams are open for 20 seconds, and the server's processor time is
compared with the 20 seconds before. `--enforce` exits with 1 if a target is missed.
"""

import argparse
import asyncio
import http.client
import json
import re
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from children import Child
from database import NoPostgres, describe, start_postgres
from filling import fill
from health import create_endpoints
from hookline.app import Hookline
from hookline.config import Settings
from machine import describe_machine, is_in_memory
from usage import cpu_of

TIMES = 20
STREAMS = 5
WATCHED_S = 20.0
PAGE_MS, WEIGHT_BYTES, LIVE_SHARE = 100.0, 120 << 10, 0.01


def main() -> int:
    asked = arguments()
    with tempfile.TemporaryDirectory(prefix="hookline-dashboard-", dir=asked.directory) as name:
        directory = Path(name)
        directory.chmod(0o755)  # PostgreSQL may have to run as another user than we
        if is_in_memory(directory):
            print(f"{directory} is in memory: its times would say nothing", file=sys.stderr)
            return 2
        print(describe_machine(directory))
        missed: list[str] = []
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
                    url = f"sqlite:///{directory}/dashboard.db"
                missed += measure(url, rows=asked.rows, directory=directory)
        if missed:
            print("missed: " + ", ".join(missed))
        return 1 if missed and asked.enforce else 0


def measure(url: str, *, rows: int, directory: Path) -> list[str]:
    """Fill a database, serve it, load every page, watch; the targets that were missed."""
    name = url.partition(":")[0]
    asyncio.run(prepare(url, rows))
    command = [sys.executable, "-m", "hookline", "serve", "--dev", "--port", "0", "--database", url]
    missed = []
    with Child(name, command, directory=directory) as server:
        place = listening(directory / f"{name}.err")
        [newest] = ask(place, "/v1/deliveries?limit=1")["data"]
        delivery, event = newest["id"], newest["event_id"]
        endpoint = ask(place, "/v1/endpoints?limit=1")["data"][0]["id"]
        print(f"\n{name}: {rows:,} deliveries, 1,000 endpoints")
        for path in (
            "/",
            "/endpoints",
            "/endpoints?sort=url&offset=500",
            f"/endpoints/{endpoint}",
            f"/endpoints/{endpoint}/settings",
            "/deliveries",
            f"/deliveries?endpoint_id={endpoint}",
            f"/deliveries/{delivery}",
            "/dead-letters",
            "/events",
            f"/events/{event}",
            "/event-types",
            "/accounts",
            "/keys",
            "/workers",
            "/settings",
            "/find?q=127.0.0.1",
        ):
            took = [load(place, path) for _ in range(TIMES)]
            median = statistics.median(each[0] for each in took)
            print(
                f"  {path.replace(endpoint, 'ep_…')[:60]:60} {median:6.1f} ms, {took[-1][1] / 1024:5.1f} KiB packed"
            )
            if median > PAGE_MS:
                missed.append(f"{name} {path}")
        weight = first_load(place)
        print(f"  the first load of the overview: {weight / 1024:.0f} KiB over the wire")
        if weight > WEIGHT_BYTES:
            missed.append(f"{name} weight")
        share = live_share(place, server.pid)
        print(f"  an open overview: {share:.2%} of a core")
        if share > LIVE_SHARE:
            missed.append(f"{name} live")
    return missed


async def prepare(url: str, rows: int) -> None:
    """Fill the database."""
    await fill(url, rows=rows)
    hooks = Hookline(url, settings=Settings(dev=True), deliver=False)
    await hooks.store.open(serve=False)
    try:
        await create_endpoints(hooks)
    finally:
        await hooks.store.close()


def listening(log: Path) -> str:
    """Where the server listens, once it does."""
    for _ in range(600):
        found = re.search(r"listening on (http://\S+)", log.read_text() if log.exists() else "")
        if found:
            return found[1]
        time.sleep(0.1)
    raise SystemExit(f"the server does not listen:\n{log.read_text()}")


def load(place: str, path: str) -> tuple[float, int]:
    """How many milliseconds a page took, and how many bytes it had over the wire."""
    connection = http.client.HTTPConnection(urlsplit(place).netloc, timeout=60)
    try:
        began = time.perf_counter()
        connection.request("GET", path, headers={"accept-encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - began) * 1e3
        if answer.status != 200:
            raise SystemExit(f"{path} answers {answer.status}")
        return took, len(body) + sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
    finally:
        connection.close()


def ask(place: str, path: str) -> Any:
    """What the API answers."""
    connection = http.client.HTTPConnection(urlsplit(place).netloc, timeout=60)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def first_load(place: str) -> int:
    """The bytes of the overview with all that it loads."""
    connection = http.client.HTTPConnection(urlsplit(place).netloc, timeout=60)
    try:
        connection.request("GET", "/")
        html = connection.getresponse().read().decode()
    finally:
        connection.close()
    files = set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', html))
    return load(place, "/")[1] + sum(load(place, path)[1] for path in files)


def live_share(place: str, pid: int) -> float:
    """The share of a core that one open overview costs the server."""
    before = cpu_of(pid)
    time.sleep(WATCHED_S)
    at_rest = cpu_of(pid) - before
    streams = []
    try:
        for _ in range(STREAMS):
            connection = http.client.HTTPConnection(urlsplit(place).netloc, timeout=60)
            connection.request("GET", "/live?page=overview")
            connection.getresponse().readline()
            streams.append(connection)
        before = cpu_of(pid)
        time.sleep(WATCHED_S)
        watched = cpu_of(pid) - before
    finally:
        for connection in streams:
            connection.close()
    return max(0.0, watched - at_rest) / WATCHED_S / STREAMS


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="delivered deliveries")
    parser.add_argument("--stores", default="sqlite,postgres")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="on a real disk")  # noqa: S108 - a parent folder
    parser.add_argument("--enforce", action="store_true", help="fail when a target is missed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
