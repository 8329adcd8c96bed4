"""A rate limit's bucket is handed from owner to owner."""

import pytest

from factories import NOW
from hookline.store.contract import Release
from scenes import a_worker_in, an_owned_lane, let_go, owned_by

pytestmark = pytest.mark.anyio


async def test_a_bucket_never_used_is_unknown(store):
    _, lane = await an_owned_lane(store)
    assert (lane.tokens, lane.tokens_at) == (None, None)


@pytest.mark.parametrize("tokens", [0.0, 1 / 3, 999_999.999_999])
async def test_the_next_owner_goes_on_with_the_last_ones_tokens(store, tokens):
    worker, lane = await an_owned_lane(store)
    await let_go(store, worker, lane, tokens=tokens, tokens_at=NOW + 0.123456)
    taken = await owned_by(store, await a_worker_in(store), lane.endpoint_id)
    assert (taken.tokens, taken.tokens_at) == (tokens, NOW + 0.123456)


async def test_a_lane_let_go_without_a_limit_forgets_the_bucket(store):
    worker, lane = await an_owned_lane(store)
    await let_go(store, worker, lane, tokens=5.0, tokens_at=NOW)
    again = await owned_by(store, worker, lane.endpoint_id)
    await let_go(store, worker, again)
    taken = await owned_by(store, worker, lane.endpoint_id)
    assert (taken.tokens, taken.tokens_at) == (None, None)


async def test_a_release_that_is_refused_leaves_the_bucket(store):
    worker, lane = await an_owned_lane(store)
    await let_go(store, worker, lane, tokens=5.0, tokens_at=NOW)
    again = await owned_by(store, worker, lane.endpoint_id)
    stale = Release(lane.endpoint_id, lane.epoch, NOW, tokens=9.0, tokens_at=NOW)
    assert await store.release(worker, [stale], now=NOW) == []
    assert await store.owned(worker) == [again]
    assert again.tokens == 5.0


async def test_a_dead_owners_tokens_are_spent(store):
    worker, lane = await an_owned_lane(store)
    await let_go(store, worker, lane, tokens=5.0, tokens_at=NOW)
    await owned_by(store, worker, lane.endpoint_id)
    await store.bury(worker, beat=0, now=NOW)
    await store.free(worker, now=NOW + 4)
    taken = await owned_by(store, await a_worker_in(store), lane.endpoint_id)
    assert (taken.tokens, taken.tokens_at) == (0.0, NOW + 4)
