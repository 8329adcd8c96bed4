"""Whichever process is asked, a lane's owner answers."""

import asyncio

import pytest

from hookline.ids import read
from hookline.model import EndpointId
from hookline.rules.worker_status import TRUSTED_BEATS
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


A_MOMENT = 0.01  # seconds of a step: a request that is held must not run into its timeout


async def reports(hooks, *events):
    """What this process says of the events' deliveries: in flight, and what each waits for."""
    found = [await hooks.store.delivery(read("event", event.id)) for event in events]
    shown = await hooks.reports.deliveries(found, now=hooks.clock.now())
    return [(each.in_flight, each.waiting_for) for each in shown]


async def parted(world: World, endpoint):
    """The process that owns the lane, and the other one."""
    id = EndpointId(read("endpoint", endpoint.id))
    await world.until(lambda: any(id in hooks.worker.ownership.lanes for hooks in world._running))
    owner, other = sorted(world._running, key=lambda hooks: id not in hooks.worker.ownership.lanes)
    assert id not in other.worker.ownership.lanes
    return owner, other


async def a_full_lane(world: World, receiver: Receiver, **fields):
    """A lane with one request under way and one delivery behind it, and the two processes."""
    world.step = A_MOMENT
    release = asyncio.Event()
    receiver.answers["/"] = [Answer(hold=release)]
    hooks = await world.start()
    await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(), events=["*"], timeout_ms=60_000, max_in_flight=1, **fields
    )
    first, second = await hooks.publish("a", {}), await hooks.publish("a", {})
    await world.until(lambda: receiver.open_requests)
    owner, other = await parted(world, endpoint)
    return release, owner, other, first, second


@pytest.mark.parametrize(("ordering", "behind"), [("parallel", "slot"), ("strict", "order")])
async def test_another_process_says_what_is_in_flight(
    shared_world: World, receiver: Receiver, ordering: str, behind: str
):
    world = shared_world
    release, owner, other, first, second = await a_full_lane(world, receiver, ordering=ordering)
    said = [(True, None), (False, behind)]
    for asked in (owner, other):  # the owner too: the second delivery may still be on its way to the lane

        async def agrees(asked=asked):
            return await reports(asked, first, second) == said

        await world.until(agrees)
    assert not set(other.worker.ownership.lanes), "it is told, and has not taken the lane itself"
    release.set()
    receiver.answers["/"] = [Answer()]

    async def is_over():
        return await reports(other, first, second) == [(False, None)] * 2

    await world.until(is_over)


async def test_another_process_says_that_a_rate_holds_a_lane_back(shared_world: World, receiver: Receiver):
    world = shared_world
    world.step = A_MOMENT
    hooks = await world.start()
    await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(), events=["*"], rate_limit={"per_second": 0.001, "burst": 1}
    )
    await hooks.publish("a", {})
    second = await hooks.publish("a", {})
    await world.until(lambda: receiver.requests)
    owner, other = await parted(world, endpoint)

    async def agree():
        return await reports(owner, second) == await reports(other, second) == [(False, "rate")]

    await world.until(agree)
    assert not set(other.worker.ownership.lanes), "it is told, and has not taken the lane itself"


async def test_a_worker_that_is_silent_for_three_heartbeats_is_not_believed(
    shared_world: World, receiver: Receiver
):
    world = shared_world
    release, owner, other, first, _ = await a_full_lane(world, receiver)

    async def is_told():
        return await reports(other, first) == [(True, None)]

    await world.until(is_told)
    [row] = [row for row in await other.store.worker_status() if row.worker == owner._heartbeat.id]
    trusted = TRUSTED_BEATS * owner.settings.heartbeat_s
    lanes = await other.store.lanes([each.endpoint_id for each in owner.worker.ownership.lanes.values()])
    for silent, believed in ((trusted - 0.5, 1), (trusted + 0.5, 0)):
        other.owners._clock = Standing(row.seen_at + silent)
        answers = await other.owners.of(lanes)
        assert answers.in_flight(lanes[0].endpoint_id) == believed
    release.set()


class Standing:
    """A clock that stands still."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


async def test_a_status_is_written_when_it_changed_and_again_if_its_beat_was_lost(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    written: list[bytes | None] = []
    beat = hooks.store.beat
    is_losing = False

    async def watched(worker, load, *, now, status=None):
        written.append(status)
        alive = await beat(worker, load, now=now, status=status)
        if is_losing:
            raise TimeoutError("the answer is lost")
        return alive

    hooks.store.beat = watched
    status = b"one"
    hooks._heartbeat.status = lambda: status
    id = hooks._heartbeat.id
    await hooks._heartbeat._beat(id)
    await hooks._heartbeat._beat(id)
    status, is_losing = b"two", True
    with pytest.raises(TimeoutError):
        await hooks._heartbeat._beat(id)
    status, is_losing = b"one", False
    await hooks._heartbeat._beat(id)
    await hooks._heartbeat._beat(id)
    assert [each for each in written if each is not None] == [b"one", b"two", b"one"]
