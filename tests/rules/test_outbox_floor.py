"""The floor rises only over numbers that nobody can bring any more."""

import msgspec
import pytest

from hookline.rules.outbox_floor import Floor, after_look, asked

SLOW, QUICK = 0.006, 0.004


def looked(floor, *, began, took=SLOW, low=100, high=100, first=None, top=50):
    return after_look(
        floor, began=began, took=took, asked=asked(floor, now=began), low=low, high=high, first=first, top=top
    )


def test_a_quick_look_needs_none():
    assert looked(Floor(), began=0.0, took=QUICK).top is None


def test_it_rises_once_every_transaction_of_the_earlier_snapshot_has_ended():
    floor = looked(Floor(), began=0.0, low=90, high=100, top=50)
    assert (floor.value, floor.top, floor.high) == (0, 50, 100)
    assert looked(floor, began=2.0, low=99, high=120).value == 0, "transaction 99 may bring a lower number"
    assert looked(floor, began=2.0, low=100, high=120).value == 50


def test_a_later_snapshot_counts_only_by_its_own_low():
    """[O5: the xmin of a statement after LOOK has seen the end of a transaction that LOOK has not: 6 out of order.]

    Transaction 99 holds number 40. It commits after the second LOOK and before the question. LOOK itself has not seen
    number 40, so its own `low` must decide, and it is 99.
    """
    floor = looked(Floor(), began=0.0, low=99, high=100, top=50)
    unseen = looked(floor, began=2.0, low=99, high=101, first=51, top=60)
    assert unseen.value < 40
    seen = looked(floor, began=2.0, low=101, high=101, first=40, top=60)
    assert seen.value == 39


@pytest.mark.parametrize(("first", "expected"), [(None, 50), (51, 50), (50, 49), (10, 9)])
def test_it_never_rises_over_a_row_that_is_there(first, expected):
    floor = looked(Floor(), began=0.0)
    assert looked(floor, began=2.0, first=first, top=80).value == expected


def test_a_number_is_drawn_before_its_transaction_has_an_id():
    floor = looked(Floor(), began=0.0)
    assert looked(floor, began=0.9).value == 0
    assert looked(floor, began=1.0).value == 50


def test_it_never_sinks():
    floor = msgspec.structs.replace(looked(Floor(value=70), began=0.0), value=70)
    assert looked(floor, began=2.0, first=20).value == 70


def test_now_and_then_a_look_goes_without():
    floor = Floor(value=50, whole_at=10.0)
    assert asked(floor, now=39.9) == 50
    assert asked(floor, now=40.0) == 0
    assert looked(floor, began=40.0).whole_at == 40.0
    assert looked(floor, began=20.0).whole_at == 10.0


def test_there_is_none_without_snapshots():
    assert looked(Floor(), began=0.0, low=0, high=0) == Floor(whole_at=0.0)
