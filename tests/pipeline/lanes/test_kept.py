"""A lane whose release was cancelled still works."""

import asyncio

import pytest

from hookline.app import Hookline
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.rebalance import Sharing
from tests.receiver import Answer, Receiver
from tests.world import STEP, World

pytestmark = pytest.mark.anyio

CAP = 4
EVENTS = 60  # of the 64 that a lane may hold in memory


class Held:
    """A proven lane with a nearly full buffer, whose requests are answered when the test says so."""

    def __init__(self, hooks: Hookline, receiver: Receiver) -> None:
        self.hooks = hooks
        self.receiver = receiver
        self.answers: list[asyncio.Event] = []

    def answer(self, body: bytes) -> Answer:
        hold = asyncio.Event()
        self.answers.append(hold)
        return Answer(hold=hold)

    @property
    def lane(self) -> Lane:
        return next(lane for lane in self.hooks.worker.ownership.lanes.values() if lane.cap == CAP)

    def sharing(self, world: World) -> Sharing:
        return Sharing(self.hooks.worker.ownership, world.clock, every=1.0)

    async def land_all_but_one(self, world: World) -> None:
        """Answer its requests except one that hangs; time stands still, so it is still to be released."""
        world.step = 0.0
        for answer in self.answers[1:]:
            answer.set()
        await world.until(lambda: self.lane.in_flight == 1)
        assert self.lane.is_releasing
        assert not self.lane.wants_more()
        self.receiver.answer = None
        world.step = STEP


async def a_lane_with_a_full_buffer(world: World, receiver: Receiver) -> Held:
    hooks = await world.start()
    held = Held(hooks, receiver)
    # Its requests hang for longer than the test lasts.
    await world.pass_until(
        hooks.create_endpoint(url=receiver.url("/busy"), events=["a"], max_in_flight=CAP, timeout_ms=60_000)
    )
    for _ in range(3):
        await world.pass_until(hooks.publish("a", "proves it"))
        await world.until(lambda: not held.lane.known)
    assert held.lane.window == CAP
    receiver.requests.clear()
    receiver.answer = held.answer
    for n in range(EVENTS):
        await world.pass_until(hooks.publish("a", n))
    await world.until(lambda: len(held.answers) == CAP)
    assert len(held.lane.known) == EVENTS
    return held


async def given_up(world: World, giving: asyncio.Future[int]) -> int:
    await world.until(giving.done)
    return giving.result()


async def arrived_within(world: World, receiver: Receiver, seconds: float) -> int:
    end = world.clock.monotonic() + seconds
    await world.until(lambda: len(receiver.requests) == EVENTS or world.clock.monotonic() > end)
    return len(receiver.requests)


async def test_one_that_could_not_be_handed_away_sends_what_it_holds(world: World, receiver: Receiver):
    held = await a_lane_with_a_full_buffer(world, receiver)
    given = asyncio.ensure_future(held.sharing(world)._give([held.lane]))
    await world.until(lambda: held.lane.is_releasing)
    await held.land_all_but_one(world)
    assert await given_up(world, given) == 0
    assert await arrived_within(world, receiver, 20.0) == EVENTS
    held.answers[0].set()


async def test_one_whose_release_is_in_doubt_sends_what_it_holds_once_it_is_known_who_owns_it(
    world: World, receiver: Receiver
):
    held = await a_lane_with_a_full_buffer(world, receiver)
    hooks = held.hooks
    await world.pass_until(hooks.create_endpoint(url=receiver.url("/idle"), events=["b"]))
    await world.pass_until(hooks.publish("b", "not counted"))
    await world.until(lambda: len(held.answers) == CAP + 1)
    idle = next(lane for lane in hooks.worker.ownership.lanes.values() if lane is not held.lane)
    held.answers.pop().set()
    await world.until(lambda: idle.is_idle)
    receiver.requests.pop()
    release, fails = hooks.store.release, asyncio.Event()

    async def unavailable(*_: object, **__: object) -> None:
        await fails.wait()
        hooks.store.release = release
        raise StoreUnavailable("cut off")

    hooks.store.release = unavailable
    given = asyncio.ensure_future(held.sharing(world)._give([held.lane, idle]))
    await world.until(lambda: held.lane.is_releasing)
    await held.land_all_but_one(world)
    fails.set()
    with pytest.raises(StoreUnavailable):
        await given
    assert await arrived_within(world, receiver, 20.0) == EVENTS
    held.answers[0].set()


async def test_one_that_is_let_go_and_whose_look_after_it_is_refused_is_not_taken_for_owned(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=["a"]))
    await world.pass_until(hooks.publish("a", 1))
    ownership = hooks.worker.ownership
    await world.until(lambda: ownership.lanes and next(iter(ownership.lanes.values())).is_idle)
    (lane,) = ownership.lanes.values()
    wake = hooks.store.wake

    async def refused(*_: object, **__: object) -> None:
        hooks.store.wake = wake
        raise StoreRefused("rights were taken away")

    async def let_go() -> bool:
        with pytest.raises(StoreRefused):
            await ownership.release([lane])
        return ownership.is_in_doubt  # now: a later pulse clears it up

    hooks.store.wake = refused
    assert await world.pass_until(let_go())
    await world.until(lambda: not ownership.is_in_doubt)
    assert lane.is_lost
