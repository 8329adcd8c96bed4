"""A lane whose time comes while it is being checked is checked again."""

import pytest

from hookline.ids import show
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft
from hookline.testing.clock import ManualClock
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

TICK = 1e-6


class TickingClock(ManualClock):
    """A clock on which time also passes between two readings, from when the test says so."""

    ticks = False

    def now(self) -> float:
        if self.ticks:
            self._time += TICK
        return super().now()


async def test_one_that_is_offered_a_moment_before_its_token_is_due_is_sent_or_waits_for_it(
    world: World, receiver: Receiver
):
    clock = world.clock = TickingClock()
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], rate_limit={"per_second": 1, "burst": 1}, circuit=None
    )
    first = await hooks.publish("a", 0)
    await world.until_state(hooks, first.id, State.DELIVERED)
    dispatcher = hooks.worker.dispatcher
    (lane,) = hooks.worker.ownership.lanes.values()
    forgotten = []
    for ticks in range(1, 12):
        # The first takes the token that may be there, the second waits for the next one.
        (_, event) = await hooks.accept([Draft("a", b"1"), Draft("a", b"2")])
        await world.until(lambda: len(lane.ready) == 1 and not lane.in_flight)
        sends = lane.sends
        dispatcher._alarm_at.clear()  # whoever set it has had its turn
        dispatcher._alarms.clear()
        clock._time = lane.flow.opens_at() - ticks * TICK
        clock.ticks = True
        dispatcher.offer(lane)
        clock.ticks = False
        if lane.sends == sends and lane not in dispatcher.waiting and not dispatcher._alarm_at:
            forgotten.append(ticks)
            clock.advance(1.0)
            dispatcher.offer(lane)
        await world.until_state(hooks, show("event", event.id), State.DELIVERED)
    assert forgotten == []


async def test_one_that_is_offered_a_moment_before_its_probe_is_due_is_probed_or_has_an_alarm(
    world: World, receiver: Receiver
):
    clock = world.clock = TickingClock()
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        retry={"schedule": [0, 1, 1], "jitter": "none"},
        circuit={"consecutive_failures": 1, "cooldown_s": 4, "max_cooldown_s": 4},
    )
    lanes = hooks.worker.ownership.lanes
    forgotten = []
    for ticks in range(1, 8):
        receiver.answers["/"] = [Answer(500), Answer(200)]
        event = await hooks.publish("a", ticks)
        await world.until(
            lambda: any(lane.has_unsent and lane.flow.circuit.probe_at for lane in lanes.values())
        )
        (lane,) = lanes.values()
        hooks.worker.dispatcher._alarm_at.clear()
        hooks.worker.dispatcher._alarms.clear()
        clock._time = lane.flow.circuit.probe_at - ticks * TICK
        clock.ticks = True
        hooks.worker.dispatcher.offer(lane)
        clock.ticks = False
        if not hooks.worker.events.tasks.has(lane) and not hooks.worker.dispatcher._alarm_at:
            forgotten.append(ticks)
        await world.until_state(hooks, event.id, State.DELIVERED)
    assert forgotten == []


class SteppingClock(ManualClock):
    """A clock whose idea of the database's time can be put right at once, as a pulse does."""

    behind = 0.0

    def now(self) -> float:
        return super().now() - self.behind


async def test_a_lane_that_waits_for_a_time_is_offered_when_the_clock_is_put_right(
    world: World, receiver: Receiver
):
    clock = world.clock = SteppingClock()
    clock.behind = 4.5
    hooks = await world.start()
    receiver.answers["/"] = [Answer(429, headers={"retry-after": "4"}), Answer(200)]
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=1, circuit=None)
    await hooks.accept([Draft("a", b"%d" % n) for n in range(6)])
    await world.until(lambda: hooks.worker.dispatcher._alarms)
    (lane,) = hooks.worker.ownership.lanes.values()
    await world.until(lambda: not lane.unsettled and lane.room() <= 0)  # no load offers it
    clock.behind = 0.0
    at = clock.monotonic()
    await world.until(lambda: len(receiver.requests) > 1)
    assert clock.monotonic() - at < 2, "it waited for the time that it had worked out before"
