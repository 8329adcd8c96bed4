"""Does what was committed reach its lane from memory?"""

import asyncio

import pytest

from hookline.model import State
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


def only_lane(hooks):
    (lane,) = hooks.worker.holdings.lanes.values()
    return lane


async def test_a_lane_that_fell_behind_catches_up_although_events_keep_coming(
    world: World, receiver: Receiver
):
    """What is committed during a load is sent after it, and needs no load of its own."""
    world.step = 0.005  # the pulse must stay young while the database works
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    first = await hooks.publish("order.paid", {"n": 1})
    await world.until_state(hooks, first.id, State.DELIVERED)
    load, calls, gate = hooks.store.load, [], asyncio.Event()

    async def load_and_publish(wants, *, known, now):
        calls.append(len(wants))
        if len(calls) > 1:
            await gate.wait()
        rows = await load(wants, known=known, now=now)
        if len(calls) == 1:
            await hooks.publish("order.paid", {"n": 2})
        return rows

    hooks.store.load = load_and_publish
    hooks.worker.handover._miss(only_lane(hooks))
    await world.until(lambda: len(receiver.requests) == 2)
    gate.set()
    assert [request.body for request in receiver.requests] == [b'{"n":1}', b'{"n":2}']
