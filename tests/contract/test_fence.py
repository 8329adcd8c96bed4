"""What a worker that lost its lane, or an attempt that came too late, can still change."""

import asyncio

import msgspec
import pytest

from factories import NOW, a_settlement, an_attempt, ids
from hookline.model import State
from hookline.store.contract import Release, Verdict
from scenes import a_lane_in, a_worker_in, an_owned_lane, died, owned_by, published

pytestmark = pytest.mark.anyio


async def settles_late(store, worker, settlement):
    """Check that the verdict is LATE, the delivery is as before, and the attempt is stored and marked."""
    id = settlement.attempt.delivery_id
    before = await store.delivery(id)
    assert await store.settle(worker, [settlement], now=NOW) == [Verdict.LATE]
    assert await store.delivery(id) == before
    kept = msgspec.structs.replace(settlement.attempt, late=True)
    assert kept in await store.attempts(id)
    # Its answer may be lost like any other.
    assert await store.settle(worker, [settlement], now=NOW) == [Verdict.LATE]
    assert (await store.attempts(id)).count(kept) == 1


async def a_delivery(store):
    worker, lane = await an_owned_lane(store)
    id = await published(store, lane.endpoint_id)
    return worker, lane, id


async def test_a_buried_worker_settles_nothing(store):
    worker, lane, id = await a_delivery(store)
    await store.bury(worker, beat=0, now=NOW)
    await settles_late(store, worker, a_settlement(id, lane.endpoint_id, epoch=lane.epoch))


async def test_an_unknown_worker_settles_nothing(store):
    _, lane, id = await a_delivery(store)
    await settles_late(store, ids.worker(), a_settlement(id, lane.endpoint_id, epoch=lane.epoch))


async def test_a_worker_that_does_not_own_the_lane_settles_nothing(store):
    _, lane, id = await a_delivery(store)
    other = await a_worker_in(store)
    await settles_late(store, other, a_settlement(id, lane.endpoint_id, epoch=lane.epoch))


async def test_a_lane_won_back_in_another_epoch_does_not_let_an_old_attempt_in(store):
    worker, lane, id = await a_delivery(store)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW)
    await owned_by(store, worker, lane.endpoint_id)
    await settles_late(store, worker, a_settlement(id, lane.endpoint_id, epoch=lane.epoch))


async def test_a_released_lane_lets_nothing_in(store):
    worker, lane, id = await a_delivery(store)
    await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW)
    await settles_late(store, worker, a_settlement(id, lane.endpoint_id, epoch=lane.epoch))


@pytest.mark.parametrize("number", [2, 3])
async def test_an_attempt_with_the_wrong_number_settles_nothing(store, number):
    worker, lane, id = await a_delivery(store)
    attempt = an_attempt(id, number=number)
    await settles_late(store, worker, a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=attempt))


async def test_an_attempt_of_another_life_settles_nothing(store):
    worker, lane, id = await a_delivery(store)
    await died(store, worker, lane, id)
    await store.redrive(id, now=NOW)
    old = an_attempt(id, number=1, replays=0)
    await settles_late(store, worker, a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=old))
    new = an_attempt(id, number=1, replays=1)
    settlement = a_settlement(id, lane.endpoint_id, epoch=lane.epoch, attempt=new)
    assert await store.settle(worker, [settlement], now=NOW) == [Verdict.APPLIED]


async def test_a_delivery_that_is_no_longer_pending_is_not_settled_again(store):
    worker, lane, id = await a_delivery(store)
    await store.cancel(id, now=NOW)
    await settles_late(store, worker, a_settlement(id, lane.endpoint_id, epoch=lane.epoch))


async def test_an_attempt_settles_only_a_delivery_of_its_own_lane(store):
    worker, _, id = await a_delivery(store)
    other = await owned_by(store, worker, await a_lane_in(store))
    await settles_late(store, worker, a_settlement(id, other.endpoint_id, epoch=other.epoch))


async def test_one_late_settlement_does_not_keep_the_others_out(store):
    worker, lane, id = await a_delivery(store)
    lost = await owned_by(store, await a_worker_in(store), await a_lane_in(store))
    theirs = await published(store, lost.endpoint_id)
    batch = [
        a_settlement(theirs, lost.endpoint_id, epoch=lost.epoch),
        a_settlement(id, lane.endpoint_id, epoch=lane.epoch),
    ]
    assert await store.settle(worker, batch, now=NOW) == [Verdict.LATE, Verdict.APPLIED]
    assert (await store.counts()) == {
        State.PENDING: 1,
        State.DELIVERED: 1,
        State.DEAD: 0,
        State.CANCELLED: 0,
    }


async def test_of_a_settle_and_a_burial_at_once_a_settle_that_was_applied_came_first(store):
    worker, lane = await an_owned_lane(store)
    deliveries = [await published(store, lane.endpoint_id) for _ in range(20)]
    batch = [a_settlement(id, lane.endpoint_id, epoch=lane.epoch) for id in deliveries]
    answers = await asyncio.gather(
        *(store.settle(worker, [settlement], now=NOW) for settlement in batch[:10]),
        store.bury(worker, beat=0, now=NOW),
        *(store.settle(worker, [settlement], now=NOW) for settlement in batch[10:]),
    )
    verdicts = [answer[0] for answer in answers if isinstance(answer, list)]
    for id, verdict in zip(deliveries, verdicts, strict=True):
        state = (await store.delivery(id)).state
        assert (verdict, state) in {(Verdict.APPLIED, State.DELIVERED), (Verdict.LATE, State.PENDING)}
