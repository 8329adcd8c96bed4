"""What other endpoints do does not change how soon a healthy one is sent to.

The small form of a fault with 10,000 dead endpoints: all in real time, so the figures are ratios within one run
and a generous ceiling.
"""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from hookline import Hookline, Settings
from hookline.ids import read, show
from hookline.model import EndpointId
from hookline.pipeline.intake import Draft
from hookline.store.contract import DeliveryFilter
from tests.receiver import Receiver

pytestmark = pytest.mark.anyio

SLOTS = 40
EACH = 30  # endpoints of each kind
EVENTS = 10  # for each of them
QUICK = {"schedule": [0, *[0.5] * 20], "jitter": "none"}
FIGURE = 3  # times the specified figure is the ceiling in a test


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


async def waits(hooks: Hookline, number: int) -> list[float]:
    """Publish to the healthy endpoint at a steady pace; how long each event waited for its first attempt."""
    events = []
    for n in range(number):
        events.append(await hooks.publish_draft(Draft("healthy", msgspec.json.encode(n))))
        await asyncio.sleep(0.03)
    found: list[float] = []
    async with asyncio.timeout(60):
        for event in events:
            while True:
                (delivery,) = await hooks.store.list_deliveries(
                    DeliveryFilter(event_id=event.id), after=None, limit=1
                )
                if delivery.attempts:
                    break
                await asyncio.sleep(0.05)
            (attempt, *_) = await hooks.store.attempts(delivery.id)
            found.append(attempt.at - delivery.created_at)
    return sorted(found)


async def test_dead_slow_and_dripping_endpoints_do_not_delay_a_healthy_one(
    tmp_path: Path, receiver: Receiver
):
    async with contextlib.AsyncExitStack() as stack:
        ports = {
            kind: await stack.enter_async_context(bad_receiver(kind)) for kind in ("hang", "drip", "slow")
        }
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            ports["refused"] = closed.getsockname()[1]
        hooks = await stack.enter_async_context(
            Hookline(
                f"sqlite:///{tmp_path}/x.db", settings=Settings(dev=True, max_in_flight=SLOTS, drain_s=5.0)
            )
        )
        await hooks.create_endpoint(url=receiver.url("/healthy"), events=["healthy"])
        await waits(hooks, 20)
        before = await waits(hooks, 100)
        bad = {}
        for kind, port in ports.items():
            for n in range(EACH):
                endpoint = await hooks.create_endpoint(
                    url=f"http://127.0.0.1:{port}/{n}", events=["bad"], timeout_ms=1_000, retry=QUICK
                )
                bad[endpoint.id] = kind
        for n in range(EACH):
            endpoint = await hooks.create_endpoint(
                url=f"http://h{n}.does-not-resolve.invalid/", events=["bad"], timeout_ms=1_000, retry=QUICK
            )
            bad[endpoint.id] = "dns"
        for _ in range(EVENTS):
            await hooks.publish_draft(Draft("bad", b"{}"))
        during = await waits(hooks, 150)
        p99_before, p99_during = before[-2], during[-2]
        allowed = min(1.0, max(2 * p99_before, p99_before + 0.25))
        print(f"healthy p99 before {p99_before * 1e3:.1f} ms, during {p99_during * 1e3:.1f} ms")
        assert p99_during <= FIGURE * allowed
        assert during[-1] <= FIGURE * 2.0

        tried = Counter[str]()
        for id in bad:
            found = await hooks.store.list_deliveries(
                DeliveryFilter(endpoint_id=EndpointId(read("endpoint", id))), after=None, limit=EVENTS
            )
            attempts = sum([delivery.attempts for delivery in found])
            tried[bad[id]] += attempts
            if bad[id] != "slow":
                assert attempts <= 5 + 5, f"{show('endpoint', read('endpoint', id))} ({bad[id]}) was hammered"
        assert all(tried[kind] > 0 for kind in ("hang", "drip", "slow", "refused")), "and all had their turn"
