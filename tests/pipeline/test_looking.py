"""How often does a worker look after a lane that it just brought something to?"""

import pytest

from hookline import Hookline
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

POLL = 0.5
SLOWLY = 0.0002  # seconds of the test's time at a look: receivers work in real time


async def looks_in_a_second(world: World, hooks: Hookline, receiver: Receiver) -> int:
    await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=["*"]))
    world.step = SLOWLY  # from here on: what the receiver takes to answer must not be seconds of the test
    await world.pass_until(hooks.publish("a", "first"))
    await world.until(lambda: hooks.worker.settler.delivered == 1)
    load, looks = hooks.store.load, []

    async def counted(wants, **more):
        looks.append(wants)
        return await load(wants, **more)

    hooks.store.load = counted  # type: ignore[method-assign]  # asked as before, and counted
    end = world.clock.now() + 1.0
    await world.until(lambda: world.clock.now() >= end)
    return len(looks)


async def test_where_nobody_else_can_have_published_it_looks_at_each_poll(world: World, receiver: Receiver):
    assert await looks_in_a_second(world, await world.start(poll_s=POLL), receiver) <= 3


async def test_beside_another_process_it_looks_often(shared_world: World, receiver: Receiver):
    hooks = await shared_world.start(poll_s=POLL)
    await shared_world.start(deliver=False)
    await shared_world.until(lambda: bool(hooks._heart.peers))
    assert await looks_in_a_second(shared_world, hooks, receiver) >= 6
