"""How much is done before others have their turn."""

import pytest

from hookline.rules.loop_budget import (
    SLICE,
    LoopBudget,
    of_payload,
    of_schema,
)


def test_a_slice_is_spent_when_its_units_are_taken_and_knows_the_longest_turn():
    slice = LoopBudget()
    slice.take(SLICE - 1)
    assert not slice.is_spent
    slice.take(500)
    assert slice.is_spent
    slice.begin()
    assert not slice.is_spent
    slice.take(10)
    slice.begin()
    assert slice.longest == SLICE + 499


def test_reading_a_large_payload_spends_a_slice():
    assert of_payload(100) < SLICE < of_payload(1_048_576)


@pytest.mark.parametrize(
    ("size", "weight", "expected"),
    [(0, 1, 1), (1_000, 1, 2), (10_000, 50, 501), (1_048_576, 1, None), (32_768, 100, None)],
)
def test_a_check_that_takes_long_is_not_for_the_loop(size, weight, expected):
    assert of_schema(size, weight) == expected
