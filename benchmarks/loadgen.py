"""Publishes events at a given pace.

A process of its own, in one of three paces:

- closed: every connection publishes again as soon as it is answered, which finds the most the system takes;
- open: publishes fall due at random (Poisson) at a fixed rate whatever the answers do, and an event's time is
  the one it was due at, so that a stall counts against every event that it held up;
- idle: evenly and far apart, an event's time being when it is written, to see the bare path.

At the end it writes when each event was accepted to a file (nanoseconds; 0: not answered, -1: refused) and a
summary to its output.
"""

import argparse
import asyncio
import contextlib
import gc
import random
import time
from array import array
from collections import deque
from pathlib import Path
from typing import cast

import httptools
import msgspec
import uvloop

from payload import ENDPOINTS, endpoint_of, event_type, payload_of

PACES = ("closed", "open", "idle")
REFUSED = -1
TICK = 0.001  # the finest the loop's timers go
PAUSE_AFTER_REFUSAL = 0.01
LAST_ANSWERS = 30.0  # how long to wait for the answers that are outstanding at the end

_EVENT = [b'{"type":"%b","payload":' % event_type(k).encode() for k in range(ENDPOINTS)]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What was published."""

    sent: int
    accepted: int
    refused: int
    unanswered: int
    lost: int  # connections that the server closed
    statuses: dict[int, int]  # of the answers that were not 202
    cpu: float  # seconds, over the process's whole life


class _Result(msgspec.Struct):
    error: msgspec.Raw | None = None


class _BatchAnswer(msgspec.Struct):
    results: list[_Result]


class Connection(asyncio.Protocol):
    """A keep-alive connection with at most one publish on its way."""

    def __init__(self, load: "Load") -> None:
        self._load = load
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._body = b""
        self.first = -1  # number of the first event on its way; -1: none is
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance

    def write(self, request: bytes, first: int) -> None:
        self.first = first
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        first, self.first = self.first, -1
        self._load.answered(self, first, self._parser.get_status_code(), body)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._load.lost(self)


class Load:
    """The publishes of one run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._host, self._port = "127.0.0.1", options.port
        self._pace, self._batch = options.pace, options.batch
        self._connections = options.connections
        self._start, self._stop = options.start, options.stop
        self._gap = 1e9 * self._batch / options.rate if options.rate else 0.0
        self._random = random.Random(1)
        self._due_at = float(self._start)
        self._waiting: deque[int] = deque()  # due, but no connection was free
        self._free: deque[Connection] = deque()
        self._open = self._open_at_end = 0
        self._on_their_way = 0
        self._ended = asyncio.Event()
        self._statuses: dict[int, int] = {}
        self.accepted_at = array("q")
        path = "/v1/events" if self._batch == 1 else "/v1/events/batch"
        self._head = (
            f"POST {path} HTTP/1.1\r\nhost: {self._host}:{self._port}\r\n"
            "content-type: application/json\r\ncontent-length: "
        ).encode()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(self._connections):
            _, connection = await loop.create_connection(lambda: Connection(self), self._host, self._port)
            self._free.append(connection)
            self._open += 1
        await asyncio.sleep(max(0, self._start - time.monotonic_ns()) / 1e9)
        if self._pace == "closed":
            for _ in range(self._connections):
                self._publish(self._free.popleft(), time.monotonic_ns())
        else:
            self._tick()
        await asyncio.sleep(max(0, self._stop - time.monotonic_ns()) / 1e9)
        self._end_if_done()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                await self._ended.wait()
        self._open_at_end = self._open

    def answered(self, connection: Connection, first: int, status: int, body: bytes) -> None:
        """The server answered the publish whose first event has this number."""
        now = time.monotonic_ns()
        self._on_their_way -= 1
        if status == 202:
            self.accepted_at[first] = now
            if self._batch > 1:
                results = msgspec.json.decode(body, type=_BatchAnswer).results
                for seq, result in enumerate(results, first):
                    self.accepted_at[seq] = now if result.error is None else REFUSED
        else:
            self._statuses[status] = self._statuses.get(status, 0) + 1
            for seq in range(first, first + self._batch):
                self.accepted_at[seq] = REFUSED
        if self._pace == "closed" and now < self._stop:
            if status == 202:
                self._publish(connection, now)
            else:
                asyncio.get_running_loop().call_later(PAUSE_AFTER_REFUSAL, self._again, connection)
        elif self._waiting:
            self._publish(connection, self._waiting.popleft())
        else:
            self._free.append(connection)
            if now >= self._stop:
                self._end_if_done()

    def lost(self, connection: Connection) -> None:
        """A connection is gone; a publish on its way stays unanswered, for it may have been accepted."""
        self._open -= 1
        if connection.first >= 0:
            self._on_their_way -= 1
        with contextlib.suppress(ValueError):
            self._free.remove(connection)
        if self._open == 0 or time.monotonic_ns() >= self._stop:
            self._end_if_done()

    def summary(self) -> Summary:
        refused, unanswered = self.accepted_at.count(REFUSED), self.accepted_at.count(0)
        return Summary(
            sent=len(self.accepted_at),
            accepted=len(self.accepted_at) - refused - unanswered,
            refused=refused,
            unanswered=unanswered,
            lost=self._connections - self._open_at_end,
            statuses=self._statuses,
            cpu=time.process_time(),
        )

    def _again(self, connection: Connection) -> None:
        now = time.monotonic_ns()
        if now < self._stop and not connection.is_lost:
            self._publish(connection, now)

    def _tick(self) -> None:
        now = time.monotonic_ns()
        while self._due_at <= now and self._due_at < self._stop:
            due_at = now if self._pace == "idle" else int(self._due_at)
            if self._free:
                self._publish(self._free.popleft(), due_at)
            else:
                self._waiting.append(due_at)
            self._due_at += self._gap if self._pace == "idle" else self._gap * self._random.expovariate(1.0)
        if self._due_at < self._stop:
            asyncio.get_running_loop().call_later(TICK, self._tick)
        else:
            self._end_if_done()

    def _publish(self, connection: Connection, at: int) -> None:
        first = len(self.accepted_at)
        self._on_their_way += 1
        if self._batch == 1:
            self.accepted_at.append(0)
            body = b"%b%b}" % (_EVENT[endpoint_of(first)], payload_of(first, at))
        else:
            numbers = range(first, first + self._batch)
            self.accepted_at.extend([0] * self._batch)
            events = b"},".join([_EVENT[endpoint_of(seq)] + payload_of(seq, at) for seq in numbers])
            body = b'{"events":[%b}]}' % events
        connection.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body), first)

    def _end_if_done(self) -> None:
        has_more = bool(self._waiting) or (self._pace != "closed" and self._due_at < self._stop)
        if self._open == 0 or (self._on_their_way == 0 and not has_more):
            self._ended.set()


async def generate(options: argparse.Namespace) -> None:
    load = Load(options)
    await load.run()
    with options.file.open("wb") as out:
        load.accepted_at.tofile(out)
    print(msgspec.json.encode(load.summary()).decode(), flush=True)


def options_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pace", choices=PACES, required=True)
    parser.add_argument(
        "--batch", type=int, default=1, help="events in one request; 1: the single-event call"
    )
    parser.add_argument("--rate", type=float, default=0.0, help="events per second, for open and idle")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--start", type=int, required=True, help="on the monotonic clock, in nanoseconds")
    parser.add_argument("--stop", type=int, required=True)
    parser.add_argument("--file", type=Path, required=True, help="gets the time each event was accepted")
    return parser


if __name__ == "__main__":
    gc.disable()  # nothing here makes cycles, and a pause would delay what is due
    uvloop.run(generate(options_parser().parse_args()))
