"""An operator's reset reaches the lane's owner once."""

import asyncio

import msgspec
import pytest

from factories import NOW, a_note, ids
from hookline.store.contract import Change
from scenes import (
    a_lane_held_until,
    a_lane_in,
    a_worker_in,
    an_endpoint_in,
    an_owned_lane,
    let_go,
    owned_by,
    published,
    wakes_at,
)

pytestmark = pytest.mark.anyio

FOREVER = float("inf")


async def test_a_reset_is_a_change_that_publishers_need_not_know_of(store):
    endpoint = await an_endpoint_in(store)
    assert await store.reset_circuit(endpoint.id, now=NOW)
    assert (await store.pulse(seen=1)).changes == (Change(2, endpoint.id, "reset"),)
    assert not (await store.accept([], catalogue=1, now=NOW)).stale


async def test_a_free_lane_is_taken_for_it_although_it_is_held_back(store):
    lane = await a_lane_held_until(store, NOW + 3_600)
    await store.reset_circuit(lane, now=NOW + 1)
    [taken] = await store.take(await a_worker_in(store), limit=9, now=NOW + 1)
    assert (taken.endpoint_id, taken.is_reset, taken.woke_at) == (lane, True, NOW + 1)


async def test_a_lane_that_is_awake_is_not_put_off(store):
    lane = await a_lane_in(store)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    await store.reset_circuit(lane, now=NOW + 9)
    assert await wakes_at(store, lane) == NOW


async def test_owners_see_it_until_they_have_carried_it_out(store):
    worker, lane = await an_owned_lane(store)
    assert not lane.is_reset
    await store.reset_circuit(lane.endpoint_id, now=NOW)
    assert [owned.is_reset for owned in await store.owned(worker)] == [True]
    await store.note(worker, [a_note(lane, applied=2)], now=NOW)
    assert [(owned.is_reset, owned.applied) for owned in await store.owned(worker)] == [(False, 2)]
    await let_go(store, worker, lane)
    assert not (await owned_by(store, worker, lane.endpoint_id)).is_reset


async def test_a_second_reset_is_seen_again(store):
    worker, lane = await an_owned_lane(store)
    await store.reset_circuit(lane.endpoint_id, now=NOW)
    await store.note(worker, [a_note(lane, applied=2)], now=NOW)
    await store.reset_circuit(lane.endpoint_id, now=NOW)
    assert [owned.is_reset for owned in await store.owned(worker)] == [True]


async def test_other_changes_and_other_lanes_resets_are_none(store):
    worker, lane = await an_owned_lane(store)
    await store.cancel(await published(store, lane.endpoint_id), now=NOW)
    await store.reset_circuit(await a_lane_in(store), now=NOW)
    assert [owned.is_reset for owned in await store.owned(worker)] == [False]


@pytest.mark.parametrize("look", ["wake", "sweep"])
async def test_an_owner_that_lets_the_lane_go_unaware_does_not_lose_it(store, look):
    """The reset comes while the lane is owned; the recheck after the release finds it, whatever the hold."""
    worker, lane = await an_owned_lane(store)
    await store.note(worker, [a_note(lane, hold_until=NOW + 3_600)], now=NOW)
    await store.reset_circuit(lane.endpoint_id, now=NOW)
    await let_go(store, worker, lane, wake_at=NOW + 3_600)
    if look == "wake":
        await store.wake([lane.endpoint_id], now=NOW + 1)
    else:
        assert await store.sweep(after=None, now=NOW + 1) is None
    [taken] = await store.take(worker, limit=1, now=NOW + 1)
    assert taken.is_reset


async def test_once_carried_out_it_wakes_nobody(store):
    worker, lane = await an_owned_lane(store)
    await store.reset_circuit(lane.endpoint_id, now=NOW)
    await store.note(worker, [a_note(lane, applied=2)], now=NOW)
    await let_go(store, worker, lane)
    await store.wake([lane.endpoint_id], now=NOW)
    assert await store.take(worker, limit=1, now=FOREVER) == []


async def test_a_paused_lane_is_taken_for_it_once_it_goes_on(store):
    endpoint = await an_endpoint_in(store, paused=True)
    worker = await a_worker_in(store)
    await store.reset_circuit(endpoint.id, now=NOW)
    assert await store.take(worker, limit=1, now=FOREVER) == []
    resumed = msgspec.structs.replace(endpoint, paused=False)
    await store.update_endpoint(resumed, was=endpoint.updated_at, now=NOW)
    assert [taken.is_reset for taken in await store.take(worker, limit=1, now=NOW)] == [True]


async def test_what_does_not_exist_cannot_be_reset(store):
    lane = await a_lane_in(store)
    await store.delete_endpoint(lane, now=NOW)
    before = (await store.pulse(seen=0)).changes
    assert not await store.reset_circuit(lane, now=NOW)
    assert not await store.reset_circuit(ids.endpoint(), now=NOW)
    assert (await store.pulse(seen=0)).changes == before


async def test_no_reset_is_lost_beside_releases(store, second_store):
    """In whatever order reset and release come, the lane is owned by a worker that will see it, or awake."""
    worker = await a_worker_in(store)
    for _ in range(25):
        lane = await owned_by(store, worker, await a_lane_in(store))
        await store.note(worker, [a_note(lane, hold_until=NOW + 3_600)], now=NOW)

        async def release(lane=lane):
            await let_go(store, worker, lane, wake_at=NOW + 3_600)
            await store.wake([lane.endpoint_id], now=NOW)

        await asyncio.gather(release(), second_store.reset_circuit(lane.endpoint_id, now=NOW))
        [taken] = await store.take(worker, limit=9, now=NOW)
        assert (taken.endpoint_id, taken.is_reset) == (lane.endpoint_id, True)
        await store.note(worker, [a_note(taken, applied=10**6)], now=NOW)
