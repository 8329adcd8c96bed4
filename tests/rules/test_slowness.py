"""When an endpoint counts as slow."""

from hookline.rules.slowness import is_slow_day, is_very_slow, p95


def test_the_95th_percentile_is_the_19th_of_twenty():
    assert p95([float(n) for n in range(1, 21)]) == 19.0
    assert p95([1.0]) == 1.0


def test_nothing_is_said_about_fewer_than_twenty_samples():
    assert not is_very_slow([9.0] * 19)
    assert is_very_slow([9.0] * 20)


def test_a_few_slow_answers_do_not_make_an_endpoint_slow():
    assert not is_very_slow([0.1] * 19 + [9.0])
    assert is_very_slow([0.1] * 18 + [9.0] * 2)


def test_a_day_is_slow_above_two_seconds_and_with_enough_attempts():
    assert is_slow_day(20, 2.1)
    assert not is_slow_day(20, 2.0)
    assert not is_slow_day(19, 9.0)
    assert not is_slow_day(0, None)
