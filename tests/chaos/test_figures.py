"""The figures are computed correctly."""

import pytest

from tests.chaos.catcher import Manner
from tests.chaos.figures import most_at_once, most_within, percentile, slope
from tests.chaos.whole import part_of


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [((), 0.99, 0.0), ((7.0,), 0.5, 7.0), ((4.0, 1.0, 3.0, 2.0), 0.5, 2.0), (range(1, 101), 0.99, 99)],
)
def test_a_percentile_is_one_of_the_values(values, share, found):
    assert percentile(values, share) == found


def test_a_window_counts_what_lies_within_it_wherever_it_begins():
    assert most_within([0.0, 0.9, 1.0, 1.5, 1.8, 3.0], 1.0) == 4
    assert most_within([], 1.0) == 0


def test_what_begins_when_another_ends_does_not_overlap_it():
    assert most_at_once([(0.0, 1.0), (1.0, 2.0), (1.5, 3.0)]) == 2


def test_a_slope_is_growth_by_unit():
    assert slope([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == 2.0
    assert slope([(1.0, 5.0)]) == 0.0


def test_a_receiver_of_little_capacity_answers_in_turn_and_refuses_what_would_wait_too_long():
    manner = Manner(latency=0.5, per_second=10, queue=2)
    assert [manner.answer(0.0) for _ in range(4)] == [
        (200, 0.5),
        (200, pytest.approx(0.6)),
        (200, pytest.approx(0.7)),
        (503, 0.0),
    ]
    assert manner.answer(1.0) == (200, 0.5)


@pytest.mark.parametrize(
    ("row", "part"), [("F01", "L1"), ("F20", "L1"), ("F12", "L2"), ("F36", "L2"), ("F24", "L3")]
)
def test_every_row_is_in_one_part_of_the_long_set(row, part):
    assert part_of(row) == part
