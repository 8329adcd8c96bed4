"""What an operator has cancelled is not sent from memory as it was before."""

from typing import Any

import pytest

from hookline.app import Hookline
from hookline.model import State
from hookline.pipeline.lanes.lane import Lane
from hookline.store.contract import DeliveryFilter
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def a_lane(world: World, receiver: Receiver) -> tuple[Hookline, Lane]:
    """A lane that has sent an event and has nothing more to send."""
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await hooks.publish("a", 1)
    lanes = hooks.worker.ownership.lanes
    await world.until(lambda: lanes and next(iter(lanes.values())).is_idle)
    (lane,) = lanes.values()
    return hooks, lane


def cancelled_before_its_answer(world: World, hooks: Hookline, verb: str) -> None:
    """The next call of the verb is carried out; an operator cancels what is pending; then the answer comes."""
    right = getattr(hooks.store, verb)

    async def slow(*given: Any, **named: Any) -> Any:
        setattr(hooks.store, verb, right)
        answer = await right(*given, **named)
        pending = DeliveryFilter(state=State.PENDING)
        (delivery,) = await hooks.store.list_deliveries(pending, after=None, limit=10)
        await hooks.deliveries.cancel(delivery.id)
        # Where the lane is owned, it is read again before the answer.
        await world.until(lambda: not any(lane.behind for lane in hooks.worker.ownership.lanes.values()))
        return answer

    setattr(hooks.store, verb, slow)


async def assert_nothing_is_sent(world: World, receiver: Receiver, hooks: Hookline) -> None:
    await world.pass_until(hooks.publish("a", 2))
    await world.pass_until(hooks.worker.handover.wakes.flush())
    await world.stop(hooks)
    assert receiver.bodies() == [b"1"]


@pytest.mark.parametrize("verb", ["accept", "take_these"])
async def test_a_free_lane_does_not_send_it(world: World, receiver: Receiver, verb: str):
    hooks, lane = await a_lane(world, receiver)
    await hooks.worker.ownership.release([lane])
    cancelled_before_its_answer(world, hooks, verb)
    await assert_nothing_is_sent(world, receiver, hooks)


async def test_an_owned_lane_does_not_send_it(world: World, receiver: Receiver):
    hooks, _ = await a_lane(world, receiver)
    cancelled_before_its_answer(world, hooks, "accept")
    await assert_nothing_is_sent(world, receiver, hooks)
