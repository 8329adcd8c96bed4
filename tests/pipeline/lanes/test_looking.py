"""How often a worker looks for work."""

import pytest

from hookline.app import Hookline
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

POLL = 0.5
LANES = 12
SLOWLY = 0.0002  # seconds of the test's time per poll: receivers work in real time


async def advance(world: World, seconds: float) -> None:
    end = world.clock.now() + seconds
    await world.until(lambda: world.clock.now() >= end)


async def looks_in_a_second(world: World, hooks: Hookline, receiver: Receiver) -> int:
    await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=["*"]))
    world.step = SLOWLY  # from here on: the receiver's delay must not count as seconds of the test
    await world.pass_until(hooks.publish("a", "first"))
    await world.until(lambda: hooks.worker.settler.delivered == 1)
    load, looks = hooks.store.load, []

    async def counted(wants, **more):
        looks.append(wants)
        return await load(wants, **more)

    hooks.store.load = counted  # type: ignore[method-assign]  # asked as before, and counted
    await advance(world, 1.0)
    return len(looks)


async def test_where_nobody_else_can_have_published_it_looks_at_each_poll(world: World, receiver: Receiver):
    assert await looks_in_a_second(world, await world.start(poll_s=POLL), receiver) <= 3


async def test_beside_another_process_it_looks_often(shared_world: World, receiver: Receiver):
    hooks = await shared_world.start(poll_s=POLL)
    await shared_world.start(deliver=False)
    await shared_world.until(lambda: bool(hooks._heartbeat.peers))
    assert await looks_in_a_second(shared_world, hooks, receiver) >= 6


async def test_lanes_that_became_quiet_one_after_the_other_are_looked_at_together(
    world: World, receiver: Receiver
):
    hooks = await world.start(poll_s=POLL)
    for n in range(LANES):
        await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=[f"t{n}"]))
    await advance(world, 1.0)
    world.step = SLOWLY
    for n in range(LANES):
        await world.pass_until(hooks.publish(f"t{n}", n))
        await world.until(lambda n=n: hooks.worker.settler.delivered == n + 1)
    load, looks = hooks.store.load, []

    async def counted(wants, **more):
        looks.append(len(wants))
        return await load(wants, **more)

    hooks.store.load = counted  # type: ignore[method-assign]  # asked as before, and counted
    await advance(world, 2 * POLL)
    assert len(hooks.worker.ownership.lanes) == LANES
    assert sum(looks) >= LANES, "each of them is looked at"
    assert len(looks) <= 3


async def test_a_worker_that_finds_nothing_to_take_does_not_try(world: World, receiver: Receiver):
    hooks = await world.start()
    await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=["*"]))
    take, takes = hooks.store.take, []

    async def counted(worker, **more):
        takes.append(worker)
        return await take(worker, **more)

    hooks.store.take = counted  # type: ignore[method-assign]  # asked as before, and counted
    await advance(world, 2.0)
    assert takes == []
    await world.pass_until(hooks.publish("a", 1))  # it is taken by its id
    await advance(world, 2.0)
    assert (takes, len(receiver.requests)) == ([], 1)
