"""What an owner knows of its lane outlives the owner, and only the owner can write it."""

import msgspec
import pytest

from factories import NOW, a_note, a_settlement, ids
from hookline.model import CLOSED, FOREVER, LONG_AGO, Circuit, CircuitSlice, CircuitState
from hookline.store.contract import LaneRow, Verdict
from scenes import a_lane_in, a_worker_in, an_owned_lane, let_go, owned_by, published

pytestmark = pytest.mark.anyio

OPEN = Circuit(
    state=CircuitState.OPEN,
    failures=40_000,
    slices=(CircuitSlice(28_333_333, 17, 9), CircuitSlice(28_333_334, 1, 0)),
    cooldown=0.3,
    opened_at=NOW + 0.000001,
    probe_at=NOW + 300.123456,
    reason="5 failures in a row: \x00 \U0001f4a5",
    last_success_at=NOW - 12.5,
    last_failure_at=NOW - 0.25,
)


def as_written(circuit):
    """The note with its reason as stored: PostgreSQL cannot hold a NUL."""
    assert circuit.reason in (OPEN.reason, OPEN.reason.replace("\0", "\ufffd"))
    return msgspec.structs.replace(circuit, reason=OPEN.reason)


@pytest.fixture(params=["alone", "with a settlement", "with no settlement"])
def write(request, store):
    """Writes notes in each of the ways; returns the lanes whose notes were accepted, where the way tells."""

    async def write(worker, lane, *notes):
        if request.param == "alone":
            return await store.note(worker, notes, now=NOW)
        batch = []
        if request.param == "with a settlement":
            delivery = await published(store, lane.endpoint_id)
            batch = [a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)]
        await store.settle(worker, batch, notes=notes, now=NOW)
        return None

    return write


async def lane_of(store, lane):
    [found] = await store.lanes([lane.endpoint_id])
    return found


async def test_the_next_owner_finds_what_the_last_one_wrote(store, write):
    worker, lane = await an_owned_lane(store)
    head = await published(store, lane.endpoint_id)
    note = a_note(lane, hold_until=NOW + 7, head=head, circuit=OPEN, applied=3, rest_until=NOW + 6)
    assert await write(worker, lane, note) in (None, [lane.endpoint_id])
    await let_go(store, worker, lane, wake_at=NOW)
    [taken] = await store.take(await a_worker_in(store), limit=1, now=NOW)
    assert (taken.hold_until, taken.head, taken.applied, taken.rest_until) == (NOW + 7, head, 3, NOW + 6)
    assert as_written(taken.circuit) == OPEN


async def test_an_owner_finds_it_again_and_readers_see_it(store, write):
    worker, lane = await an_owned_lane(store)
    await write(
        worker, lane, a_note(lane, hold_until=NOW + 7, head=ids.attempt(), circuit=OPEN, rest_until=NOW + 6)
    )
    [owned] = await store.owned(worker)
    seen = await lane_of(store, lane)
    assert (seen.owner, seen.hold_until, seen.head) == (worker, NOW + 7, owned.head)
    assert owned.rest_until == seen.rest_until == NOW + 6
    assert seen.circuit == owned.circuit
    assert as_written(seen.circuit) == OPEN


async def test_a_lane_nobody_wrote_about_is_closed_and_not_held(store):
    lane = await a_lane_in(store)
    assert await store.lanes([lane, ids.endpoint()]) == [LaneRow(lane, None, LONG_AGO, None, CLOSED)]
    assert await store.lanes([]) == []


@pytest.mark.parametrize("time", [FOREVER, LONG_AGO])
async def test_never_and_always_are_times_like_others(store, write, time):
    worker, lane = await an_owned_lane(store)
    circuit = Circuit(opened_at=time, probe_at=time, last_success_at=time, last_failure_at=time)
    await write(worker, lane, a_note(lane, hold_until=time, circuit=circuit))
    [owned] = await store.owned(worker)
    assert (owned.hold_until, owned.circuit) == (time, circuit)


async def test_a_note_replaces_all_of_the_one_before(store, write):
    worker, lane = await an_owned_lane(store)
    await write(worker, lane, a_note(lane, hold_until=NOW + 7, head=ids.attempt(), circuit=OPEN, applied=2))
    await write(worker, lane, a_note(lane))
    [owned] = await store.owned(worker)
    assert (owned.hold_until, owned.head, owned.circuit) == (LONG_AGO, None, CLOSED)
    assert owned.applied == 2  # what was done stays done


async def test_of_two_notes_on_one_lane_the_last_counts(store, write):
    worker, lane = await an_owned_lane(store)
    await write(worker, lane, a_note(lane, hold_until=NOW + 1), a_note(lane, hold_until=NOW + 2))
    assert (await lane_of(store, lane)).hold_until == NOW + 2


async def test_only_the_lanes_named_are_written(store, write):
    worker, lane = await an_owned_lane(store)
    other = await owned_by(store, worker, await a_lane_in(store))
    await write(worker, lane, a_note(lane, hold_until=NOW + 1))
    assert (await lane_of(store, other)).hold_until == LONG_AGO


async def test_a_note_of_another_epoch_is_not_taken(store, write):
    worker, lane = await an_owned_lane(store)
    await let_go(store, worker, lane)
    again = await owned_by(store, worker, lane.endpoint_id)
    assert await write(worker, again, a_note(lane, circuit=OPEN)) in (None, [])
    assert (await lane_of(store, lane)).circuit == CLOSED


async def test_a_note_by_another_worker_is_not_taken(store, write):
    _, lane = await an_owned_lane(store)
    other, own = await an_owned_lane(store)
    assert await write(other, own, a_note(lane, circuit=OPEN)) in (None, [])
    assert (await lane_of(store, lane)).circuit == CLOSED


async def test_a_note_on_a_free_lane_is_not_taken(store, write):
    worker, lane = await an_owned_lane(store)
    await let_go(store, worker, lane)
    assert await write(worker, lane, a_note(lane, circuit=OPEN)) in (None, [])
    assert (await lane_of(store, lane)).circuit == CLOSED


async def test_a_note_by_a_buried_worker_is_not_taken(store, write):
    worker, lane = await an_owned_lane(store)
    await store.bury(worker, beat=0, now=NOW)
    assert await write(worker, lane, a_note(lane, circuit=OPEN)) in (None, [])
    assert (await lane_of(store, lane)).circuit == CLOSED


async def test_a_note_is_kept_beside_a_settlement_that_is_late(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await store.cancel(delivery, now=NOW)
    late = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)
    note = a_note(lane, hold_until=NOW + 3)
    assert await store.settle(worker, [late], notes=[note], now=NOW) == [Verdict.LATE]
    assert (await lane_of(store, lane)).hold_until == NOW + 3


async def test_a_batch_repeated_with_its_notes_answers_and_leaves_the_same(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    batch, notes = (
        [a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch)],
        [a_note(lane, hold_until=NOW + 3)],
    )
    assert await store.settle(worker, batch, notes=notes, now=NOW) == [Verdict.APPLIED]
    assert await store.settle(worker, batch, notes=notes, now=NOW) == [Verdict.REPEATED]
    assert (await lane_of(store, lane)).hold_until == NOW + 3


async def test_many_lanes_are_noted_at_once(store):
    worker = await a_worker_in(store)
    lanes = await store.take_these(worker, [await a_lane_in(store) for _ in range(70)], now=NOW)
    notes = [
        a_note(lane, hold_until=NOW + n, head=ids.attempt() if n % 2 else None)
        for n, lane in enumerate(lanes)
    ]
    assert sorted(await store.note(worker, notes, now=NOW)) == sorted(lane.endpoint_id for lane in lanes)
    found = {lane.endpoint_id: lane for lane in await store.lanes([lane.endpoint_id for lane in lanes])}
    for note in notes:
        lane = found[note.endpoint_id]
        assert (lane.hold_until, lane.head) == (note.hold_until, note.head)


async def test_a_dead_owners_notes_are_kept(store):
    worker, lane = await an_owned_lane(store)
    await store.note(worker, [a_note(lane, hold_until=NOW + 3)], now=NOW)
    await store.bury(worker, beat=0, now=NOW)
    await store.free(worker, now=NOW)
    assert await lane_of(store, lane) == LaneRow(lane.endpoint_id, None, NOW + 3, None, CLOSED)
