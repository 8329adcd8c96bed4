"""The store tells a row that the database refuses from a database that refuses everything."""

import msgspec
import pytest

from factories import NOW, a_note, a_settlement, an_attempt
from hookline.errors import RowRefused
from hookline.model import Circuit, State
from hookline.store.contract import Release, Verdict
from refusing import refuse
from scenes import an_owned_lane, published

pytestmark = pytest.mark.anyio

HUGE = 2**70  # no numeric column holds it


async def test_a_settlement_that_cannot_be_written_is_a_refused_row_and_leaves_nothing(store):
    worker, lane = await an_owned_lane(store)
    good, bad = [await published(store, lane.endpoint_id) for _ in range(2)]
    settlements = [
        a_settlement(good, lane.endpoint_id, epoch=lane.epoch),
        a_settlement(bad, lane.endpoint_id, epoch=lane.epoch, attempt=an_attempt(bad, status=HUGE)),
    ]
    with pytest.raises(RowRefused):
        await store.settle(worker, settlements, now=NOW)
    assert (await store.counts())[State.PENDING] == 2
    assert await store.settle(worker, settlements[:1], now=NOW) == [Verdict.APPLIED]


async def test_a_settlement_that_a_rule_of_the_database_forbids_is_a_refused_row(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await refuse(store, "attempts", "duration > 100")
    slow = an_attempt(delivery, duration=101.0)
    with pytest.raises(RowRefused):
        await store.settle(
            worker, [a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch, attempt=slow)], now=NOW
        )
    quick = msgspec.structs.replace(slow, duration=99.0)
    [verdict] = await store.settle(
        worker, [a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch, attempt=quick)], now=NOW
    )
    assert verdict is Verdict.APPLIED


async def test_a_note_that_cannot_be_written_is_a_refused_row(store):
    worker, lane = await an_owned_lane(store)
    note = a_note(lane, circuit=Circuit(failures=HUGE))
    with pytest.raises(RowRefused):
        await store.note(worker, [note], now=NOW)
    delivery = await published(store, lane.endpoint_id)
    settlement = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
    with pytest.raises(RowRefused):
        await store.settle(worker, [settlement], notes=[note], now=NOW)
    assert await store.settle(worker, [settlement], now=NOW) == [Verdict.APPLIED]


async def test_a_release_that_a_rule_of_the_database_forbids_is_a_refused_row(store):
    worker, lane = await an_owned_lane(store)
    await refuse(store, "lanes", "tokens > 100")
    with pytest.raises(RowRefused):
        await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW, 101.0, NOW)], now=NOW)
    assert await store.release(worker, [Release(lane.endpoint_id, lane.epoch, NOW)], now=NOW)


async def test_nothing_at_all_is_never_refused(store):
    worker, _ = await an_owned_lane(store)
    assert await store.settle(worker, [], now=NOW) == []
    assert await store.note(worker, [], now=NOW) == []
    assert await store.release(worker, [], now=NOW) == []
