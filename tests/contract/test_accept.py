"""What the store holds after an accept."""

import asyncio

import msgspec
import pytest

from factories import NOW, a_publication
from hookline.ids import delivery_of
from hookline.model import Delivery, Queue, State
from hookline.store.contract import DeliveryFilter
from scenes import a_lane_in, accepted, loaded_ids

pytestmark = pytest.mark.anyio


async def test_an_accepted_event_is_there_for_another_process(store, second_store):
    lane = await a_lane_in(store)
    publication = a_publication(lane, idempotency_key="k", deliver_at=NOW - 5.0)
    await accepted(store, publication)
    assert await second_store.event(publication.event.id) == publication.event


async def test_a_delivery_begins_pending_and_ready(store):
    lane = await a_lane_in(store)
    publication = a_publication(lane, created_at=NOW - 1.5)
    acceptance = await accepted(store, publication, now=NOW)
    id = delivery_of(publication.event.id, 0)
    assert await store.delivery(id) == Delivery(
        id=id,
        event_id=publication.event.id,
        endpoint_id=lane,
        account="default",
        event_type="order.paid",
        state=State.PENDING,
        queue=Queue.READY,
        seq=acceptance.first_seq,
        attempts=0,
        replays=0,
        due_at=NOW,
        created_at=NOW - 1.5,
    )


async def test_every_endpoint_of_the_fan_out_gets_its_delivery(store):
    lanes = [await a_lane_in(store) for _ in range(3)]
    publication = a_publication(*lanes)
    await accepted(store, publication)
    found = [await store.delivery(delivery_of(publication.event.id, n)) for n in range(3)]
    assert [delivery.endpoint_id for delivery in found] == lanes
    assert await store.delivery(delivery_of(publication.event.id, 3)) is None


async def test_an_event_without_deliveries_is_kept(store):
    publication = a_publication()
    await accepted(store, publication)
    assert await store.event(publication.event.id) == publication.event


async def test_seq_follows_the_order_of_the_batch_not_of_the_ids(store):
    lanes = [await a_lane_in(store), await a_lane_in(store)]
    batch = [a_publication(*lanes) for _ in range(200)]
    batch.reverse()
    acceptance = await accepted(store, *batch)
    listed = await store.list_deliveries(DeliveryFilter(), after=None, limit=1_000)
    by_seq = sorted(listed, key=lambda delivery: delivery.seq)
    assert [d.id for d in by_seq] == [delivery_of(p.event.id, n) for p in batch for n in (0, 1)]
    assert acceptance.first_seq == by_seq[0].seq


async def test_a_later_batch_has_larger_seqs(store):
    lane = await a_lane_in(store)
    first = await accepted(store, *[a_publication(lane) for _ in range(5)])
    second = await accepted(store, a_publication(lane))
    assert second.first_seq >= first.first_seq + 5


async def test_a_later_deliver_at_joins_the_timed_queue(store):
    lane = await a_lane_in(store)
    later, earlier = a_publication(lane, deliver_at=NOW + 60), a_publication(lane, deliver_at=NOW - 60)
    await accepted(store, later, earlier, now=NOW)
    waiting = await store.delivery(delivery_of(later.event.id, 0))
    due = await store.delivery(delivery_of(earlier.event.id, 0))
    assert (waiting.queue, waiting.due_at) == (Queue.TIMED, NOW + 60)
    assert (due.queue, due.due_at) == (Queue.READY, NOW)


async def test_repeating_a_batch_in_doubt_writes_nothing_twice_and_answers_the_same(store):
    lanes = [await a_lane_in(store), await a_lane_in(store)]
    batch = [a_publication(*lanes, idempotency_key=f"key {n}") for n in range(10)] + [a_publication()]
    first = await accepted(store, *batch)
    repeats = frozenset(each.event.id for each in batch)
    repeated = await accepted(store, *batch, now=NOW + 1)
    assert repeated == msgspec.structs.replace(first, repeats=repeats)
    assert (await store.counts())[State.PENDING] == 20
    assert len(await loaded_ids(store, lanes[0])) == 10


async def test_a_repeat_beside_something_new_writes_only_that(store):
    lane = await a_lane_in(store)
    old, new = a_publication(lane), a_publication(lane)
    first = await accepted(store, old)
    second = await accepted(store, old, new)
    assert second.first_seq == first.first_seq
    assert await loaded_ids(store, lane) == [old.event.id, new.event.id]


async def test_an_event_that_is_there_keeps_its_first_fan_out(store):
    first, other = await a_lane_in(store), await a_lane_in(store)
    publication = a_publication(first)
    await accepted(store, publication)
    again = a_publication(other, first)
    again = type(again)(publication.event, again.endpoints)
    await accepted(store, again)
    assert await loaded_ids(store, other) == []
    assert await loaded_ids(store, first) == [delivery_of(publication.event.id, 0)]


async def test_concurrent_accepts_all_commit(store):
    lane = await a_lane_in(store)
    batches = [[a_publication(lane) for _ in range(7)] for _ in range(40)]
    await asyncio.gather(*(accepted(store, *batch) for batch in batches))
    assert set(await loaded_ids(store, lane, ready=1_000)) == {p.event.id for b in batches for p in b}


async def test_an_empty_batch_is_accepted(store):
    acceptance = await accepted(store)
    assert acceptance.priors == {}
