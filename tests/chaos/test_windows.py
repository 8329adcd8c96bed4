"""Moments are counted as the limits count them."""

import pytest

from tests.chaos.checker import Receipt
from tests.chaos.windows import gap_after, most_at_once, most_within


@pytest.mark.parametrize(
    ("moments", "most"),
    [([], 0), ([5.0], 1), ([0.0, 1.0], 1), ([0.0, 0.999], 2), ([3.0, 0.0, 0.5, 0.9, 1.4], 3)],
)
def test_a_window_does_not_hold_its_end(moments, most):
    assert most_within(moments, 1.0) == most


@pytest.mark.parametrize(
    ("spans", "most"),
    [([(0, 1), (1, 2)], 1), ([(0, 3), (1, 2), (2, 4)], 2), ([(0, 2), (1, 3), (1.5, 1.6)], 3)],
)
def test_requests_are_open_together_only_if_one_begins_before_the_other_ends(spans, most):
    receipts = [Receipt("e", "d", "/0", began, ended=ended) for began, ended in spans]
    assert most_at_once(receipts) == most


def test_a_gap_ends_with_the_next_moment():
    assert gap_after([1.0, 2.0, 5.0, 6.0], 2.5) == 2.5
    assert gap_after([1.0], 2.5) == 0.0
