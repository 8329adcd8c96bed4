"""A strict lane whose head an operator moved is taken as soon as it is free."""

import msgspec
import pytest

from factories import NOW, a_note, a_settlement, an_attempt
from hookline.model import Circuit, CircuitState, Ordering, Outcome, State
from hookline.store.contract import Release, Verdict
from scenes import a_worker_in, an_owned_lane, published, wakes_at

pytestmark = pytest.mark.anyio


async def a_waiting_head(store, **note):
    """A strict lane that a worker owns, with a head that waits for ten minutes."""
    worker, lane = await an_owned_lane(store, ordering=Ordering.STRICT)
    head = await published(store, lane.endpoint_id)
    failed = an_attempt(head, outcome=Outcome.TRANSIENT, status=500)
    again = a_settlement(
        head, lane.endpoint_id, epoch=lane.epoch, attempt=failed, state=State.PENDING, due_at=NOW + 600
    )
    noted = msgspec.structs.replace(a_note(lane, hold_until=NOW + 600, **note), head=head)
    assert await store.settle(worker, [again], notes=[noted], now=NOW) == [Verdict.APPLIED]
    return worker, lane, head


@pytest.mark.parametrize("verb", ["cancel", "retry"])
async def test_a_lane_that_waits_for_its_head_is_found_when_the_head_is_moved(store, verb):
    worker, lane, head = await a_waiting_head(store)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW + 600)], now=NOW)
    await store.wake([lane.endpoint_id], now=NOW)
    finder = await a_worker_in(store)
    assert await store.take(finder, limit=10, now=NOW + 1) == []
    await getattr(store, verb)(head, now=NOW + 1)
    assert [taken.endpoint_id for taken in await store.take(finder, limit=10, now=NOW + 1)] == [
        lane.endpoint_id
    ]


async def given_back(store, worker, lane):
    """Release the lane by an owner that does not know what an operator did."""
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW + 600)], now=NOW + 2)
    await store.wake([lane.endpoint_id], now=NOW + 2)


async def left_by_a_dead_owner(store, worker, lane):
    assert await store.bury(worker, beat=0, now=NOW + 2)
    assert await store.free(worker, now=NOW + 2) == [lane.endpoint_id]
    await store.wake([lane.endpoint_id], now=NOW + 2)


async def left_by_a_dead_owner_and_swept(store, worker, lane):
    assert await store.bury(worker, beat=0, now=NOW + 2)
    assert await store.free(worker, now=NOW + 2) == [lane.endpoint_id]
    assert await store.sweep(after=None, now=NOW + 2) is None


WAYS = [given_back, left_by_a_dead_owner, left_by_a_dead_owner_and_swept]


@pytest.mark.parametrize("way", WAYS)
async def test_a_head_that_was_retried_while_its_lane_had_an_owner_does_not_wait_any_longer(store, way):
    worker, lane, head = await a_waiting_head(store)
    await store.retry(head, now=NOW + 1)
    await way(store, worker, lane)
    assert await wakes_at(store, lane.endpoint_id) <= NOW + 2


@pytest.mark.parametrize("way", WAYS)
async def test_a_head_that_nobody_moved_is_waited_for(store, way):
    worker, lane, _ = await a_waiting_head(store)
    await way(store, worker, lane)
    assert await wakes_at(store, lane.endpoint_id) == NOW + 600


@pytest.mark.parametrize("way", WAYS)
async def test_a_retried_head_does_not_go_past_an_open_circuit(store, way):
    open_one = Circuit(state=CircuitState.OPEN, opened_at=NOW, probe_at=NOW + 600, cooldown=600.0)
    worker, lane, head = await a_waiting_head(store, circuit=open_one)
    await store.retry(head, now=NOW + 1)
    await way(store, worker, lane)
    assert await wakes_at(store, lane.endpoint_id) == NOW + 600


@pytest.mark.parametrize("way", WAYS)
async def test_a_retried_head_does_not_end_the_rest_that_its_receiver_asked_for(store, way):
    """A worker that took the lane before its time would find nothing to do, and so would the next."""
    worker, lane, head = await a_waiting_head(store)
    await store.retry(head, now=NOW + 1)
    resting = msgspec.structs.replace(a_note(lane, hold_until=NOW + 300, rest_until=NOW + 300), head=head)
    assert await store.note(worker, [resting], now=NOW + 1) == [lane.endpoint_id]
    await way(store, worker, lane)
    assert await wakes_at(store, lane.endpoint_id) == NOW + 300
