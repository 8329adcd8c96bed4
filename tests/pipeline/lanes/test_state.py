"""An owned lane follows the tables of its state, and answers by them what may be done with it."""

import copy
from collections.abc import Callable

import pytest

from hookline.model import Attempt, AttemptId, DeliveryId, Outcome, State
from hookline.pipeline.lanes.lane import Lane
from hookline.rules.lane_state import MODES, RECOVERIES, Mode, ModeStep, Recovery, RecoveryStep
from hookline.store.contract import Settlement
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def a_lane(world: World, receiver: Receiver) -> Lane:
    """A lane that is owned by nobody else: its worker has forgotten it, so that the test may do with it what it likes."""
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    event = await hooks.publish("a", 0)
    await world.until_state(hooks, event.id, State.DELIVERED)
    (lane,) = hooks.worker.ownership.lanes.values()
    await world.until(lambda: not lane.unsettled)
    del hooks.worker.ownership.lanes[lane.endpoint_id]
    return lane


def gone(lane: Lane, *, asked: float) -> Settlement:
    """The end of an attempt that was answered 410, for the version of the endpoint that was asked."""
    attempt = Attempt(
        id=AttemptId(bytes(16)),
        delivery_id=DeliveryId(bytes(16)),
        number=1,
        replays=0,
        at=0.0,
        outcome=Outcome.GONE,
        duration=0.0,
    )
    return Settlement(attempt, lane.endpoint_id, lane.epoch, State.DEAD, 0.0, gone=asked)


def change(lane: Lane) -> None:
    """The endpoint as an operator's change leaves it: prepared anew."""
    assert lane.prepared is not None
    lane.follow(copy.copy(lane.prepared))


STEPS: dict[ModeStep, Callable[[Lane], None]] = {
    ModeStep.RELEASE: Lane.begin_release,
    ModeStep.KEEP: Lane.keep,
    ModeStep.STOP: lambda lane: lane._step(ModeStep.STOP),
    ModeStep.CHANGE: change,
    ModeStep.LOSE: Lane.lose,
}


async def test_every_step_leads_where_the_table_says(world: World, receiver: Receiver):
    lane = await a_lane(world, receiver)
    for mode in Mode:
        for step, take in STEPS.items():
            lane.mode = mode
            take(lane)
            assert lane.mode is MODES.get((mode, step), mode), (mode, step)
            assert lane.is_held == (lane.mode is Mode.OPEN)
            assert lane.takes_fresh == lane.is_held


async def test_care_leads_where_the_table_says(world: World, receiver: Receiver):
    lane = await a_lane(world, receiver)
    cares: dict[RecoveryStep, Callable[[Lane], None]] = {
        RecoveryStep.BEGIN: Lane.begin_care,
        RecoveryStep.INTERRUPT: Lane.begin_again,
        RecoveryStep.FINISH: Lane.end_care,
    }
    for recovery in Recovery:
        for care, take in cares.items():
            lane.recovery = recovery
            lane.reading.doubt(0)  # all suspects are read
            take(lane)
            assert lane.recovery is RECOVERIES.get((recovery, care), recovery), (recovery, care)
            assert lane.takes_fresh == (lane.recovery is Recovery.NONE)
            assert lane.is_movable == (lane.recovery is Recovery.NONE)


async def test_an_endpoint_that_is_gone_is_left_alone_until_it_is_changed(world: World, receiver: Receiver):
    lane = await a_lane(world, receiver)
    assert lane.prepared is not None
    version = lane.prepared.endpoint.updated_at
    lane.conclude(gone(lane, asked=version - 1))
    assert lane.mode is Mode.OPEN, "it was asked at another URL"
    lane.conclude(gone(lane, asked=version))
    assert lane.mode is Mode.GONE
    assert not lane.is_held
    change(lane)
    assert lane.is_held
