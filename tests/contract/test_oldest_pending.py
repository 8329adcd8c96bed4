"""Which pending delivery was accepted first, and how many circuits are open."""

import pytest

from factories import NOW, a_note, a_settlement, an_attempt
from hookline.model import Circuit, CircuitState, Outcome, State
from scenes import a_lane_in, an_owned_lane, published

pytestmark = pytest.mark.anyio


async def test_where_nothing_is_pending_nothing_is_old(store):
    assert await store.oldest_pending() is None
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    assert await store.oldest_pending() == NOW
    await store.settle(worker, [a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)], now=NOW)
    assert await store.oldest_pending() is None


async def test_the_oldest_is_the_one_accepted_first_whenever_it_is_due(store):
    worker, lane = await an_owned_lane(store)
    first = await published(store, lane.endpoint_id, now=NOW)
    await published(store, await a_lane_in(store), now=NOW + 1)
    await published(store, await a_lane_in(store), now=NOW + 2, deliver_at=NOW + 600)
    assert await store.oldest_pending() == NOW
    failed = an_attempt(first, outcome=Outcome.TRANSIENT, status=500)
    again = a_settlement(
        first, lane.endpoint_id, epoch=lane.epoch, attempt=failed, state=State.PENDING, due_at=NOW + 3600
    )
    await store.settle(worker, [again], now=NOW)
    assert await store.oldest_pending() == NOW, "it waits for a retry, and is pending"


async def test_circuits_that_are_not_closed_are_counted_until_their_endpoint_is_gone(store):
    assert await store.circuits_open() == 0
    worker, lane = await an_owned_lane(store)
    await an_owned_lane(store)
    assert await store.circuits_open() == 0
    for state in (CircuitState.OPEN, CircuitState.HALF_OPEN):
        await store.note(
            worker, [a_note(lane, circuit=Circuit(state=state, opened_at=NOW, cooldown=30))], now=NOW
        )
        assert await store.circuits_open() == 1
    await store.delete_endpoint(lane.endpoint_id, now=NOW)
    assert await store.circuits_open() == 0
