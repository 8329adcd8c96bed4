"""What other endpoints do does not change when a healthy one is sent to.

The small form of a fault with 10,000 dead endpoints, in real time. Attempts are counted, not seconds: how many of bad
endpoints begin while an event of the healthy one waits for its own. `benchmarks/isolation.py` measures seconds.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from hookline.app import Hookline
from hookline.config import Settings
from hookline.ids import read
from hookline.model import EndpointId
from hookline.pipeline.intake.drafts import Draft
from hookline.store.contract import DeliveryFilter
from tests.receiver import Receiver

pytestmark = pytest.mark.anyio

EVENTS = 10  # for each bad endpoint
SLOTS = 40
QUICK = {"schedule": [0, *[0.5] * 20], "jitter": "none"}


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@contextlib.asynccontextmanager
async def bad_receiver(kind: str) -> AsyncIterator[int]:
    """A port that hangs, drips its answer, or answers 200 just before the deadline."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, RuntimeError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            if kind == "slow":
                await asyncio.sleep(0.9)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            while kind == "drip":
                writer.write(b"H")
                await asyncio.sleep(0.2)
            if kind == "hang":
                await reader.read()  # until the sender gives up
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1_000)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await asyncio.sleep(0)


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port whose queue is full: a connection attempt gets no answer, as behind a firewall that drops."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            dialled = stack.enter_context(socket.socket())
            dialled.setblocking(False)
            dialled.connect_ex(server.getsockname())
        yield server.getsockname()[1]


class Measured(msgspec.Struct):
    """How a healthy endpoint's events waited for their first attempt, and what the others got."""

    before: list[float]  # seconds, sorted
    during: list[float]
    overtaken: list[int]  # for each event, the attempts of others that began while it waited for its first
    attempts: dict[str, list[int]]  # of each bad endpoint, by kind


async def measure(folder: Path, receiver: Receiver, *, each: int, slots: int, healthy: int) -> Measured:
    """Send to a healthy endpoint, first alone, then beside so many bad ones of each kind."""
    async with contextlib.AsyncExitStack() as stack:
        ports = {
            kind: await stack.enter_async_context(bad_receiver(kind)) for kind in ("hang", "drip", "slow")
        }
        ports["silent"] = stack.enter_context(silent_port())
        closed = stack.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))  # bound but not listening: it refuses, and nobody else gets the port
        ports["refused"] = closed.getsockname()[1]
        settings = Settings(dev=True, max_in_flight=slots, drain_s=5.0)
        hooks = await stack.enter_async_context(Hookline(f"sqlite:///{folder}/x.db", settings=settings))
        await hooks.create_endpoint(url=receiver.url("/healthy"), events=["healthy"])
        await waits(hooks, 20)
        before = await waits(hooks, healthy)
        urls = [(kind, f"http://127.0.0.1:{port}/{n}") for kind, port in ports.items() for n in range(each)]
        urls += [("dns", f"http://h{n}.does-not-resolve.invalid/") for n in range(each)]
        bad = [
            (
                kind,
                await hooks.create_endpoint(url=url, events=[f"bad.{kind}"], timeout_ms=1_000, retry=QUICK),
            )
            for kind, url in urls
        ]
        for _ in range(EVENTS):
            for kind in (*ports, "dns"):
                await hooks.publish_draft(Draft(f"bad.{kind}", b"{}"))
        during = await waits(hooks, healthy)
        attempts: dict[str, list[int]] = {}
        begun: list[float] = []
        for kind, endpoint in bad:
            found = await hooks.store.list_deliveries(
                DeliveryFilter(endpoint_id=EndpointId(read("endpoint", endpoint.id))),
                after=None,
                limit=EVENTS,
            )
            attempts.setdefault(kind, []).append(sum([delivery.attempts for delivery in found]))
            for delivery in found:
                if delivery.attempts:
                    begun += [attempt.at for attempt in await hooks.store.attempts(delivery.id)]
        overtaken = [sum(published < at < sent for at in begun) for published, sent in during]
        return Measured(seconds(before), seconds(during), overtaken, attempts)


async def waits(hooks: Hookline, number: int) -> list[tuple[float, float]]:
    """Publish to the healthy endpoint at a steady pace; when each event was published, and first sent."""
    events = []
    for n in range(number):
        events.append(await hooks.publish_draft(Draft("healthy", msgspec.json.encode(n))))
        await asyncio.sleep(0.03)
    found: list[tuple[float, float]] = []
    async with asyncio.timeout(300):
        for event in events:
            while True:
                (delivery,) = await hooks.store.list_deliveries(
                    DeliveryFilter(event_id=event.id), after=None, limit=1
                )
                if delivery.attempts:
                    break
                await asyncio.sleep(0.05)
            (attempt, *_) = await hooks.store.attempts(delivery.id)
            found.append((delivery.created_at, attempt.at))
    return found


def seconds(waited: list[tuple[float, float]]) -> list[float]:
    """How long each waited, sorted."""
    return sorted(sent - published for published, sent in waited)


def p99(waited: list[float]) -> float:
    return waited[-(len(waited) // 100) - 1]


async def test_dead_slow_and_dripping_endpoints_do_not_delay_a_healthy_one(
    tmp_path: Path, receiver: Receiver
):
    measured = await measure(tmp_path, receiver, each=30, slots=SLOTS, healthy=150)
    # Who waits in one queue with them is overtaken by hundreds; a slot may change hands once meanwhile.
    assert max(measured.overtaken) <= 2 * SLOTS
    for kind in ("hang", "drip", "silent", "refused", "dns"):
        assert max(measured.attempts[kind]) <= 5 + 5, f"{kind}: threshold and cap of attempts at most"
    for kind in ("hang", "drip", "slow", "silent", "refused"):
        assert sum(measured.attempts[kind]) > 0, f"{kind}: they had their turn too"
