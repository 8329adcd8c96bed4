"""A lane whose take is not yet answered is adopted once, and under the right worker."""

import asyncio
from asyncio import Event

import pytest

from hookline.app import Hookline
from hookline.model import EndpointId
from hookline.pipeline.intake.drafts import Draft
from hookline.store.contract import Want
from tests.receiver import Receiver
from tests.scenes import a_worker_in, let_go, owned_by, settled
from tests.world import World

pytestmark = pytest.mark.anyio


async def be_buried(world: World, hooks: Hookline) -> None:
    """Others take the worker for dead, and it learns of it."""
    pulse = await hooks.store.pulse(seen=0)
    (beat,) = [worker.beat for worker in pulse.workers if worker.id == hooks._heartbeat.id]
    assert await hooks.store.bury(hooks._heartbeat.id, beat=beat, now=world.clock.now())
    await hooks._heartbeat.look()


def bury_at(call: str, owner: object, world: World, hooks: Hookline) -> list[EndpointId]:
    """Bury the worker while this is awaited, once; returns the ids it had before."""
    right, before = getattr(owner, call), []

    async def burying(*given, **named):
        result = await right(*given, **named)
        if not before:
            before.append(hooks._heartbeat.id)
            await be_buried(world, hooks)
        return result

    setattr(owner, call, burying)
    return before


async def a_free_lane(world: World, receiver: Receiver, *, woken: bool = True) -> Hookline:
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await hooks.publish("a", 1)
    ownership = hooks.worker.ownership
    await world.until(lambda: ownership.lanes and next(iter(ownership.lanes.values())).is_idle)
    await ownership.release(
        list(ownership.lanes.values()), woken=woken
    )  # time stands still: nobody takes it again
    assert not ownership.lanes
    return hooks


async def assert_nothing_is_held_that_is_not_owned(hooks: Hookline, before: list[EndpointId]) -> None:
    assert before
    assert before != [hooks._heartbeat.id]
    owned = {taken.endpoint_id for taken in await hooks.store.owned(hooks._heartbeat.id)}
    assert set(hooks.worker.ownership.lanes) <= owned


async def test_lanes_taken_before_a_burial_are_not_held_after_it(world: World, receiver: Receiver):
    hooks = await a_free_lane(world, receiver)
    catalogue = hooks._catalogue
    find = catalogue.prepared
    before = bury_at("catch_up", catalogue, world, hooks)
    catalogue.prepared = lambda id: find(id) if before else None  # more recent than the last pulse
    await hooks.worker.ownership.take()
    await assert_nothing_is_held_that_is_not_owned(hooks, before)
    await world.pass_until(hooks.publish("a", 2))
    await world.until(lambda: receiver.bodies() == [b"1", b"2"])


async def test_lanes_found_by_a_reconcile_before_a_burial_are_not_held_after_it(
    world: World, receiver: Receiver
):
    hooks = await a_free_lane(world, receiver)
    await hooks.store.take(hooks._heartbeat.id, limit=10, now=world.clock.now())  # its answer was lost
    before = bury_at("owned", hooks.store, world, hooks)
    await hooks.worker.ownership.reconcile()
    await assert_nothing_is_held_that_is_not_owned(hooks, before)


async def test_a_delivery_is_sent_once_if_a_reconcile_finds_its_lane_before_the_take_is_answered(
    world: World, receiver: Receiver
):
    hooks = await a_free_lane(world, receiver, woken=False)  # it sleeps: what is published is handed over
    take_these, ownership = hooks.store.take_these, hooks.worker.ownership

    async def answered_late(*given, **named):
        taken = await take_these(*given, **named)
        await ownership.reconcile()
        (lane,) = ownership.lanes.values()
        await world.until(lambda: len(receiver.requests) == 2 and lane.is_idle)
        return taken

    hooks.store.take_these = answered_late
    await world.pass_until(hooks.publish("a", 2))
    await world.pass_until(hooks.worker.handover.wakes.flush())
    await world.stop(hooks)
    assert receiver.bodies() == [b"1", b"2"]


async def test_a_delivery_that_another_worker_sent_before_the_take_is_not_sent_again(
    world: World, receiver: Receiver
):
    hooks = await a_free_lane(world, receiver, woken=False)
    (endpoint,) = await hooks.store.list_endpoints(account=None, enabled=None, after=None, limit=2)
    lane = endpoint.id
    store, take_these, now = hooks.store, hooks.store.take_these, world.clock.now()

    async def taken_by_another_first(*given, **named):
        store.take_these = take_these
        other = await a_worker_in(store)
        owned = await owned_by(store, other, lane, now=now)
        [sent] = await store.load([Want(lane, 10, 10)], known=(), now=now)
        await settled(store, other, owned, sent.id)
        await let_go(store, other, owned)
        return await take_these(*given, **named)

    store.take_these = taken_by_another_first
    await world.pass_until(hooks.publish("a", 2))
    await world.pass_until(hooks.worker.handover.wakes.flush())
    await world.pass_until(hooks.publish("a", 3))
    await world.until(lambda: receiver.bodies()[-1] == b"3")
    await world.stop(hooks)
    assert receiver.bodies() == [b"1", b"3"]


@pytest.mark.parametrize("verb", ["take", "take_these"])
async def test_a_drain_also_releases_what_a_take_under_way_brings(
    world: World, receiver: Receiver, verb: str
):
    hooks = await a_free_lane(world, receiver, woken=verb == "take")
    worker, right, is_taken, is_draining = hooks._heartbeat.id, getattr(hooks.store, verb), Event(), Event()

    async def answered_late(*given, **named):
        taken = await right(*given, **named)
        is_taken.set()
        await is_draining.wait()
        return taken

    setattr(hooks.store, verb, answered_late)
    if verb == "take_these":
        await hooks.accept([Draft("a", b"2")])
    else:
        hooks.worker._taker.nudge()
    await is_taken.wait()
    stopping = asyncio.create_task(world.stop(hooks))
    await world.until(lambda: hooks.worker._is_draining)
    asyncio.get_running_loop().call_soon(is_draining.set)
    assert await stopping
    second = await world.start(deliver=False)
    assert worker not in [each.id for each in (await second.store.pulse(seen=0)).workers]
    assert await second.store.owned(worker) == []
