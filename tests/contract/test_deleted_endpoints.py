"""What happens to a deleted endpoint's lane and deliveries."""

import pytest

from factories import NOW, a_publication, a_settlement
from hookline.model import Reason, State
from hookline.store.contract import Verdict
from scenes import a_lane_in, a_worker_in, accepted, an_owned_lane, loaded_ids, published, settled

pytestmark = pytest.mark.anyio


async def test_the_lane_of_a_deleted_endpoint_is_never_taken_again(store):
    worker, lane = await a_worker_in(store), await a_lane_in(store)
    await published(store, lane)
    await store.wake([lane], now=NOW)
    await store.delete_endpoint(lane, now=NOW)
    await store.wake([lane], now=NOW)
    assert await store.take(worker, limit=9, now=NOW) == []
    assert await store.take_these(worker, [lane], now=NOW) == []


async def test_pending_deliveries_of_a_deleted_endpoint_are_cancelled_in_steps(store):
    gone, kept = await a_lane_in(store), await a_lane_in(store)
    ready = [await published(store, gone) for _ in range(4)]
    timed = [await published(store, gone, deliver_at=NOW + 9) for _ in range(3)]
    other = await published(store, kept)
    assert await store.cancel_deleted(limit=100, now=NOW) == 0
    await store.delete_endpoint(gone, now=NOW)
    counts = [await store.cancel_deleted(limit=5, now=NOW + 2) for _ in range(3)]
    assert counts == [5, 2, 0]
    for id in ready + timed:
        delivery = await store.delivery(id)
        assert (delivery.state, delivery.reason, delivery.done_at) == (
            State.CANCELLED,
            Reason.ENDPOINT_DELETED,
            NOW + 2,
        )
    assert (await store.delivery(other)).state is State.PENDING
    assert await loaded_ids(store, gone, now=NOW + 9) == []


async def test_what_was_settled_before_stays_as_it_was(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await settled(store, worker, lane, delivery)
    await store.delete_endpoint(lane.endpoint_id, now=NOW)
    assert await store.cancel_deleted(limit=9, now=NOW) == 0
    assert (await store.delivery(delivery)).state is State.DELIVERED


async def test_an_attempt_under_way_still_settles_until_its_row_is_cancelled(store):
    worker, lane = await an_owned_lane(store)
    first, second = [a_publication(lane.endpoint_id) for _ in range(2)]
    await accepted(store, first, second)
    await store.delete_endpoint(lane.endpoint_id, now=NOW)
    one, two = [a_settlement(p.event.id, lane.endpoint_id, epoch=lane.epoch) for p in (first, second)]
    assert await store.settle(worker, [one], now=NOW) == [Verdict.APPLIED]
    assert await store.cancel_deleted(limit=9, now=NOW) == 1
    assert await store.settle(worker, [two], now=NOW) == [Verdict.LATE]
