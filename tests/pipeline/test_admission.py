"""Does accepting leave room for delivering?"""

import asyncio

import pytest

from hookline.model import State
from hookline.pipeline.admission import Admission
from hookline.rules.admission import LEAST, MOST
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


def test_what_was_delivered_before_the_last_commit_does_not_count_again():
    count, is_behind = [1_000], [True]
    admission = Admission(is_behind=lambda: is_behind[0], delivered=lambda: count[0])
    assert admission.at_once() == LEAST
    count[0] += 400
    assert admission.at_once() == 300
    assert admission.at_once() == LEAST
    is_behind[0] = False
    assert admission.at_once() == MOST


async def test_a_worker_that_reads_back_what_it_accepted_commits_less_at_once(
    world: World, receiver: Receiver
):
    world.step = 0.005  # the pulse must stay young while the database works
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    first = await hooks.publish("order.paid", {"n": 0})
    await world.until_state(hooks, first.id, State.DELIVERED)
    load, accept = hooks.store.load, hooks.store.accept
    loading, gate, sizes = asyncio.Event(), asyncio.Event(), []

    async def held_load(wants, *, known, now):
        loading.set()
        await gate.wait()
        return await load(wants, known=known, now=now)

    async def counted(batch, *, catalogue, now):
        sizes.append(len(batch))
        return await accept(batch, catalogue=catalogue, now=now)

    hooks.store.load, hooks.store.accept = held_load, counted
    (lane,) = hooks.worker.holdings.lanes.values()
    hooks.worker.handover._miss(lane)
    await world.until(loading.is_set)
    await asyncio.gather(*[hooks.publish("order.paid", {"n": n}) for n in range(1, 351)])
    assert sum(sizes) == 350
    assert max(sizes) == LEAST
    gate.set()
    await world.until(lambda: len(receiver.requests) == 351)
