"""Which waits a Retry-After header can ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.rules.retry_after import LONGEST_ASKED, asked_wait

WALL = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0),
        ("3", 3.0),
        (" 120 ", 120.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("１２", None),
        ("9" * 65, None),
        ("86400", 86_400.0),
        ("86401", LONGEST_ASKED),
        ("9" * 64, LONGEST_ASKED),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_ASKED),
        ("Fri, 31 Dec 9999 23:59:59 -2359", LONGEST_ASKED),
        ("nan", None),
        ("inf", None),
        ("Sun, 99 Nov 1994 08:50:37 GMT", None),
    ],
)
def test_seconds_or_a_date_and_nothing_else(value, expected):
    assert asked_wait(value, wall=WALL) == expected


@given(st.text(max_size=80))
def test_whatever_a_receiver_sends_is_a_wait_or_nothing(value):
    asked = asked_wait(value, wall=WALL)
    assert asked is None or 0 <= asked <= LONGEST_ASKED
