"""Lanes spread when one worker holds them all."""

import asyncio

import pytest

from hookline.app import Hookline
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

LANES = 40
LEAST = LANES // 2 - 8  # a worker keeps a few more than its share (rules/fair_share.py)


async def holder_of_all(world: World, receiver: Receiver) -> Hookline:
    hooks = await world.start()
    for n in range(LANES):
        await world.pass_until(
            hooks.create_endpoint(url=receiver.url(f"/{n}"), events=["*"], timeout_ms=60_000)
        )
    await publish(world, hooks, 1)
    assert len(hooks.worker.ownership.lanes) == LANES
    return hooks


async def publish(world: World, hooks: Hookline, number: int) -> None:
    """Publish one event for all lanes, and wait until none of its deliveries is pending."""
    await world.pass_until(hooks.publish("a", number))

    async def is_delivered() -> bool:
        return (await hooks.store.counts()).get("delivered", 0) == LANES * number

    await world.until(is_delivered)


async def pass_time(world: World, seconds: float) -> None:
    end = world.clock.now() + seconds
    await world.until(lambda: world.clock.now() >= end)


def held(hooks: Hookline) -> int:
    return len(hooks.worker.ownership.lanes)


async def test_a_worker_that_comes_later_gets_its_share_and_each_delivery_is_made_once(
    shared_world: World, receiver: Receiver
):
    first = await holder_of_all(shared_world, receiver)
    second = await shared_world.start()
    for number in range(2, 300):  # a lane that moves from one to the other has no owner for a moment
        await publish(shared_world, first, number)
        await pass_time(shared_world, 0.5)
        assert held(first) + held(second) <= LANES
        if number >= 60 and LEAST <= held(second) <= LANES - LEAST:
            break
    assert LEAST <= held(second) <= LANES - LEAST
    assert len(receiver.requests) == LANES * number


async def test_a_lane_with_something_under_way_is_not_moved_and_goes_on(
    shared_world: World, receiver: Receiver
):
    first = await holder_of_all(shared_world, receiver)
    never = asyncio.Event()
    receiver.answer = lambda body: Answer(hold=never)
    await shared_world.pass_until(first.publish("a", "hangs"))
    await shared_world.until(lambda: first.worker.dispatcher.in_flight == LANES)
    second = await shared_world.start()
    await shared_world.until(lambda: bool(second.worker.ownership.elsewhere()))
    await pass_time(shared_world, 10.0)
    assert (held(first), held(second)) == (LANES, 0)
    receiver.answer = None
    await shared_world.pass_until(first.publish("a", "after"))
    await shared_world.until(lambda: receiver.bodies().count(b'"after"') == LANES)


async def test_what_nobody_takes_comes_back(shared_world: World, receiver: Receiver):
    first = await holder_of_all(shared_world, receiver)
    second = await shared_world.start()
    second.worker._taker.can_take = lambda: False  # type: ignore[method-assign]  # it says that it has room, and has not
    fewest = LANES
    for number in range(2, 60):
        await publish(shared_world, first, number)
        await pass_time(shared_world, 0.5)
        fewest = min(fewest, held(first))
    assert fewest < LANES
    assert (held(first), held(second)) == (LANES, 0)
    assert len(receiver.requests) == LANES * number
