"""One host gets no more than its share, and nobody else waits for it."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator

import pytest

from hookline.app import Hookline
from hookline.config import Settings
from hookline.ids import delivery_of, read
from hookline.model import DeliveryId, EndpointId, EventId
from hookline.pipeline.catalogue.host_limits import Hosts
from hookline.reports.queries import Reports
from hookline.reports.views import DeliveryReport
from tests.receiver import Answer, Receiver

pytestmark = pytest.mark.anyio

CEILING_S = 180.0  # for a machine that is busy with other things


@contextlib.asynccontextmanager
async def running(database: str, *, cap: int, slots: int = 100) -> AsyncIterator[Hookline]:
    hooks = Hookline(database, settings=Settings(dev=True, max_in_flight=slots, drain_s=5.0))
    # In development mode no address has a cap; here 127.0.0.1 has one like any other.
    hooks._catalogue._hosts = Hosts(cap, is_allowed=lambda address: False)
    async with hooks:
        yield hooks


async def crowd(hooks: Hookline, receiver: Receiver, lanes: int, **fields: object) -> list[str]:
    """So many endpoints on one host, of so many accounts; their events are of the type `crowd`."""
    made = [
        await hooks.create_endpoint(
            url=receiver.url(f"/{n}"), events=["crowd"], account=f"a{n}", timeout_ms=60_000, **fields
        )
        for n in range(lanes)
    ]
    return [endpoint.id for endpoint in made]


async def publish(hooks: Hookline, lanes: int, events: int) -> None:
    for _ in range(events):
        for n in range(lanes):
            await hooks.publish("crowd", {"n": n}, account=f"a{n}")


async def test_all_endpoints_of_a_host_share_its_cap_and_all_get_theirs(database, receiver):
    hold = asyncio.Event()
    receiver.answer = lambda body: Answer(hold=hold)
    async with running(database, cap=3) as hooks:
        await crowd(hooks, receiver, 20)
        await publish(hooks, 20, 5)
        await receiver.wait_for_requests(3, seconds=CEILING_S)
        hold.set()
        await receiver.wait_for_requests(100, seconds=CEILING_S)
        assert receiver.most_open_requests == 3
        assert sorted(r.path for r in receiver.requests) == sorted(
            f"/{n}" for n in range(20) for _ in range(5)
        )


async def test_lanes_of_a_crowded_host_take_turns(database, receiver):
    hold = asyncio.Event()
    receiver.answer = lambda body: Answer(hold=hold)
    async with running(database, cap=1) as hooks:
        await crowd(hooks, receiver, 4)
        await publish(hooks, 4, 10)
        await receiver.wait_for_requests(1, seconds=CEILING_S)
        hold.set()
        await receiver.wait_for_requests(40, seconds=CEILING_S)
        assert receiver.most_open_requests == 1
        for n in range(4):  # each had at least two of the first twenty
            assert [r.path for r in receiver.requests[:20]].count(f"/{n}") >= 2


async def test_a_crowded_host_holds_up_nobody_else(database, receiver):
    """It takes neither slots nor buffers: there are few of both, and more deliveries for the host than either."""
    hold = asyncio.Event()
    receiver.answers["/other"] = [Answer()]
    for n in range(20):
        receiver.answers[f"/{n}"] = [Answer(hold=hold)]
    async with running(database, cap=3, slots=20) as hooks:
        await crowd(hooks, receiver, 20)
        other = receiver.url("/other").replace("127.0.0.1", "localhost")  # another host by its name
        made = await hooks.create_endpoint(url=other, events=["other"])
        await publish(hooks, 20, 10)
        await receiver.wait_for(lambda: receiver.open_requests == 3, seconds=CEILING_S)
        await hooks.publish("other", {})
        await receiver.wait_for(lambda: receiver.bodies("/other"), seconds=CEILING_S)
        lane = hooks.worker.ownership.lanes[EndpointId(read("endpoint", made.id))]
        for _ in range(49):
            await hooks.publish("other", {})
        await receiver.wait_for(lambda: len(receiver.bodies("/other")) == 50, seconds=CEILING_S)
        assert receiver.open_requests - 3 <= 0
        assert not lane.is_lost, "it had nothing to send for so long that it was released"
        hold.set()
        await receiver.wait_for_requests(250, seconds=CEILING_S)


async def shown(hooks: Hookline, event: str) -> DeliveryReport:
    delivery = await hooks.store.delivery(DeliveryId(delivery_of(EventId(read("event", event)), 0)))
    assert delivery is not None
    reports = Reports(hooks.store, hooks.owners, shown=float, default_retry="patient")
    [report] = await reports.deliveries([delivery], now=hooks.clock.now())
    return report


async def test_what_waits_for_its_host_waits_for_a_slot(database, receiver):
    hold = asyncio.Event()
    receiver.answer = lambda body: Answer(hold=hold)
    async with running(database, cap=1) as hooks:
        await crowd(hooks, receiver, 2)
        await hooks.publish("crowd", 1, account="a0")
        await receiver.wait_for_requests(1, seconds=CEILING_S)
        waits = await hooks.publish("crowd", 2, account="a1")
        async with asyncio.timeout(CEILING_S):
            while not hooks.worker.dispatcher._crowded:  # noqa: ASYNC110 - nothing tells when a lane is parked
                await asyncio.sleep(0.01)
        assert (await shown(hooks, waits.id)).waiting_for == "slot"
        hold.set()
        await receiver.wait_for_requests(2, seconds=CEILING_S)


async def test_an_endpoint_that_moves_away_waits_no_longer(database, receiver):
    hold = asyncio.Event()
    receiver.answers["/0"] = [Answer(hold=hold)]
    async with running(database, cap=1) as hooks:
        [_, moving] = await crowd(hooks, receiver, 2)
        await hooks.publish("crowd", 1, account="a0")
        await receiver.wait_for_requests(1, seconds=CEILING_S)
        await hooks.publish("crowd", 2, account="a1")
        await hooks.update_endpoint(moving, url=receiver.url("/moved").replace("127.0.0.1", "localhost"))
        await receiver.wait_for(lambda: receiver.bodies("/moved"), seconds=CEILING_S)
        hold.set()


async def test_strict_lanes_keep_their_order_at_a_crowded_host(database, receiver):
    async with running(database, cap=2) as hooks:
        await crowd(hooks, receiver, 5, ordering="strict")
        for number in range(6):
            for n in range(5):
                await hooks.publish("crowd", number, account=f"a{n}")
        await receiver.wait_for_requests(30, seconds=CEILING_S)
        assert receiver.most_open_requests <= 2
        for n in range(5):
            assert receiver.bodies(f"/{n}") == [b"%d" % number for number in range(6)]


def test_a_host_has_a_cap_unless_it_lies_in_a_network_that_was_allowed():
    hosts = Hosts(100, is_allowed=lambda address: address.startswith("10."))
    assert hosts.of("10.0.0.1") is None
    public, inside = hosts.of("hooks.example.com"), hosts.of("hooks.internal")
    assert public is not None
    assert inside is not None
    assert hosts.of("hooks.example.com") is public
    assert (public.cap, inside.cap) == (100, 100)
    hosts.reached("hooks.example.com", "192.0.2.1")
    hosts.reached("hooks.internal", "10.0.0.2")
    hosts.reached("never.heard.of", "10.0.0.2")
    assert (public.cap, inside.cap) == (100, math.inf)
    hosts.reached("hooks.internal", "192.0.2.1")
    assert inside.cap == 100


async def test_what_redirects_lead_to_a_host_counts_there(database, receiver):
    hold = asyncio.Event()
    lanes = 10
    for n in range(lanes):
        location = f"http://localhost:{receiver.port}/victim"
        receiver.answers[f"/{n}"] = [Answer(307, headers={"location": location})]
    receiver.answers["/victim"] = [Answer(hold=hold)]
    async with running(database, cap=3) as hooks:
        # The redirecting hosts are many and have room; here they are one without a cap.
        hosts = hooks._catalogue._hosts = Hosts(3, is_allowed=lambda address: address == "127.0.0.1")
        await crowd(hooks, receiver, lanes, max_redirects=1)
        await publish(hooks, lanes, 1)
        victim = hosts.of("localhost")
        waiting = hooks.worker.events._unsent
        await receiver.wait_for(lambda: len(waiting) == lanes - 3, seconds=CEILING_S)
        assert len(receiver.bodies("/victim")) == 3
        # As long as the host is full, pulses do not ask those again that redirect to it.
        async with asyncio.timeout(CEILING_S):
            while True:
                asked = len(receiver.requests)
                for _ in range(20):
                    await hooks._heartbeat.look()
                    await asyncio.sleep(0.001)
                if len(receiver.requests) == asked:
                    break
        assert len(receiver.bodies("/victim")) == 3
        hold.set()
        await receiver.wait_for(lambda: len(receiver.bodies("/victim")) == lanes, seconds=CEILING_S)
    assert victim.in_flight == 0
