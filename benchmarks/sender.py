"""Measures what one request costs, with our sender and with the libraries we could have used.

CPU time of the client process alone, all threads, for POSTs of 1 KB over kept connections; the receiver is a
process of its own. All clients run in one go and take turns, so that a busy machine is busy for all of them.
Exits 1 unless ours is at least four times cheaper than aiohttp.

    python benchmarks/sender.py [--quick]
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from statistics import median
from typing import Any

import aiohttp
import httptools
import httpx
import uvloop
from pyreqwest.client import ClientBuilder

from hookline.clock import SystemClock
from hookline.pipeline.sending import HttpSender, Request, SendResult, parse
from hookline.pipeline.sending.net import SystemNet

CONCURRENCY = 50
FLOOR = 4.0
TIMEOUT = 10.0
BODY = b'{"id":"evt_0","data":"' + b"x" * 1000 + b'"}'
HEADERS = {
    "content-type": "application/json",
    "user-agent": "hookline/0.1",
    "accept-encoding": "identity",
    "webhook-id": "evt_01hq3v5m0000000000000000",
    "webhook-timestamp": "1700000000",
    "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
}

Run = Callable[[int], Awaitable[None]]


class Responder(asyncio.Protocol):
    """The cheapest receiver: an empty 200 for every request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: bench\r\nContent-Length: 11\r\n\r\n"
            b'{"ok":true}'
        )


async def respond() -> None:
    """Serve until the parent closes our standard input.

    Never sleeps: waking a sleeping process is charged to whoever writes to it, 10 to 20 µs on a virtual
    machine, and would be more than all else that is measured here.
    """
    loop = asyncio.get_running_loop()

    def stay_awake() -> None:
        loop.call_soon(stay_awake)

    stay_awake()
    server = await loop.create_server(Responder, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


@asynccontextmanager
async def ours(url: str) -> AsyncIterator[Run]:
    """Called as the pipeline calls it: the next request is sent from inside the last one's answer."""
    sender = HttpSender(SystemNet(), SystemClock(), gate=lambda: True, vet=lambda address, port: True)
    target = parse(url)
    lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in HEADERS.items())

    async def run(requests: int) -> None:
        finished = asyncio.Event()
        left_to_send, left_to_come = requests, requests

        def done(answer: SendResult) -> None:
            nonlocal left_to_come
            assert answer.status == 200, answer
            left_to_come -= 1
            if left_to_come == 0:
                finished.set()
            send()

        def send() -> None:
            nonlocal left_to_send
            if left_to_send:
                left_to_send -= 1
                sender.send(Request(target, lines, BODY, TIMEOUT), done)

        for _ in range(min(CONCURRENCY, requests)):
            send()
        await finished.wait()

    yield run
    await sender.close()


def _with_tasks(post: Callable[[], Awaitable[int]]) -> Run:
    async def run(requests: int) -> None:
        left = iter(range(requests))

        async def work() -> None:
            for _ in left:
                assert await post() == 200

        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENCY):
                group.create_task(work())

    return run


@asynccontextmanager
async def with_aiohttp(url: str) -> AsyncIterator[Run]:
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def post() -> int:
            async with session.post(url, data=BODY, headers=HEADERS, allow_redirects=False) as response:
                await response.read()
                return response.status

        yield _with_tasks(post)


@asynccontextmanager
async def with_httpx(url: str) -> AsyncIterator[Run]:
    limits = httpx.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
    async with httpx.AsyncClient(limits=limits, timeout=TIMEOUT) as client:

        async def post() -> int:
            return (await client.post(url, content=BODY, headers=HEADERS)).status_code

        yield _with_tasks(post)


@asynccontextmanager
async def with_pyreqwest(url: str) -> AsyncIterator[Run]:
    async with ClientBuilder().timeout(timedelta(seconds=TIMEOUT)).build() as client:

        async def post() -> int:
            response = await client.post(url).headers(HEADERS).body_bytes(BODY).build().send()
            await response.bytes()
            return response.status

        yield _with_tasks(post)


CLIENTS = {"hookline": ours, "pyreqwest": with_pyreqwest, "aiohttp": with_aiohttp, "httpx": with_httpx}
SLOWNESS = {"httpx": 40}  # fewer requests, or it would take most of the time


async def compare(url: str, *, requests: int, rounds: int) -> dict[str, float]:
    """Seconds of CPU per request: the median of the rounds."""
    cost: dict[str, list[float]] = {name: [] for name in CLIENTS}
    for _ in range(rounds):
        for name, client in CLIENTS.items():
            count = requests // SLOWNESS.get(name, 1)
            async with client(url) as run:
                await run(2 * CONCURRENCY)  # opens the connections
                before = time.process_time()
                await run(count)
                cost[name].append((time.process_time() - before) / count)
    return {name: median(values) for name, values in cost.items()}


def main() -> int:
    """Print the table; 0 if ours is cheap enough."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--quick", action="store_true", help="a few seconds, for tests")
    options.add_argument("--respond", action="store_true", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if arguments.respond:
            runner.run(respond())
            return 0
        with subprocess.Popen(
            [sys.executable, __file__, "--respond"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as receiver:
            assert receiver.stdin is not None
            assert receiver.stdout is not None
            url = f"http://127.0.0.1:{int(receiver.stdout.readline())}/hooks"
            requests, rounds = (2_000, 3) if arguments.quick else (20_000, 5)
            try:
                cost = runner.run(compare(url, requests=requests, rounds=rounds))
            finally:
                receiver.stdin.close()
    print(f"{'client':<12}{'µs CPU a request':>18}{'times ours':>12}")
    for name, seconds in cost.items():
        print(f"{name:<12}{seconds * 1e6:>18.1f}{seconds / cost['hookline']:>12.1f}")
    ratio = cost["aiohttp"] / cost["hookline"]
    # The short form runs beside other tests on a noisy machine: it fails only beyond a third of the figure.
    floor = FLOOR / 3 if arguments.quick else FLOOR
    if ratio < floor:
        print(
            f"hookline is only {ratio:.1f} times cheaper than aiohttp; {floor:.1f} is the floor",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
