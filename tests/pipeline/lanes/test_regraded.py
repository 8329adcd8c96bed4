"""A lane that answers well waits in no line of those that were not tried yet."""

import asyncio

import pytest

from hookline.rules.slots import LaneHealth
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

SLOTS = 8  # the untried may hold as many deliveries in memory, and one of them half of that


async def test_a_lane_that_waits_for_buffers_gets_those_of_its_new_class(world: World, receiver: Receiver):
    hooks = await world.start(max_in_flight=SLOTS)
    answer, never = asyncio.Event(), asyncio.Event()
    receiver.answers["/good"] = [Answer(hold=answer), Answer()]
    await hooks.create_endpoint(url=receiver.url("/good"), events=["good"], timeout_ms=60_000)
    await world.pass_until(hooks.publish("good", 0))
    await world.until(lambda: receiver.bodies("/good"))
    (lane,) = hooks.worker.ownership.lanes.values()
    buffers, lines = hooks.worker.ownership.buffers, hooks.worker._loader._lines
    for n in range(3):
        receiver.answers[f"/hangs/{n}"] = [Answer(hold=never)]
        await hooks.create_endpoint(url=receiver.url(f"/hangs/{n}"), events=["hangs"], timeout_ms=60_000)
    for n in range(SLOTS):
        await world.pass_until(hooks.publish("hangs", n))
    await world.until(lambda: buffers.room(LaneHealth.UNTRIED) == 0 and lines[LaneHealth.UNTRIED])
    for n in range(1, 5):
        await world.pass_until(hooks.publish("good", n))
    await world.until(lambda: lane in lines[LaneHealth.UNTRIED])
    answer.set()
    await world.until(lambda: len(receiver.bodies("/good")) == 5)
    assert buffers.room(LaneHealth.UNTRIED) == 0, "the others still hold theirs"
    assert not lane.is_lost, "it had nothing to send for so long that it was released"
    never.set()
