"""A settled 410 disables the endpoint that answered it, in the same commit."""

import msgspec
import pytest

from factories import NOW, a_note, a_settlement, an_attempt
from hookline.model import Outcome, Reason, State
from hookline.store.contract import Verdict
from refusing import refuse
from scenes import a_worker_in, an_endpoint_in, an_owned_lane, let_go, owned_by, published, wakes_at

pytestmark = pytest.mark.anyio

LATER = NOW + 60


def a_410(lane, delivery, *, gone=NOW, **fields):
    """The answer to an attempt at the endpoint as it was at `gone`."""
    attempt = an_attempt(delivery, outcome=Outcome.GONE, status=410)
    return a_settlement(
        delivery,
        lane.endpoint_id,
        **{"epoch": lane.epoch, "attempt": attempt, "state": State.DEAD, "reason": Reason.GONE, "gone": gone}
        | fields,
    )


async def endpoint_of(store, lane):
    [found] = await store.endpoints_by_id([lane.endpoint_id])
    return found


async def changes_of(store, n):
    return [(change.endpoint_id, change.kind) for change in (await store.pulse(seen=n)).changes]


async def changed(store, lane, **fields):
    """An operator changes the endpoint."""
    before = await endpoint_of(store, lane)
    after = msgspec.structs.replace(before, **fields, updated_at=before.updated_at + 1)
    assert await store.update_endpoint(after, was=before.updated_at, now=NOW + 1)
    return after


async def test_it_is_disabled_with_its_lane_and_everybody_is_told(store):
    worker, lane = await an_owned_lane(store)
    first, waiting = [await published(store, lane.endpoint_id) for _ in range(2)]
    n = (await store.catalogue()).n
    assert await store.settle(worker, [a_410(lane, first)], now=LATER) == [Verdict.APPLIED]
    found = await endpoint_of(store, lane)
    assert (found.enabled, found.updated_at) == (False, LATER)
    assert "410" in found.disabled_reason
    assert await changes_of(store, n) == [(lane.endpoint_id, "endpoint")]
    assert (await store.catalogue()).n == n + 1, "an accept that does not know of it yet is stale"
    assert (await store.delivery(waiting)).state is State.PENDING
    await let_go(store, worker, lane, wake_at=NOW)
    assert await store.take(await a_worker_in(store), limit=10, now=LATER) == [], "its lane is paused"


async def test_one_that_was_changed_since_is_left_as_it_is(store):
    """It has another URL now, or was enabled again: the old answer says nothing about it."""
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    after = await changed(store, lane, url="https://elsewhere.example/hooks")
    n = (await store.catalogue()).n
    assert await store.settle(worker, [a_410(lane, delivery)], now=LATER) == [Verdict.APPLIED]
    assert await endpoint_of(store, lane) == after
    assert await changes_of(store, n) == []
    assert (await store.delivery(delivery)).reason is Reason.GONE


async def test_a_late_one_disables_nothing(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await let_go(store, worker, lane)
    assert await store.settle(worker, [a_410(lane, delivery)], now=LATER) == [Verdict.LATE]
    assert (await endpoint_of(store, lane)).enabled


async def test_of_many_in_one_batch_each_endpoint_is_disabled_once(store):
    worker = await a_worker_in(store)
    lanes = [await owned_by(store, worker, (await an_endpoint_in(store)).id) for _ in range(3)]
    deliveries = [(lane, await published(store, lane.endpoint_id)) for lane in lanes for _ in range(3)]
    n = (await store.catalogue()).n
    batch = [a_410(lane, delivery) for lane, delivery in deliveries if lane is not lanes[1]]
    batch += [
        a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
        for lane, delivery in deliveries
        if lane is lanes[1]
    ]
    notes = [a_note(lane, hold_until=NOW + 5) for lane in lanes]
    assert set(await store.settle(worker, batch, notes=notes, now=LATER)) == {Verdict.APPLIED}
    assert [(await endpoint_of(store, lane)).enabled for lane in lanes] == [False, True, False]
    told = sorted((lane.endpoint_id, "endpoint") for lane in (lanes[0], lanes[2]))
    assert sorted(await changes_of(store, n)) == told
    assert [lane.hold_until for lane in await store.lanes([each.endpoint_id for each in lanes])] == [
        NOW + 5
    ] * 3


async def test_a_repeat_answers_as_the_first_time_and_disables_nothing_twice(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    batch = [a_410(lane, delivery)]
    assert await store.settle(worker, batch, now=LATER) == [Verdict.APPLIED]
    enabled = await changed(store, lane, enabled=True, disabled_reason=None)
    assert await store.settle(worker, batch, now=LATER + 60) == [Verdict.REPEATED]
    assert await endpoint_of(store, lane) == enabled


async def test_where_it_cannot_be_disabled_nothing_is_settled_either(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await refuse(store, "lanes", "paused" if "Postgres" in type(store).__name__ else "paused = 1")
    with pytest.raises(Exception, match="refuses"):
        await store.settle(worker, [a_410(lane, delivery)], now=LATER)
    assert (await endpoint_of(store, lane)).enabled
    assert (await store.delivery(delivery)).state is State.PENDING
    assert await store.attempts(delivery) == []


async def test_an_endpoint_that_is_gone_by_then_is_nobodys(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.delete_endpoint(lane.endpoint_id, now=NOW)
    n = (await store.catalogue()).n
    assert await store.settle(worker, [a_410(lane, delivery)], now=LATER) == [Verdict.APPLIED]
    assert await changes_of(store, n) == []
    assert await wakes_at(store, lane.endpoint_id) == float("inf")
