"""When an endpoint counts as slow."""

from hookline.rules.slowness import is_slow_day, is_very_slow_day


def test_a_day_is_slow_above_two_seconds_and_with_enough_attempts():
    assert is_slow_day(20, 2.1)
    assert not is_slow_day(20, 2.0)
    assert not is_slow_day(19, 9.0)
    assert not is_slow_day(0, None)


def test_a_day_is_very_slow_above_five_seconds_and_with_enough_attempts():
    assert is_very_slow_day(20, 5.1)
    assert not is_very_slow_day(20, 5.0)
    assert not is_very_slow_day(19, 9.0)
    assert not is_very_slow_day(0, None)
