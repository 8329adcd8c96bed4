"""No due delivery is left where nobody finds it.

Random interleavings of publishing, waking, taking and releasing, each step a transaction of its own as in the
pipeline. At the end no lane with a due row may be both free and asleep.
"""

import asyncio
from random import Random

import pytest

from factories import NOW, a_publication
from hookline.store.contract import Release, Want
from scenes import a_lane_in, a_worker_in, accepted, published

pytestmark = pytest.mark.anyio

LANES = 4
FOREVER = float("inf")


async def publish(store, lanes, rng, pauses):
    """Commit, then wake, with a random pause in between."""
    for _ in range(12):
        lane = rng.choice(lanes)
        deliver_at = rng.choice([None, NOW + 1])
        await accepted(store, a_publication(lane, deliver_at=deliver_at))
        await pauses()
        await store.wake([lane], now=NOW)


async def work(store, worker, lanes, rng, pauses):
    """Take, believe that there is nothing, release, then recheck: as wrong as an owner can be."""
    for _ in range(12):
        if rng.random() < 0.5:
            taken = await store.take(worker, limit=2, now=NOW)
        else:
            taken = await store.take_these(worker, rng.sample(lanes, 2), now=NOW)
        await pauses()
        releases = [Release(lane.endpoint_id, lane.epoch, FOREVER) for lane in taken]
        released = await store.release(worker, releases, now=NOW)
        await pauses()
        await store.wake(released, now=NOW)


@pytest.mark.parametrize("seed", range(8))
async def test_no_interleaving_leaves_a_due_row_in_a_lane_that_is_free_and_asleep(store, second_store, seed):
    rng = Random(seed)
    lanes = [await a_lane_in(store) for _ in range(LANES)]
    workers = [await a_worker_in(store) for _ in range(2)]

    async def pauses():
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)

    await asyncio.gather(
        *(publish(writer, lanes, rng, pauses) for writer in (store, second_store)),
        *(work(store, worker, lanes, rng, pauses) for worker in workers),
    )
    finder = await a_worker_in(store)
    found = {lane.endpoint_id for lane in await store.take(finder, limit=LANES, now=NOW + 1)}
    due = await store.load([Want(lane, 1, 1) for lane in lanes], known=[], now=NOW + 1)
    assert {delivery.endpoint_id for delivery in due} <= found


async def test_without_the_recheck_a_wake_would_be_lost(store):
    """The interleaving that the recheck is for: it can happen, so the test above can fail."""
    worker, lane = await a_worker_in(store), await a_lane_in(store)
    [taken] = await store.take_these(worker, [lane], now=NOW)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    await store.release(worker, [Release(lane, taken.epoch, FOREVER)], now=NOW)
    assert await store.take(worker, limit=1, now=NOW) == []
    await store.wake([lane], now=NOW)
    assert len(await store.take(worker, limit=1, now=NOW)) == 1
