"""What an owner knows fits into a heartbeat, and says when it does not."""

import pytest

from hookline.rules.worker_status import (
    MOST_BYTES,
    KnownLane,
    WorkerStatus,
    held_back,
    is_trusted,
    packed,
    unpacked,
)


def an_id(n: int) -> bytes:
    return n.to_bytes(16)


LANES = [KnownLane(an_id(2), "rate", 0), KnownLane(an_id(1), "slot", 3)]


def test_what_is_packed_is_read_again():
    status = unpacked(packed(LANES, {an_id(8), an_id(7)}))
    assert status == WorkerStatus((LANES[1], LANES[0]), an_id(7) + an_id(8))
    assert status.deliveries() == {an_id(7), an_id(8)}


def test_the_same_knowledge_is_the_same_bytes():
    assert packed(LANES, [an_id(7), an_id(8)]) == packed(LANES[::-1], [an_id(8), an_id(7)])


def test_who_has_nothing_to_say_says_nothing():
    assert packed([], []) == b""
    assert unpacked(b"") == WorkerStatus()


@pytest.mark.parametrize(("lanes", "sending"), [(5_000, 0), (0, 5_000), (5_000, 5_000), (800, 1_000)])
def test_more_than_fits_is_cut_and_marked(lanes, sending):
    known = [KnownLane(an_id(n), "receiver", 1_000) for n in range(lanes)]
    written = packed(known, [an_id(n) for n in range(sending)])
    assert len(written) <= MOST_BYTES
    status = unpacked(written)
    assert status.is_cut
    assert status.lanes == tuple(known[: len(status.lanes)])
    assert len(status.lanes) + len(status.deliveries()) > 700


def test_what_fits_is_not_cut():
    known = [KnownLane(an_id(n), "receiver", 1_000) for n in range(400)]
    status = unpacked(packed(known, [an_id(n) for n in range(1_000)]))
    assert (len(status.lanes), len(status.deliveries()), status.is_cut) == (400, 1_000, False)


def test_of_what_cannot_be_read_nothing_is_known():
    assert unpacked(b"another version") == WorkerStatus(is_cut=True)


@pytest.mark.parametrize(("silent", "believed"), [(-1.0, True), (6.0, True), (6.1, False)])
def test_a_worker_is_believed_for_three_heartbeats(silent, believed):
    assert is_trusted(silent=silent, heartbeat=2.0) is believed


def test_a_limit_holds_a_lane_back_and_a_missing_slot_or_an_order_does_not():
    words = ("circuit", "receiver", "rate", "due", "slot", "order")
    lanes = tuple(KnownLane(an_id(n), word, 0) for n, word in enumerate(words))
    assert held_back([WorkerStatus(lanes[:3]), WorkerStatus(lanes[3:])]) == [an_id(n) for n in range(4)]
