"""Deliveries under which workers die are counted, and given up in the end."""

import sqlite3
from contextlib import closing

import pytest

from factories import NOW, a_settlement, an_attempt, ids
from hookline.model import Outcome, Reason, State
from hookline.store.contract import Suspect, Want
from scenes import a_worker_in, an_owned_lane, in_state, let_go, owned_by, published, settled

pytestmark = pytest.mark.anyio


def suspect(delivery, lane, *, replays=0):
    return Suspect(delivery, lane.endpoint_id, lane.epoch, replays)


async def marks(store, lane):
    loaded = await store.load([Want(lane.endpoint_id, 100, 100)], known=[], now=NOW + 10**6)
    return {delivery.id: delivery.marks for delivery in loaded}


@pytest.fixture(params=["mark", "condemn"])
def act(request, store):
    return getattr(store, request.param)


async def test_each_owner_adds_one_mark(store):
    worker, lane = await an_owned_lane(store)
    one, two = await published(store, lane.endpoint_id), await published(store, lane.endpoint_id)
    assert await store.mark(worker, [suspect(one, lane)], now=NOW) == [one]
    assert await marks(store, lane) == {one: 1, two: 0}
    await let_go(store, worker, lane)
    again = await owned_by(store, worker, lane.endpoint_id)
    assert sorted(await store.mark(worker, [suspect(two, again), suspect(one, again)], now=NOW)) == [one, two]
    assert await marks(store, lane) == {one: 2, two: 1}


async def test_a_mark_whose_answer_got_lost_is_not_counted_twice(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    for _ in range(3):
        assert await store.mark(worker, [suspect(delivery, lane)], now=NOW) == [delivery]
    assert await marks(store, lane) == {delivery: 1}


async def test_a_settle_clears_the_marks_and_the_next_one_counts_again(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.mark(worker, [suspect(delivery, lane)], now=NOW)
    failed = a_settlement(
        delivery,
        lane.endpoint_id,
        epoch=lane.epoch,
        attempt=an_attempt(delivery, outcome=Outcome.TRANSIENT, status=500),
        state=State.PENDING,
        due_at=NOW + 5,
    )
    await store.settle(worker, [failed], now=NOW)
    assert await marks(store, lane) == {delivery: 0}
    await store.mark(worker, [suspect(delivery, lane)], now=NOW)
    assert await marks(store, lane) == {delivery: 1}


async def test_a_redriven_delivery_has_no_marks(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.mark(worker, [suspect(delivery, lane)], now=NOW)
    await store.condemn(worker, [suspect(delivery, lane)], now=NOW)
    await store.redrive(delivery, now=NOW)
    assert await marks(store, lane) == {delivery: 0}


async def test_a_condemned_delivery_is_dead_without_an_attempt(store):
    worker, lane = await an_owned_lane(store)
    delivery, other = await published(store, lane.endpoint_id), await published(store, lane.endpoint_id)
    assert await store.condemn(worker, [suspect(delivery, lane)], now=NOW + 1) == [delivery]
    assert await store.condemn(worker, [suspect(delivery, lane)], now=NOW + 2) == [delivery]
    found = await store.delivery(delivery)
    assert (found.state, found.reason, found.done_at) == (State.DEAD, Reason.CRASH_LIMIT, NOW + 1)
    assert (found.attempts, await store.attempts(delivery)) == (0, [])
    assert (await store.delivery(other)).state is State.PENDING


@pytest.mark.parametrize("state", [State.DELIVERED, State.DEAD, State.CANCELLED])
async def test_only_pending_deliveries_are_suspects(store, act, state):
    worker, lane, delivery = await in_state(store, state)
    before = await store.delivery(delivery)
    assert await act(worker, [suspect(delivery, lane)], now=NOW) == []
    assert await store.delivery(delivery) == before


async def unharmed(store, delivery, lane):
    found = await store.delivery(delivery)
    return found.state is State.PENDING and await marks(store, lane) == {delivery: 0}


async def test_nothing_is_done_in_another_epoch(store, act):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await let_go(store, worker, lane)
    await owned_by(store, worker, lane.endpoint_id)
    assert await act(worker, [suspect(delivery, lane)], now=NOW) == []
    assert await unharmed(store, delivery, lane)


async def test_nothing_is_done_by_another_worker(store, act):
    _, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    assert await act(await a_worker_in(store), [suspect(delivery, lane)], now=NOW) == []
    assert await unharmed(store, delivery, lane)


async def test_nothing_is_done_by_a_buried_worker(store, act):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.bury(worker, beat=0, now=NOW)
    assert await act(worker, [suspect(delivery, lane)], now=NOW) == []
    assert await unharmed(store, delivery, lane)


async def test_a_delivery_of_another_lane_is_left_alone(store, act):
    worker, lane = await an_owned_lane(store)
    _, foreign = await an_owned_lane(store)
    delivery = await published(store, foreign.endpoint_id)
    assert await act(worker, [suspect(delivery, lane)], now=NOW) == []
    assert await unharmed(store, delivery, foreign)


async def test_many_at_once_and_none_at_all(store, act):
    worker, lane = await an_owned_lane(store)
    deliveries = [await published(store, lane.endpoint_id) for _ in range(20)]
    await settled(store, worker, lane, deliveries[3])
    suspects = [suspect(delivery, lane) for delivery in [*deliveries, ids.attempt()]]
    assert sorted(await act(worker, suspects, now=NOW)) == sorted(set(deliveries) - {deliveries[3]})
    assert await act(worker, [], now=NOW) == []


async def test_a_cancelled_delivery_keeps_no_marks(store, store_kind, request):
    worker, lane = await an_owned_lane(store)
    one, two = await published(store, lane.endpoint_id), await published(store, lane.endpoint_id)
    await store.mark(worker, [suspect(one, lane), suspect(two, lane)], now=NOW)
    await store.cancel(one, now=NOW)
    await store.delete_endpoint(lane.endpoint_id, now=NOW)
    assert await store.cancel_deleted(limit=10, now=NOW) == 1
    if store_kind != "sqlite":
        return  # nobody reads them there either, and the model compares the rows
    with closing(sqlite3.connect(request.getfixturevalue("sqlite_path"))) as file:
        assert file.execute("SELECT state, marks FROM deliveries").fetchall() == [("cancelled", 0)] * 2


async def test_a_suspect_that_was_replayed_since_it_was_read_is_another_one(store, act):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.cancel(delivery, now=NOW)
    await store.redrive(delivery, now=NOW)
    assert await act(worker, [suspect(delivery, lane)], now=NOW) == []
    assert await act(worker, [suspect(delivery, lane, replays=1)], now=NOW) == [delivery]
