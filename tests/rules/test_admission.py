"""How many events may a commit take?"""

import pytest

from hookline.rules.admission import LEAST, MOST, at_once


@pytest.mark.parametrize(
    ("is_behind", "delivered", "expected"),
    [
        (False, 0, MOST),
        (False, 10_000, MOST),
        (True, 0, LEAST),
        (True, LEAST, LEAST),
        (True, 200, 150),
        (True, 400, 300),
        (True, 10_000, MOST),
    ],
)
def test_who_is_behind_accepts_less_than_it_delivers(is_behind, delivered, expected):
    assert at_once(is_behind=is_behind, delivered=delivered) == expected


def test_a_backlog_gets_smaller_however_much_is_published():
    """One loop does both, and accepts as much as it may: round for round, more is delivered than accepted."""
    accepted = MOST
    for _ in range(20):
        delivered = 600 - accepted
        accepted = at_once(is_behind=True, delivered=delivered)
    assert accepted < delivered
