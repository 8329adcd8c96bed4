"""A fixed load on a whole server in this process, and what it costs in counts.

Everything is real: the API's sockets, the store, the receiver's sockets. Only time stands still unless the load moves
it, so that each round is the same: its publishes share one commit, and its answers one settle. The counts depend on
the code alone, not on the machine's speed.
"""

import asyncio
import socket
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, NamedTuple

import hookline
from hookline.api.app import Api
from hookline.api.server import ApiServer
from hookline.app import Hookline
from hookline.config import Settings
from hookline.testing.clock import ManualClock

SOURCE = str(Path(hookline.__file__).parent)
NOT_COUNTED = f"{SOURCE}/testing/"
ENDPOINTS = 10
AT_ONCE = 100  # publishes in a round, each on a connection of its own
PAYLOAD = b'{"order":42,"note":"' + b"x" * 500 + b'"}'
STEP = 0.01  # seconds of the load's own time per real millisecond of the warm-up: nothing times out
PAUSE = 0.025  # seconds of the load's own time between two rounds
REAL_SECONDS = 60.0


class Calls:
    """Counts calls of hookline's own Python functions, and SQLite's statements."""

    def __init__(self) -> None:
        self.python = 0
        self.statements = 0
        self.is_counting = False
        self._is_ours: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self.is_counting:
            return
        if event == "call":
            code = frame.f_code
            ours = self._is_ours.get(code)
            if ours is None:
                path = code.co_filename
                ours = path.startswith(SOURCE) and not path.startswith(NOT_COUNTED)
                self._is_ours[code] = ours
            self.python += ours
        elif event == "c_call" and argument.__name__ in ("execute", "executemany"):
            self.statements += 1


@contextmanager
def counting() -> Iterator[Calls]:
    """Count in this thread and in those that are started meanwhile."""
    calls, before = Calls(), sys.getprofile()
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


class _Receiver(asyncio.Protocol):
    """One connection; answers every request with 200."""

    def __init__(self, answered: Counter[str]) -> None:
        self._answered = answered

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._seen = b""

    def data_received(self, data: bytes) -> None:
        self._seen += data
        while self._seen:
            head, blank, rest = self._seen.partition(b"\r\n\r\n")
            if not blank:
                return
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(rest) < length:
                return
            self._seen = rest[length:]
            self._answered["requests"] += 1
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")


class _Publisher(asyncio.Protocol):
    """Sends one request and waits for its answer, again and again."""

    def __init__(self) -> None:
        self.accepted = 0
        self._seen = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if self._seen.endswith(b"}"):
            assert self._seen.startswith(b"HTTP/1.1 202 "), self._seen
            self.accepted += 1
            self._seen = b""


class Load(NamedTuple):
    """A server under a load that the test moves on."""

    hooks: Hookline
    clock: ManualClock
    publishers: list[_Publisher]
    answered: Counter[str]  # by the receiver

    async def rounds(self, number: int) -> None:
        """Run so many rounds; each ends when everything that it published is settled."""
        for _ in range(number):
            await self._round()

    async def warm_up(self, rounds: int) -> None:
        """Run until every lane is held and gets its deliveries from memory, and the pulse is recent."""
        warming = asyncio.create_task(self.rounds(rounds))
        async with asyncio.timeout(REAL_SECONDS):
            while not (warming.done() and self._is_steady()):
                await self.clock.tick(STEP)
        await warming

    def _is_steady(self) -> bool:
        lanes = self.hooks.worker.ownership.lanes.values()
        return (
            self.hooks.is_ready
            and len(lanes) == ENDPOINTS
            and all(not lane.behind and lane.is_idle for lane in lanes)
        )

    def _is_under_way(self, delivered: int) -> bool:
        return self.answered["requests"] < delivered or self.hooks.worker.dispatcher.in_flight > 0

    async def _round(self) -> None:
        settler = self.hooks.worker.settler
        delivered = settler.delivered + len(self.publishers)
        accepted = self.publishers[0].accepted + 1
        for index, publisher in enumerate(self.publishers):
            publisher.transport.write(_request(index % ENDPOINTS))
        async with asyncio.timeout(REAL_SECONDS):
            while any(each.accepted < accepted for each in self.publishers):  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.001)
            # In the warm-up lanes are only being taken; later everything is under way by now.
            while settler.delivered < delivered:
                while self._is_under_way(delivered):  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.001)
                await settler.flush()
            self.clock.advance(PAUSE)


@asynccontextmanager
async def loaded(database: str, *, warm_up: int) -> AsyncIterator[Load]:
    """A server on the database, warmed up: every endpoint is proven, every connection open."""
    loop, clock = asyncio.get_running_loop(), ManualClock()
    answered: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        receiver = await loop.create_server(lambda: _Receiver(answered), "127.0.0.1", 0)
        stack.callback(receiver.close)
        port = receiver.sockets[0].getsockname()[1]
        # No notifications: there is no other process.
        hooks = Hookline(database, settings=Settings(dev=True, notify=False), clock=clock, rng=Random(1))
        await hooks.store.migrate()
        await hooks.start()
        stack.push_async_callback(lambda: clock.pass_until(hooks.stop()))
        for index in range(ENDPOINTS):
            await hooks.create_endpoint(
                url=f"http://127.0.0.1:{port}/{index}", events=[f"cost.e{index}"], max_in_flight=50
            )
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        server = ApiServer(Api(hooks), clock)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stack.push_async_callback(lambda: serving)
        stack.callback(server.leave)
        await server.is_listening.wait()
        publishers = []
        for _ in range(AT_ONCE):
            transport, publisher = await loop.create_connection(_Publisher, *listener.getsockname())
            stack.callback(transport.close)
            publishers.append(publisher)
        load = Load(hooks, clock, publishers, answered)
        await load.warm_up(warm_up)
        yield load


def _request(endpoint: int) -> bytes:
    body = b'{"type":"cost.e%d","payload":%b}' % (endpoint, PAYLOAD)
    return (
        b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )
