"""A worker releases lanes that wait for its slots while other workers have free ones."""

import asyncio

import pytest

from hookline.app import Hookline
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

LANES = 9
SLOTS = 2


async def saturated(world: World, receiver: Receiver) -> Hookline:
    """A worker that owns proven lanes, each with a delivery, and whose slots are held by endpoints that hang."""
    hooks = await world.start(max_in_flight=SLOTS)
    for n in range(LANES):
        await world.pass_until(
            hooks.create_endpoint(url=receiver.url(f"/{n}"), events=["*"], timeout_ms=60_000)
        )
    await world.pass_until(hooks.publish("a", "proves them"))
    await world.until(lambda: hooks.worker.settler.delivered == LANES)
    for n in range(LANES):
        receiver.answers[f"/{n}"] = [Answer(hold=asyncio.Event())]
    await world.pass_until(hooks.publish("a", "hangs"))
    await world.until(lambda: hooks.worker.dispatcher.in_flight == SLOTS)
    assert len(hooks.worker.ownership.lanes) == LANES
    return hooks


def hanging(receiver: Receiver) -> list[str]:
    return sorted(request.path for request in receiver.requests if request.body == b'"hangs"')


async def pass_time(world: World, seconds: float) -> None:
    end = world.clock.now() + seconds
    await world.until(lambda: world.clock.now() >= end)


async def test_they_go_to_a_worker_with_free_slots_and_are_sent_once(shared_world: World, receiver: Receiver):
    first = await saturated(shared_world, receiver)
    second = await shared_world.start()
    await shared_world.until(lambda: len(hanging(receiver)) == LANES)
    assert hanging(receiver) == [f"/{n}" for n in range(LANES)]
    assert first.worker.dispatcher.in_flight == SLOTS
    assert second.worker.dispatcher.in_flight == LANES - SLOTS


@pytest.mark.parametrize("others", [[], [{"deliver": False}]], ids=["nobody", "one that only publishes"])
async def test_they_stay_while_nobody_has_room(shared_world: World, receiver: Receiver, others):
    first = await saturated(shared_world, receiver)
    for other in others:
        await shared_world.start(**other)
    await pass_time(shared_world, 8.0)
    assert len(first.worker.ownership.lanes) == LANES
    assert len(hanging(receiver)) == SLOTS
