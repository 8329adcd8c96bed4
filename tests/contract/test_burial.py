"""What happens to a dead worker and to its lanes."""

import pytest

from factories import NOW, a_publication, ids
from hookline.store.contract import FREE_CHUNK, Load, Release, Taken
from scenes import a_lane_in, a_worker_in, accepted, an_owned_lane, owned_by, published

pytestmark = pytest.mark.anyio

FOREVER = float("inf")


async def test_a_worker_is_buried_at_the_beat_it_was_last_seen_with(store):
    worker = await a_worker_in(store)
    assert await store.bury(worker, beat=0, now=NOW)
    [seen] = (await store.pulse(seen=0)).workers
    assert seen.buried


async def test_a_worker_that_has_beaten_meanwhile_is_not_buried(store):
    worker = await a_worker_in(store)
    await store.beat(worker, Load(), now=NOW)
    assert not await store.bury(worker, beat=0, now=NOW)
    assert await store.beat(worker, Load(), now=NOW)


async def test_burying_again_is_answered_as_the_first_time(store):
    worker = await a_worker_in(store)
    assert await store.bury(worker, beat=0, now=NOW)
    assert await store.bury(worker, beat=0, now=NOW)
    assert await store.bury(worker, beat=5, now=NOW)


async def test_an_unknown_worker_is_not_buried(store):
    assert not await store.bury(ids.worker(), beat=0, now=NOW)


async def test_a_buried_worker_learns_it_from_its_beat(store):
    worker = await a_worker_in(store)
    await store.bury(worker, beat=0, now=NOW)
    assert not await store.beat(worker, Load(), now=NOW)


async def test_a_dead_workers_lanes_are_freed_suspect_and_asleep_until_woken(store):
    worker, lane = await an_owned_lane(store)
    await published(store, lane.endpoint_id)
    await store.bury(worker, beat=0, now=NOW)
    assert await store.free(worker, now=NOW) == [lane.endpoint_id]
    assert await store.free(worker, now=NOW) == []
    heir = await a_worker_in(store)
    assert await store.take(heir, limit=10, now=FOREVER) == []
    await store.wake([lane.endpoint_id], now=NOW + 1)
    taken = await store.take(heir, limit=10, now=NOW + 1)
    expected = Taken(lane.endpoint_id, lane.epoch + 2, NOW + 1, float("-inf"), True, tokens=0, tokens_at=NOW)
    assert taken == [expected]


async def test_a_lane_is_no_longer_suspect_after_an_orderly_release(store):
    worker, lane = await an_owned_lane(store)
    await store.bury(worker, beat=0, now=NOW)
    await store.free(worker, now=NOW)
    heir = await a_worker_in(store)
    taken = await owned_by(store, heir, lane.endpoint_id)
    await store.release(heir, [Release(lane.endpoint_id, taken.epoch, NOW)], now=NOW)
    again = await owned_by(store, heir, lane.endpoint_id)
    assert (taken.suspect, again.suspect) == (True, False)


async def test_a_lane_stays_suspect_if_whoever_lets_it_go_did_not_send_all_suspects(store):
    worker, lane = await an_owned_lane(store)
    release = Release(lane.endpoint_id, lane.epoch, NOW, suspect=True)
    assert await store.release(worker, [release], now=NOW) == [lane.endpoint_id]
    assert (await owned_by(store, worker, lane.endpoint_id)).suspect


async def test_a_living_workers_lanes_are_not_freed(store):
    worker, lane = await an_owned_lane(store)
    assert await store.free(worker, now=NOW) == []
    assert await store.owned(worker) == [lane]


async def test_lanes_are_freed_in_chunks(store):
    worker = await a_worker_in(store)
    lanes = [await a_lane_in(store) for _ in range(FREE_CHUNK + 5)]
    await store.take_these(worker, lanes, now=NOW)
    await store.bury(worker, beat=0, now=NOW)
    first, second = await store.free(worker, now=NOW), await store.free(worker, now=NOW)
    assert (len(first), len(second)) == (FREE_CHUNK, 5)
    assert set(first) | set(second) == set(lanes)


async def test_a_worker_that_a_lane_names_is_not_retired(store):
    worker, lane = await an_owned_lane(store)
    await store.retire(worker)
    assert [seen.id for seen in (await store.pulse(seen=0)).workers] == [worker]
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW)
    await store.retire(worker)
    assert (await store.pulse(seen=0)).workers == ()


async def test_retiring_twice_and_retiring_nobody_do_no_harm(store):
    worker = await a_worker_in(store)
    await store.retire(worker)
    await store.retire(worker)
    assert not await store.beat(worker, Load(), now=NOW)


async def test_the_rows_of_a_freed_lane_are_as_the_dead_worker_left_them(store):
    worker, lane = await an_owned_lane(store)
    batch = [a_publication(lane.endpoint_id) for _ in range(3)]
    await accepted(store, *batch)
    before = [await store.delivery(p.event.id) for p in batch]
    await store.bury(worker, beat=0, now=NOW)
    await store.free(worker, now=NOW)
    assert [await store.delivery(p.event.id) for p in batch] == before
