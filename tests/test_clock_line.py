"""The time of a file that was found ahead converges with the right time."""

import pytest

from hookline.clock import Timeline

LINE = Timeline(store=1_000.0, right=400.0, rate=0.5)  # they meet at 1,600


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (100.0, 100.0),  # written by a right clock, before
        (400.0, 400.0),
        (900.0, 400.0),  # written by the one that was ahead: not later than the moment it was found
        (1_000.0, 400.0),
        (1_100.0, 600.0),
        (1_600.0, 1_600.0),
        (1_700.0, 1_700.0),
    ],
)
def test_a_time_of_the_stores_is_shown_as_the_right_one(at, shown):
    assert LINE.shown(at) == shown


def test_what_is_asked_for_from_a_moment_on_is_what_is_shown_from_it_on():
    times = [float(at) for at in range(0, 2_000, 7)]
    for moment in (float(at) for at in range(3, 2_000, 11)):
        first = LINE.asked(moment)
        assert [at for at in times if at >= first] == [at for at in times if LINE.shown(at) >= moment]


def test_what_is_shown_keeps_the_order():
    shown = [LINE.shown(float(at)) for at in range(0, 2_000, 7)]
    assert shown == sorted(shown)
