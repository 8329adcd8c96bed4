"""What was committed reaches its lane from memory."""

import asyncio

import pytest

from hookline import failpoints
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


def only_lane(hooks):
    (lane,) = hooks.worker.ownership.lanes.values()
    return lane


async def test_a_lane_that_fell_behind_catches_up_although_events_keep_coming(
    world: World, receiver: Receiver
):
    """What is committed during a load is sent after it, and needs no load of its own."""
    world.step = 0.005  # the pulse must stay recent while the database works
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    first = await hooks.publish("order.paid", {"n": 1})
    await world.until_state(hooks, first.id, State.DELIVERED)
    load, calls, flow = hooks.store.load, [], asyncio.Event()

    async def load_and_publish(wants, *, known, now):
        calls.append(len(wants))
        if len(calls) > 1:
            await flow.wait()
        rows = await load(wants, known=known, now=now)
        if len(calls) == 1:
            await hooks.publish("order.paid", {"n": 2})
        return rows

    hooks.store.load = load_and_publish
    hooks.worker.handover._miss(only_lane(hooks))
    await world.until(lambda: len(receiver.requests) == 2)
    flow.set()
    assert [request.body for request in receiver.requests] == [b'{"n":1}', b'{"n":2}']


async def publish_five(world: World, hooks):
    """Five events in one commit."""
    await world.pass_until(hooks.accept([Draft("order.paid", b"%d" % n) for n in range(5)]))


@pytest.mark.parametrize("handed_over", range(3))
async def test_a_hand_over_that_is_interrupted_leaves_nothing_reserved(
    world: World, receiver: Receiver, handed_over: int
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    first = await hooks.publish("order.paid", "takes the lane")
    await world.until_state(hooks, first.id, State.DELIVERED)
    hand_over, calls = hooks.worker.handover.hand_over, []

    def interrupted(lane, delivery, *, at):
        calls.append(delivery)
        if len(calls) == handed_over + 1:
            assert not lane.is_strict
            assert len(lane.known) == 5
            raise MemoryError
        hand_over(lane, delivery, at=at)

    hooks.worker.handover.hand_over = interrupted
    await publish_five(world, hooks)
    await world.until(lambda: len(receiver.requests) == 6)
    await world.until(lambda: only_lane(hooks).is_idle)
    assert sorted(receiver.bodies()[1:]) == [b"0", b"1", b"2", b"3", b"4"]


async def test_what_is_committed_when_a_failpoint_ends_its_hand_over_is_sent(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    first = await hooks.publish("order.paid", "takes the lane")
    await world.until_state(hooks, first.id, State.DELIVERED)
    failpoints.plant("handover.before=error@1")
    try:
        await publish_five(world, hooks)
    finally:
        failpoints.plant("")
    await world.until(lambda: len(receiver.requests) == 6)
