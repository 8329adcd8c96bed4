"""Which deliveries a load returns, and in which order."""

import pytest

from factories import NOW, a_publication, a_settlement, an_attempt, ids
from hookline.ids import delivery_of
from hookline.model import Outcome, Queue, State
from hookline.store.contract import Loaded, Want
from scenes import a_lane_in, accepted, an_owned_lane, loaded_ids, published

pytestmark = pytest.mark.anyio


async def test_a_loaded_delivery_has_all_that_is_needed_to_send_it(store):
    lane = await a_lane_in(store)
    publication = a_publication(lane, idempotency_key="k", type="a.b", payload=b"{}", created_at=NOW - 2)
    acceptance = await accepted(store, publication)
    assert await store.load([Want(lane, 5, 5)], known=[], now=NOW) == [
        Loaded(
            id=delivery_of(publication.event.id, 0),
            endpoint_id=lane,
            queue=Queue.READY,
            seq=acceptance.first_seq,
            due_at=NOW,
            attempts=0,
            replays=0,
            marks=0,
            event_type="a.b",
            idempotency_key="k",
            created_at=NOW - 2,
            payload=b"{}",
            payload_bytes=2,
        )
    ]


async def test_each_delivery_of_an_event_brings_that_events_payload(store):
    lanes = [await a_lane_in(store) for _ in range(3)]
    publications = [a_publication(*lanes, payload=b"%d" % n) for n in range(20)]
    await accepted(store, *publications)
    loaded = await store.load([Want(lane, 20, 0) for lane in lanes], known=[], now=NOW)
    payloads = {delivery.id: delivery.payload for delivery in loaded}
    assert payloads == {
        delivery_of(p.event.id, ordinal): p.event.payload for p in publications for ordinal in range(3)
    }


async def test_ready_comes_by_seq_and_then_timed_by_due_time(store):
    lane = await a_lane_in(store)
    late = await published(store, lane, deliver_at=NOW + 20)
    early = await published(store, lane, deliver_at=NOW + 10)
    ready = [await published(store, lane) for _ in range(3)]
    assert await loaded_ids(store, lane, now=NOW + 30) == [*ready, early, late]


async def test_timed_rows_due_at_the_same_moment_come_by_id(store):
    lane = await a_lane_in(store)
    batch = [a_publication(lane, deliver_at=NOW + 10) for _ in range(5)]
    await accepted(store, *reversed(batch))
    assert await loaded_ids(store, lane, now=NOW + 10, timed=3) == [p.event.id for p in batch[:3]]


async def test_timed_rows_that_are_not_due_are_left(store):
    lane = await a_lane_in(store)
    delivery = await published(store, lane, deliver_at=NOW + 10)
    assert await loaded_ids(store, lane, now=NOW + 9) == []
    assert await loaded_ids(store, lane, now=NOW + 10) == [delivery]


async def test_a_row_that_is_due_does_not_bring_the_next_one_that_is_not(store):
    lane = await a_lane_in(store)
    due, _later = [await published(store, lane, deliver_at=NOW + wait) for wait in (10, 20)]
    assert await loaded_ids(store, lane, now=NOW + 15) == [due]


async def test_each_lane_gets_as_many_of_each_queue_as_it_wants(store):
    lanes = [await a_lane_in(store) for _ in range(4)]
    await accepted(store, *[a_publication(*lanes) for _ in range(6)])
    await accepted(store, *[a_publication(*lanes, deliver_at=NOW + 1) for _ in range(6)])
    wants = [Want(lanes[0], 1, 5), Want(lanes[1], 6, 0), Want(lanes[2], 0, 2), Want(lanes[3], 100, 100)]
    loaded = await store.load(wants, known=[], now=NOW + 1)
    got = {
        lane: tuple(
            sum(d.endpoint_id == lane and d.queue is queue for d in loaded)
            for queue in (Queue.READY, Queue.TIMED)
        )
        for lane in lanes
    }
    assert list(got.values()) == [(1, 5), (6, 0), (0, 2), (6, 6)]


async def test_known_deliveries_do_not_take_the_place_of_others(store):
    lane = await a_lane_in(store)
    ready = [await published(store, lane) for _ in range(4)]
    timed = [await published(store, lane, deliver_at=NOW + 1 + n) for n in range(4)]
    known = [*ready[:2], *timed[:2], delivery_of(ids.event(), 0)]
    loaded = await store.load([Want(lane, 1, 1)], known=known, now=NOW + 10)
    assert [delivery.id for delivery in loaded] == [ready[2], timed[2]]


async def test_thousands_of_known_ids_are_left_out(store):
    lane = await a_lane_in(store)
    batch = [a_publication(lane) for _ in range(3_000)]
    await accepted(store, *batch)
    known = [p.event.id for p in batch if p is not batch[1234]]
    loaded = await store.load([Want(lane, 10, 10)], known=known, now=NOW)
    assert [delivery.id for delivery in loaded] == [batch[1234].event.id]


async def test_a_floor_skips_what_lies_before_it(store):
    lane = await a_lane_in(store)
    batch = [a_publication(lane) for _ in range(5)]
    acceptance = await accepted(store, *batch)
    floor = acceptance.first_seq + 3
    assert await loaded_ids(store, lane, floor=floor) == [p.event.id for p in batch[3:]]


async def test_a_due_floor_skips_what_was_due_before_it(store):
    lane = await a_lane_in(store)
    timed = [await published(store, lane, deliver_at=NOW + n) for n in (1, 2, 3)]
    assert await loaded_ids(store, lane, now=NOW + 3, due_floor=NOW + 2) == timed[1:]


async def test_only_pending_deliveries_are_loaded(store):
    worker, lane = await an_owned_lane(store)
    done, retried, cancelled = [await published(store, lane.endpoint_id) for _ in range(3)]
    await store.cancel(cancelled, now=NOW)
    failed = an_attempt(retried, outcome=Outcome.TRANSIENT, status=500)
    await store.settle(
        worker,
        [
            a_settlement(done, lane.endpoint_id, epoch=lane.epoch),
            a_settlement(
                retried,
                lane.endpoint_id,
                epoch=lane.epoch,
                attempt=failed,
                state=State.PENDING,
                due_at=NOW + 30.25,
            ),
        ],
        now=NOW,
    )
    assert await loaded_ids(store, lane.endpoint_id, now=NOW + 30) == []
    [loaded] = await store.load([Want(lane.endpoint_id, 9, 9)], known=[], now=NOW + 31)
    assert (loaded.id, loaded.queue, loaded.attempts, loaded.due_at) == (
        retried,
        Queue.TIMED,
        1,
        NOW + 30.25,
    )


async def test_many_lanes_are_loaded_at_once(store):
    lanes = [await a_lane_in(store) for _ in range(70)]
    await accepted(store, *[a_publication(lane) for lane in lanes])
    loaded = await store.load([Want(lane, 2, 2) for lane in lanes], known=[], now=NOW)
    assert [delivery.endpoint_id for delivery in loaded] == lanes


async def test_a_lane_without_rows_and_a_lane_that_does_not_exist_load_nothing(store):
    lane = await a_lane_in(store)
    assert await store.load([Want(lane, 5, 5), Want(ids.endpoint(), 5, 5)], known=[], now=NOW) == []
    assert await store.load([], known=[], now=NOW) == []
