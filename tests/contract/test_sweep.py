"""A sweep finds every lane that nobody woke."""

import pytest

from factories import NOW, a_publication
from hookline.store.contract import SWEEP_CHUNK
from scenes import a_lane_in, a_worker_in, accepted, an_owned_lane, published, wakes_at

pytestmark = pytest.mark.anyio


async def swept(store, *, now=NOW):
    """Run a whole sweep; returns how many steps it took."""
    after, steps = None, 0
    while True:
        after, steps = await store.sweep(after=after, now=now), steps + 1
        if after is None:
            return steps


async def test_a_lane_that_nobody_woke_is_found(store):
    ready, timed, _idle = [await a_lane_in(store) for _ in range(3)]
    await published(store, ready)
    await published(store, timed, deliver_at=NOW + 5)
    assert await swept(store, now=NOW + 1) == 1
    taken = await store.take(await a_worker_in(store), limit=9, now=float("inf"))
    assert [(lane.endpoint_id, lane.woke_at) for lane in taken] == [(ready, NOW + 1), (timed, NOW + 5)]


async def test_a_sweep_only_lowers(store):
    lane = await a_lane_in(store)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    await swept(store, now=NOW + 9)
    assert await wakes_at(store, lane) == NOW


async def test_a_sweep_leaves_owned_lanes_alone(store):
    worker, lane = await an_owned_lane(store)
    await published(store, lane.endpoint_id)
    await swept(store)
    assert await store.owned(worker) == [lane]


async def test_a_sweep_goes_through_all_lanes_in_steps(store):
    lanes = [await a_lane_in(store) for _ in range(SWEEP_CHUNK + 3)]
    last = [lanes[0], *lanes[-3:]]
    await accepted(store, *[a_publication(lane) for lane in last])
    assert await swept(store) == 2
    taken = await store.take(await a_worker_in(store), limit=9, now=NOW)
    assert {lane.endpoint_id for lane in taken} == set(last)


async def test_a_sweep_of_nothing_ends_at_once(store):
    assert await store.sweep(after=None, now=NOW) is None
