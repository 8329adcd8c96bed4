"""Accepting leaves room for delivering."""

import asyncio

import pytest

from hookline.app import Hookline
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft
from hookline.pipeline.lanes.lane import Lane
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

LONG_TURN = 1e9  # seconds: whatever answers, the loop took longer


async def a_lane(world: World, hooks: Hookline, receiver: Receiver, type: str = "order.paid") -> Lane:
    """A lane that has delivered before, and whose next answers are held back."""
    before = set(hooks.worker.ownership.lanes)
    await hooks.create_endpoint(url=receiver.url(f"/{type}"), events=[type], max_in_flight=5)
    first = await world.pass_until(hooks.publish(type, {"n": 0}))
    await world.until_state(hooks, first.id, State.DELIVERED)
    (id,) = set(hooks.worker.ownership.lanes) - before
    lane = hooks.worker.ownership.lanes[id]
    await world.until(lambda: not lane.behind and lane.is_idle)
    return lane


def hold_answers(receiver: Receiver, type: str = "order.paid") -> asyncio.Event:
    flow = asyncio.Event()
    receiver.answers[f"/{type}"] = [Answer(hold=flow)]
    return flow


def publish(hooks: Hookline, count: int, type: str = "order.paid") -> list[asyncio.Future]:
    return [asyncio.ensure_future(hooks.accept([Draft(type, b"%d" % n)])) for n in range(count)]


async def test_events_for_a_lane_that_waits_for_the_loop_are_stored_as_it_gets_room(
    world: World, receiver: Receiver
):
    world.step = 0.001  # nothing times out
    hooks = await world.start()
    lane = await a_lane(world, hooks, receiver)
    flow = hold_answers(receiver)
    hooks.worker.admission.turn = LONG_TURN
    published = publish(hooks, 200)
    await world.until(lambda: sum(each.done() for each in published) == lane.capacity)
    for _ in range(20):
        await world.tick()
    assert sum(each.done() for each in published) == lane.capacity
    assert not lane.behind, "so that nothing has to be read back"
    flow.set()
    await world.pass_until(asyncio.gather(*published))
    await world.until(lambda: len(receiver.requests) == 201)


async def test_a_lane_that_waits_for_its_receiver_holds_nobody_up(world: World, receiver: Receiver):
    hooks = await world.start()
    await a_lane(world, hooks, receiver)
    flow = hold_answers(receiver)
    hooks.worker.admission.turn = 0.0  # with a step of the test's time in it, it was a long one
    async with asyncio.timeout(60):  # the test's time stands still: nobody waits for it
        await asyncio.gather(*publish(hooks, 200))
    flow.set()
    await world.until(lambda: len(receiver.requests) == 201)


async def test_those_that_wait_for_a_lane_are_overtaken_by_events_for_another(
    world: World, receiver: Receiver
):
    world.step = 0.001
    hooks = await world.start()
    lane = await a_lane(world, hooks, receiver)
    await a_lane(world, hooks, receiver, "order.sent")
    flow = hold_answers(receiver)
    hooks.worker.admission.turn = LONG_TURN
    waiting = publish(hooks, 200)
    await world.until(lambda: sum(each.done() for each in waiting) == lane.capacity)
    async with asyncio.timeout(60):
        await asyncio.gather(*publish(hooks, 10, "order.sent"))
    assert sum(each.done() for each in waiting) == lane.capacity
    flow.set()
    await world.pass_until(asyncio.gather(*waiting))


async def test_nobody_waits_for_a_lane_longer_than_his_patience(world: World, receiver: Receiver):
    hooks = await world.start()
    lane = await a_lane(world, hooks, receiver)
    flow = hold_answers(receiver)
    hooks.worker.admission.turn = LONG_TURN
    published = publish(hooks, 200)
    await world.pass_until(asyncio.gather(*published))
    assert lane.behind
    flow.set()
    await world.until(lambda: len(receiver.requests) == 201)


async def test_a_batch_that_waits_for_a_lane_keeps_its_order(world: World, receiver: Receiver):
    world.step = 0.001
    hooks = await world.start()
    await a_lane(world, hooks, receiver)
    hooks.worker.admission.turn = LONG_TURN
    accept, stored = hooks.store.accept, []

    async def watched(batch, *, catalogue, now):
        stored.append([int(each.event.payload) for each in batch])
        return await accept(batch, catalogue=catalogue, now=now)

    hooks.store.accept = watched
    await world.pass_until(hooks.accept([Draft("order.paid", b"%d" % n) for n in range(200)]))
    assert [n for batch in stored for n in batch] == list(range(200))
    assert max(map(len, stored)) <= 64
    await world.until(lambda: len(receiver.requests) == 201)


async def test_a_lane_that_is_behind_is_given_three_quarters_of_what_it_sends(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    lane = await a_lane(world, hooks, receiver)
    admission = hooks.worker.admission
    admission.turn = LONG_TURN
    assert admission.room(lane) == lane.capacity
    lane.behind = True
    assert admission.room(lane) == 0
    lane.sends += 8
    assert admission.room(lane) == 6
    lane.sends += 10_000
    assert admission.room(lane) == lane.capacity, "what is saved up has an end"
    admission.turn = 0.0
    assert admission.room(lane) is None, "it waits for its receiver"


async def test_a_process_that_leaves_waits_for_no_lane(world: World, receiver: Receiver):
    world.step = 0.001
    hooks = await world.start()
    lane = await a_lane(world, hooks, receiver)
    flow = hold_answers(receiver)
    hooks.worker.admission.turn = LONG_TURN
    published = publish(hooks, 200)
    await world.until(lambda: sum(each.done() for each in published) == lane.capacity)
    stopping = asyncio.ensure_future(world.stop(hooks))
    await world.until(lambda: all(each.done() for each in published))
    flow.set()
    assert await world.pass_until(stopping)
