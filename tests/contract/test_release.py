"""A lane becomes free again."""

import pytest

from factories import NOW, ids
from hookline.store.contract import Release
from scenes import a_worker_in, an_owned_lane, published, wakes_at

pytestmark = pytest.mark.anyio

FOREVER = float("inf")


async def test_a_released_lane_wakes_when_its_owner_believed(store):
    worker, lane = await an_owned_lane(store)
    release = Release(lane.endpoint_id, lane.epoch, NOW + 7.5)
    assert await store.release(worker, [release], now=NOW) == [lane.endpoint_id]
    assert await store.owned(worker) == []
    assert await wakes_at(store, lane.endpoint_id) == NOW + 7.5


async def test_a_lane_released_with_nothing_waiting_sleeps(store):
    worker, lane = await an_owned_lane(store)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, FOREVER)], now=NOW)
    assert await store.take(worker, limit=10, now=FOREVER) == []


async def test_the_recheck_finds_what_the_owner_did_not_know_of(store):
    worker, lane = await an_owned_lane(store)
    await published(store, lane.endpoint_id)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, FOREVER)], now=NOW)
    await store.wake([lane.endpoint_id], now=NOW + 1)
    assert await wakes_at(store, lane.endpoint_id) == NOW + 1


async def test_the_recheck_never_wakes_a_lane_later_than_its_owner_believed(store):
    worker, lane = await an_owned_lane(store)
    await published(store, lane.endpoint_id, deliver_at=NOW + 60)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW + 30)], now=NOW)
    await store.wake([lane.endpoint_id], now=NOW)
    assert await wakes_at(store, lane.endpoint_id) == NOW + 30


async def test_a_lane_of_another_epoch_is_not_released(store):
    worker, lane = await an_owned_lane(store)
    assert await store.release(worker, [Release(lane.endpoint_id, lane.epoch - 1, NOW)], now=NOW) == []
    assert len(await store.owned(worker)) == 1


async def test_another_owners_lane_is_not_released(store):
    worker, lane = await an_owned_lane(store)
    other = await a_worker_in(store)
    assert await store.release(other, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW) == []
    assert len(await store.owned(worker)) == 1


async def test_a_buried_worker_releases_nothing(store):
    worker, lane = await an_owned_lane(store)
    await store.bury(worker, beat=0, now=NOW)
    assert await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW) == []
    assert len(await store.owned(worker)) == 1


async def test_the_lanes_that_were_let_go_are_named(store):
    worker, lane = await an_owned_lane(store)
    _, foreign = await an_owned_lane(store)
    releases = [
        Release(foreign.endpoint_id, foreign.epoch, NOW),
        Release(lane.endpoint_id, lane.epoch, NOW),
        Release(ids.endpoint(), 1, NOW),
    ]
    assert await store.release(worker, releases, now=NOW) == [lane.endpoint_id]
    assert await store.release(worker, [], now=NOW) == []
