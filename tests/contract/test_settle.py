"""What happens to a delivery when its attempt is settled."""

import msgspec
import pytest

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.ids import delivery_of
from hookline.model import Delivery, ErrorKind, Outcome, Queue, Reason, State
from hookline.store.contract import Verdict
from scenes import a_lane_in, accepted, an_owned_lane, owned_by, published

pytestmark = pytest.mark.anyio


async def a_delivery_with(store, settlement_of, *, now=NOW + 1):
    """A delivery after the settlement that the function makes for it."""
    worker, lane = await an_owned_lane(store)
    publication = a_publication(lane.endpoint_id)
    acceptance = await accepted(store, publication)
    id = delivery_of(publication.event.id, 0)
    assert await store.settle(worker, [settlement_of(id, lane)], now=now) == [Verdict.APPLIED]
    expected = Delivery(
        id=id,
        event_id=publication.event.id,
        endpoint_id=lane.endpoint_id,
        account="default",
        event_type="order.paid",
        state=State.PENDING,
        queue=Queue.READY,
        seq=acceptance.first_seq,
        attempts=1,
        replays=0,
        due_at=NOW,
        created_at=NOW,
        last_duration=0.125,
    )
    return expected, await store.delivery(id)


def changed(delivery, **fields):
    return msgspec.structs.replace(delivery, **fields)


async def test_an_accepted_attempt_delivers(store):
    expected, found = await a_delivery_with(
        store, lambda id, lane: a_settlement(id, lane.endpoint_id, epoch=lane.epoch)
    )
    assert found == changed(expected, state=State.DELIVERED, done_at=NOW + 1, last_status=200)


async def test_a_failed_attempt_with_another_to_come_waits_in_the_timed_queue(store):
    expected, found = await a_delivery_with(
        store,
        lambda id, lane: a_settlement(
            id,
            lane.endpoint_id,
            epoch=lane.epoch,
            state=State.PENDING,
            due_at=NOW + 30.5,
            attempt=an_attempt(
                id,
                outcome=Outcome.TRANSIENT,
                status=None,
                error=ErrorKind.TIMEOUT,
                error_detail="no answer in 10 s",
            ),
        ),
    )
    assert found == changed(
        expected,
        queue=Queue.TIMED,
        due_at=NOW + 30.5,
        last_error=ErrorKind.TIMEOUT,
        last_error_detail="no answer in 10 s",
    )


async def test_the_last_failed_attempt_leaves_a_dead_letter(store):
    expected, found = await a_delivery_with(
        store,
        lambda id, lane: a_settlement(
            id,
            lane.endpoint_id,
            epoch=lane.epoch,
            state=State.DEAD,
            reason=Reason.EXHAUSTED,
            attempt=an_attempt(id, outcome=Outcome.TRANSIENT, status=503, error=ErrorKind.HTTP_5XX),
        ),
    )
    assert found == changed(
        expected,
        state=State.DEAD,
        done_at=NOW + 1,
        reason=Reason.EXHAUSTED,
        last_status=503,
        last_error=ErrorKind.HTTP_5XX,
    )


async def test_attempts_count_up_from_settle_to_settle(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    for number in (1, 2, 3):
        settlement = a_settlement(
            id,
            lane.endpoint_id,
            epoch=lane.epoch,
            attempt=an_attempt(id, number=number, outcome=Outcome.TRANSIENT, status=500 + number),
            state=State.PENDING,
        )
        assert await store.settle(worker, [settlement], now=NOW) == [Verdict.APPLIED]
    found = await store.delivery(id)
    assert (found.attempts, found.last_status) == (3, 503)


async def test_two_attempts_of_one_delivery_may_be_settled_in_one_batch(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    failed = a_settlement(
        id,
        lane.endpoint_id,
        epoch=lane.epoch,
        attempt=an_attempt(id, outcome=Outcome.TRANSIENT, status=500),
        state=State.PENDING,
    )
    await store.settle(worker, [failed], now=NOW)
    others = [await published(store, lane.endpoint_id) for _ in range(3)]
    second = a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=an_attempt(id, number=2))
    batch = [failed, second, *(a_settlement(o, lane.endpoint_id, epoch=lane.epoch) for o in others)]
    assert await store.settle(worker, batch, now=NOW) == [Verdict.REPEATED] + [Verdict.APPLIED] * 4


async def test_a_batch_in_doubt_is_answered_repeated(store):
    worker, lane = await an_owned_lane(store)
    deliveries = [await published(store, lane.endpoint_id) for _ in range(20)]
    batch = [a_settlement(id, lane.endpoint_id, epoch=lane.epoch) for id in deliveries]
    assert await store.settle(worker, batch, now=NOW) == [Verdict.APPLIED] * 20
    before = [await store.delivery(id) for id in deliveries]
    assert await store.settle(worker, batch, now=NOW + 9) == [Verdict.REPEATED] * 20
    assert [await store.delivery(id) for id in deliveries] == before


async def test_verdicts_come_in_the_order_of_the_batch(store):
    worker, lane = await an_owned_lane(store)
    first, second, third = [await published(store, lane.endpoint_id) for _ in range(3)]
    repeated = a_settlement(second, lane.endpoint_id, epoch=lane.epoch)
    await store.settle(worker, [repeated], now=NOW)
    batch = [
        a_settlement(third, lane.endpoint_id, epoch=lane.epoch),
        a_settlement(first, lane.endpoint_id, epoch=lane.epoch + 1),
        repeated,
    ]
    assert await store.settle(worker, batch, now=NOW) == [Verdict.APPLIED, Verdict.LATE, Verdict.REPEATED]


async def test_a_large_batch_over_many_lanes_is_settled_at_once(store):
    worker, _ = await an_owned_lane(store)
    lanes = [await owned_by(store, worker, await a_lane_in(store)) for _ in range(20)]
    publications = [a_publication(*(lane.endpoint_id for lane in lanes)) for _ in range(30)]
    await accepted(store, *publications)
    batch = [
        a_settlement(delivery_of(p.event.id, n), lane.endpoint_id, epoch=lane.epoch)
        for p in publications
        for n, lane in enumerate(lanes)
    ]
    assert await store.settle(worker, batch, now=NOW) == [Verdict.APPLIED] * 600
    assert (await store.counts())[State.DELIVERED] == 600


async def test_an_empty_batch_settles_nothing(store):
    worker, _ = await an_owned_lane(store)
    assert await store.settle(worker, [], now=NOW) == []


async def test_what_was_recorded_late_stays_late_also_when_it_would_apply_by_now(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    at = {"epoch": lane.epoch, "state": State.PENDING, "due_at": NOW}
    first = an_attempt(delivery, number=1, outcome=Outcome.TRANSIENT, status=500)
    second = an_attempt(delivery, number=2, outcome=Outcome.TRANSIENT, status=500)
    early = a_settlement(delivery, lane.endpoint_id, attempt=second, **at)
    assert await store.settle(worker, [early], now=NOW) == [Verdict.LATE]
    on_time = a_settlement(delivery, lane.endpoint_id, attempt=first, **at)
    assert await store.settle(worker, [on_time], now=NOW) == [Verdict.APPLIED]
    assert await store.settle(worker, [early], now=NOW) == [Verdict.LATE]
    found = await store.delivery(delivery)
    assert found.attempts == 1
    assert {each.id: each.late for each in await store.attempts(delivery)} == {
        first.id: False,
        second.id: True,
    }


async def test_what_was_recorded_late_in_one_life_does_not_count_in_the_next(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    ahead = an_attempt(delivery, number=1, replays=1)
    settlement = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch, attempt=ahead)
    assert await store.settle(worker, [settlement], now=NOW) == [Verdict.LATE]
    await store.cancel(delivery, now=NOW)
    await store.redrive(delivery, now=NOW)
    assert await store.settle(worker, [settlement], now=NOW) == [Verdict.LATE]
    assert (await store.delivery(delivery)).state is State.PENDING
