"""Which lanes a worker can take."""

import asyncio

import pytest

from factories import NOW, an_endpoint, ids
from hookline.model import DeliveryId, State
from hookline.store.contract import Load, Release, Taken
from scenes import (
    a_lane_held_until,
    a_lane_in,
    a_worker_in,
    an_endpoint_in,
    in_state,
    let_go,
    owned_by,
    published,
    settled,
)

pytestmark = pytest.mark.anyio

LONG_AGO = float("-inf")
FOREVER = float("inf")


async def a_woken_lane(store, *, at=NOW):
    lane = await a_lane_in(store)
    await published(store, lane, now=at)
    await store.wake([lane], now=at)
    return lane


async def test_a_lane_whose_time_has_come_is_taken_in_a_new_epoch(store):
    worker, lane = await a_worker_in(store), await a_woken_lane(store)
    assert await store.take(worker, limit=10, now=NOW) == [Taken(lane, 1, NOW, LONG_AGO, False)]


async def test_a_lane_whose_time_has_not_come_is_left(store):
    worker = await a_worker_in(store)
    await a_woken_lane(store, at=NOW + 1)
    assert await store.take(worker, limit=10, now=NOW) == []


async def test_a_lane_with_nothing_to_do_is_left(store):
    worker = await a_worker_in(store)
    await a_lane_in(store)
    assert await store.take(worker, limit=10, now=FOREVER) == []


async def test_the_earliest_come_first(store):
    worker = await a_worker_in(store)
    lanes = {second: await a_woken_lane(store, at=NOW + second) for second in (3, 1, 4, 2)}
    taken = await store.take(worker, limit=3, now=NOW + 10)
    assert [lane.endpoint_id for lane in taken] == [lanes[1], lanes[2], lanes[3]]


async def test_an_owned_lane_is_not_taken_again(store):
    worker, other = await a_worker_in(store), await a_worker_in(store)
    lane = await a_woken_lane(store)
    await store.take(worker, limit=10, now=NOW)
    assert await store.take(other, limit=10, now=NOW) == []
    assert await store.take_these(other, [lane], now=NOW) == []
    assert await store.take_these(worker, [lane], now=NOW) == []


async def test_every_take_begins_a_new_epoch(store):
    worker, lane = await a_worker_in(store), await a_woken_lane(store)
    first = await owned_by(store, worker, lane)
    await store.release(worker, [Release(lane, first.epoch, NOW)], now=NOW)
    second = await owned_by(store, worker, lane)
    assert second.epoch > first.epoch


async def test_lanes_are_taken_by_name_whatever_their_time(store):
    worker = await a_worker_in(store)
    asleep, awake = await a_lane_in(store), await a_woken_lane(store)
    taken = await store.take_these(worker, [asleep, awake, ids.endpoint()], now=NOW)
    assert {lane.endpoint_id: lane.woke_at for lane in taken} == {asleep: FOREVER, awake: NOW}


async def test_a_take_counts_the_copies_that_nobody_touched_since_their_commit(store):
    worker, other = await a_worker_in(store), await a_worker_in(store)
    lane, second = await a_lane_in(store), await a_lane_in(store)
    sent, left, also_left = [await published(store, lane) for _ in range(3)]
    of_second = await published(store, second)
    before = await owned_by(store, other, lane)
    await settled(store, other, before, sent)
    await let_go(store, other, before)
    copies = [sent, left, also_left, of_second, DeliveryId(ids.endpoint())]
    taken = await store.take_these(worker, [lane, second], copies=copies, now=NOW)
    assert {each.endpoint_id: each.copies for each in taken} == {lane: 2, second: 1}


async def test_a_copy_that_was_replayed_is_not_counted(store):
    worker, lane, delivery = await in_state(store, State.DEAD)
    await store.redrive(delivery, now=NOW)
    await let_go(store, worker, lane)
    [taken] = await store.take_these(worker, [lane.endpoint_id], copies=[delivery], now=NOW)
    assert taken.copies == 0


async def test_taking_no_lanes_takes_none(store):
    assert await store.take_these(await a_worker_in(store), [], now=NOW) == []


async def test_a_disabled_endpoints_lane_is_not_taken(store):
    worker = await a_worker_in(store)
    lane = await a_lane_in(store, enabled=False)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    assert await store.take(worker, limit=10, now=NOW) == []
    assert await store.take_these(worker, [lane], now=NOW) == []


async def test_a_paused_endpoints_lane_is_not_taken_also_when_it_is_enabled(store):
    worker = await a_worker_in(store)
    endpoint = await an_endpoint_in(store, paused=True)
    await published(store, endpoint.id)
    await store.wake([endpoint.id], now=NOW)
    assert await store.take(worker, limit=10, now=NOW) == []
    assert await store.take_these(worker, [endpoint.id], now=NOW) == []
    for enabled, paused, is_taken in ((False, False, False), (False, True, False), (True, False, True)):
        changed = an_endpoint(id=endpoint.id, enabled=enabled, paused=paused)
        assert await store.update_endpoint(changed, was=endpoint.updated_at, now=NOW)
        assert bool(await store.take(worker, limit=10, now=NOW)) is is_taken


async def test_a_lane_is_found_again_once_its_endpoint_is_enabled(store):
    worker = await a_worker_in(store)
    endpoint = await an_endpoint_in(store, enabled=False)
    await published(store, endpoint.id)
    await store.wake([endpoint.id], now=NOW)
    enabled = an_endpoint(id=endpoint.id, enabled=True)
    assert await store.update_endpoint(enabled, was=endpoint.updated_at, now=NOW)
    assert [lane.endpoint_id for lane in await store.take(worker, limit=10, now=NOW)] == [endpoint.id]


async def test_a_lane_that_is_held_back_is_not_taken_by_name_before_its_time(store):
    worker, lane = await a_worker_in(store), await a_lane_held_until(store, NOW + 5)
    assert await store.take_these(worker, [lane], now=NOW + 4) == []
    assert await store.take_these(worker, [lane], now=NOW + 5) == [Taken(lane, 2, FOREVER, NOW + 5, False)]


async def test_a_buried_worker_takes_nothing(store):
    worker, lane = await a_worker_in(store), await a_woken_lane(store)
    assert await store.bury(worker, beat=0, now=NOW)
    assert await store.take(worker, limit=10, now=NOW) == []
    assert await store.take_these(worker, [lane], now=NOW) == []


async def test_an_unknown_worker_takes_nothing(store):
    lane = await a_woken_lane(store)
    assert await store.take(ids.worker(), limit=10, now=NOW) == []
    assert await store.take_these(ids.worker(), [lane], now=NOW) == []


async def test_of_many_takers_each_lane_goes_to_one(store):
    workers = [await a_worker_in(store) for _ in range(4)]
    lanes = [await a_woken_lane(store) for _ in range(30)]
    takes = await asyncio.gather(*(store.take(worker, limit=10, now=NOW) for worker in workers))
    taken = [lane.endpoint_id for take in takes for lane in take]
    assert len(taken) == len(set(taken))
    for worker in workers:
        taken += [lane.endpoint_id for lane in await store.take(worker, limit=30, now=NOW)]
    assert sorted(taken) == sorted(lanes)


async def test_a_worker_can_ask_which_lanes_name_it(store):
    worker, other = await a_worker_in(store), await a_worker_in(store)
    lane = await a_woken_lane(store)
    await owned_by(store, other, await a_lane_in(store))
    [taken] = await store.take(worker, limit=1, now=NOW)
    assert await store.owned(worker) == [Taken(lane, taken.epoch, NOW, LONG_AGO, False)]
    assert await store.beat(worker, Load(lanes=1), now=NOW)
    assert await store.owned(ids.worker()) == []
