"""When a free lane is found after a wake."""

import pytest

from factories import NOW, ids
from hookline.store.contract import Release
from scenes import a_lane_held_until, a_lane_in, a_worker_in, an_owned_lane, owned_by, published, wakes_at

pytestmark = pytest.mark.anyio

FOREVER = float("inf")


async def test_a_lane_with_a_ready_row_is_awake_now(store):
    lane = await a_lane_in(store)
    await published(store, lane)
    await published(store, lane, deliver_at=NOW + 5)
    await store.wake([lane], now=NOW + 1)
    assert await wakes_at(store, lane) == NOW + 1


async def test_a_lane_with_timed_rows_wakes_for_the_first(store):
    lane = await a_lane_in(store)
    for wait in (9, 5, 7):
        await published(store, lane, deliver_at=NOW + wait)
    await store.wake([lane], now=NOW + 1)
    assert await wakes_at(store, lane) == NOW + 5


async def test_a_lane_without_rows_sleeps_on(store):
    lane = await a_lane_in(store)
    await store.wake([lane], now=NOW)
    assert await wakes_at(store, lane) == FOREVER


async def test_a_lane_whose_rows_are_all_settled_sleeps_on(store):
    lane = await a_lane_in(store)
    await store.cancel(await published(store, lane), now=NOW)
    await store.wake([lane], now=NOW)
    assert await wakes_at(store, lane) == FOREVER


async def test_a_wake_only_lowers(store):
    lane = await a_lane_in(store)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    await store.wake([lane], now=NOW + 100)
    assert await wakes_at(store, lane) == NOW


async def test_a_held_lane_wakes_no_earlier_than_its_hold(store):
    lane = await a_lane_held_until(store, NOW + 50)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    assert await wakes_at(store, lane) == NOW + 50


async def test_an_owned_lane_is_left_alone(store):
    worker, lane = await an_owned_lane(store)
    await published(store, lane.endpoint_id)
    await store.wake([lane.endpoint_id], now=NOW)
    assert await store.owned(worker) == [lane]


async def test_only_the_lanes_named_are_woken(store):
    lanes = [await a_lane_in(store) for _ in range(40)]
    for lane in lanes:
        await published(store, lane)
    await store.wake([*lanes[:20], ids.endpoint()], now=NOW)
    await store.wake([], now=NOW)
    taken = await store.take(await a_worker_in(store), limit=100, now=NOW)
    assert {lane.endpoint_id for lane in taken} == set(lanes[:20])


async def test_redriven_and_retried_rows_wake_their_lane(store):
    worker = await a_worker_in(store)
    lane = await owned_by(store, worker, await a_lane_in(store))
    waiting = await published(store, lane.endpoint_id, deliver_at=NOW + 600)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW + 600)], now=NOW)
    assert await store.retry(waiting, now=NOW + 3) == lane.endpoint_id
    await store.wake([lane.endpoint_id], now=NOW + 3)
    assert await wakes_at(store, lane.endpoint_id) == NOW + 3
