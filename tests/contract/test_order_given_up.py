"""What happens to a lane that waits for its head when its order is no longer strict."""

import msgspec
import pytest

from factories import NOW
from hookline.model import Ordering
from scenes import a_lane_held_until, a_worker_in, an_owned_lane

pytestmark = pytest.mark.anyio


async def change(store, lane, **fields):
    [endpoint] = await store.endpoints_by_id([lane])
    changed = msgspec.structs.replace(endpoint, updated_at=NOW + 1, **fields)
    assert await store.update_endpoint(changed, was=endpoint.updated_at, now=NOW + 1)


async def test_a_free_lane_is_taken_at_once(store):
    lane = await a_lane_held_until(store, NOW + 3_600, ordering=Ordering.STRICT)
    await change(store, lane, ordering=Ordering.PARALLEL)
    [taken] = await store.take(await a_worker_in(store), limit=1, now=NOW + 1)
    assert (taken.endpoint_id, taken.woke_at) == (lane, NOW + 1)


@pytest.mark.parametrize("ordering", Ordering)
async def test_any_other_change_wakes_nobody(store, ordering):
    lane = await a_lane_held_until(store, NOW + 3_600, ordering=ordering)
    await change(store, lane, ordering=Ordering.STRICT, url="https://other.example")
    assert await store.take(await a_worker_in(store), limit=1, now=NOW + 2_000) == []


async def test_an_owned_lane_stays_as_it_is(store):
    worker, lane = await an_owned_lane(store, ordering=Ordering.STRICT)
    await change(store, lane.endpoint_id, ordering=Ordering.PARALLEL)
    assert await store.owned(worker) == [lane]
