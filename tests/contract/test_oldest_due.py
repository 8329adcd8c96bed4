"""Which delivery has been due for the longest time, among those that nothing holds back."""

import pytest

from factories import NOW, a_note, a_settlement, an_attempt
from hookline.model import Outcome, State
from scenes import a_lane_in, an_owned_lane, owned_by, published

pytestmark = pytest.mark.anyio


async def test_where_nothing_is_due_nothing_is_old(store):
    assert await store.oldest_due(now=NOW) is None
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.settle(worker, [a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)], now=NOW)
    await published(store, lane.endpoint_id, deliver_at=NOW + 60)
    assert await store.oldest_due(now=NOW + 59) is None
    assert await store.oldest_due(now=NOW + 60) == NOW + 60


async def test_the_oldest_of_all_lanes_and_of_both_queues_counts(store):
    lanes = [await a_lane_in(store) for _ in range(3)]
    await published(store, lanes[1], now=NOW + 20)
    assert await store.oldest_due(now=NOW + 100) == NOW + 20
    await published(store, lanes[0], now=NOW + 10)
    await published(store, lanes[0], now=NOW + 30)
    await published(store, lanes[2], deliver_at=NOW + 40)
    assert await store.oldest_due(now=NOW + 100) == NOW + 10
    await published(store, lanes[2], deliver_at=NOW + 5)
    assert await store.oldest_due(now=NOW + 100) == NOW + 5


async def test_a_retry_is_due_when_its_time_has_come(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    failed = an_attempt(delivery, outcome=Outcome.TRANSIENT, status=500)
    again = a_settlement(
        delivery, lane.endpoint_id, epoch=lane.epoch, attempt=failed, state=State.PENDING, due_at=NOW + 30
    )
    await store.settle(worker, [again], now=NOW)
    assert await store.oldest_due(now=NOW + 29) is None
    assert await store.oldest_due(now=NOW + 31) == NOW + 30


async def test_what_an_operator_or_an_owner_holds_back_is_not_waited_for(store):
    paused, held = await a_lane_in(store, paused=True), await a_lane_in(store)
    await published(store, paused, now=NOW)
    await published(store, held, now=NOW + 1)
    worker, other = await an_owned_lane(store)
    lane = await owned_by(store, worker, held, now=NOW + 1)
    assert await store.oldest_due(now=NOW + 5) == NOW + 1
    await store.note(worker, [a_note(lane, hold_until=NOW + 50)], now=NOW + 2)
    assert await store.oldest_due(now=NOW + 5) is None
    assert await store.oldest_due(now=NOW + 50) == NOW + 1
    await published(store, other.endpoint_id, now=NOW + 3)
    assert await store.oldest_due(now=NOW + 5) == NOW + 3
    await store.delete_endpoint(other.endpoint_id, now=NOW + 4)
    assert await store.oldest_due(now=NOW + 5) is None
