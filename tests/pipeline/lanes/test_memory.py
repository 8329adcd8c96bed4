"""Large payloads are limited by their bytes, and one endpoint's hang holds up no other."""

import asyncio

import pytest

from hookline.ids import read
from hookline.model import EndpointId, State
from hookline.pipeline.lanes.payload_memory import PayloadMemory
from hookline.rules.memory import BUDGET_BYTES
from hookline.rules.slots import LaneHealth
from hookline.store.contract import DeliveryFilter
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

KIB = 1 << 10
MIB = 1 << 20


def large(size: int) -> bytes:
    return b'"%b"' % (b"x" * (size - 2))


def memory_of(hooks) -> PayloadMemory:
    return hooks.worker.dispatcher._memory


async def attempts_of(hooks, endpoint: str) -> int:
    chosen = DeliveryFilter(endpoint_id=EndpointId(read("endpoint", endpoint)))
    found = await hooks.store.list_deliveries(chosen, after=None, limit=10)
    return sum([each.attempts for each in found])


@pytest.mark.parametrize("size", [64 * KIB, MIB])
async def test_hanging_endpoints_do_not_delay_the_large_events_of_a_healthy_one(
    world: World, receiver: Receiver, size: int
):
    hooks = await world.start(payload_limit_bytes=2 * MIB)
    never = asyncio.Event()
    await hooks.create_endpoint(url=receiver.url("/fine"), events=["fine"])
    await hooks.publish("fine", {})
    await world.until(lambda: receiver.bodies("/fine"))
    hanging = []
    for n in range(90):
        receiver.answers[f"/hang/{n}"] = [Answer(hold=never)]
        made = await hooks.create_endpoint(
            url=receiver.url(f"/hang/{n}"), events=["hang"], timeout_ms=60_000, account=f"a{n % 3}"
        )
        hanging.append(made.id)
    for n in range(3):
        await world.pass_until(hooks.publish("hang", large(size), account=f"a{n}"))
    most = min(90, BUDGET_BYTES // 2 // size)  # untried lanes may use half
    await world.until(lambda: receiver.open_requests == most)
    for _ in range(5):
        await world.pass_until(hooks.publish("fine", large(size)))
    await world.until(lambda: len(receiver.bodies("/fine")) == 6)
    ended = [await world.pass_until(attempts_of(hooks, id)) for id in hanging]
    assert ended == [0] * 90, "it came while the others still hung"
    assert memory_of(hooks).held <= BUDGET_BYTES
    never.set()
    await world.until(lambda: len(receiver.requests) == 96)
    await world.until(lambda: memory_of(hooks).held == 0)


async def test_lanes_that_wait_for_memory_hold_no_slot_and_go_in_order(world: World, receiver: Receiver):
    hooks = await world.start()
    hold = asyncio.Event()
    memory_of(hooks)._budget = 64 * KIB  # one payload takes half of it
    for n in range(5):
        receiver.answers[f"/{n}"] = [Answer(hold=hold)]
        await hooks.create_endpoint(url=receiver.url(f"/{n}"), events=[f"to.{n}"], timeout_ms=60_000)
    for n in range(5):
        await world.pass_until(hooks.publish(f"to.{n}", large(32 * KIB)))
        await world.until(lambda: len(hooks.worker.ownership.lanes) == n + 1)  # noqa: B023
    line = memory_of(hooks)._lines[LaneHealth.UNTRIED].line
    await world.until(lambda: len(line) == 4 and receiver.open_requests == 1)
    assert hooks.worker.dispatcher.in_flight == 1
    assert len(hooks.worker._deliverer._fetches) == 0
    hold.set()
    await world.until(lambda: len(receiver.requests) == 5)
    await world.until(lambda: memory_of(hooks).held == 0 and hooks.worker.dispatcher.in_flight == 0)
    assert receiver.most_open_requests <= 2, "a proven lane may use all of it, an untried one half"


async def test_a_payload_larger_than_the_whole_budget_is_delivered(world: World, receiver: Receiver):
    hooks = await world.start()
    memory_of(hooks)._budget = 32 * KIB
    await hooks.create_endpoint(url=receiver.url("/a"), events=["*"])
    await hooks.create_endpoint(url=receiver.url("/b"), events=["*"], ordering="strict")
    bodies = [large(size * KIB) for size in (100, 200, 17, 300)]
    for body in bodies:
        await world.pass_until(hooks.publish("order.paid", body))
    await world.until(lambda: len(receiver.requests) == 8)
    assert sorted(receiver.bodies("/a")) == sorted(bodies)
    assert receiver.bodies("/b") == bodies
    await world.until(lambda: memory_of(hooks).held == 0)


async def test_what_waits_for_memory_is_not_lost_when_the_endpoint_changes(world: World, receiver: Receiver):
    hooks = await world.start()
    hold = asyncio.Event()
    memory_of(hooks)._budget = 64 * KIB
    receiver.answers["/0"] = [Answer(hold=hold)]
    await hooks.create_endpoint(url=receiver.url("/0"), events=["to.0"], timeout_ms=60_000)
    waits = await hooks.create_endpoint(url=receiver.url("/1"), events=["to.1"])
    await world.pass_until(hooks.publish("to.0", large(32 * KIB)))
    await world.until(lambda: receiver.open_requests == 1)
    event = await world.pass_until(hooks.publish("to.1", large(32 * KIB)))
    await world.until(lambda: memory_of(hooks)._lines[LaneHealth.UNTRIED].line)
    await world.pass_until(hooks.update_endpoint(waits.id, url=receiver.url("/moved")))
    hold.set()
    await world.until_state(hooks, event.id, State.DELIVERED)
    assert receiver.bodies("/moved") == [large(32 * KIB)]
    await world.until(lambda: memory_of(hooks).held == 0)
