"""What is too old to be kept, and how much of it is deleted at once."""

from hookline.rules.retention import (
    DAY,
    LEAST_STEP,
    STEP_S,
    CutOffs,
    Keep,
    cut_offs,
    keep_from_days,
    next_step,
)

NEVER = float("-inf")


def test_days_are_of_86_400_seconds_and_none_are_for_ever():
    assert keep_from_days(delivered=30, dead=90) == Keep(done=30 * DAY, dead=90 * DAY)
    assert keep_from_days(delivered=0, dead=1) == Keep(done=None, dead=DAY)
    assert keep_from_days(delivered=0, dead=0, audit=365) == Keep(done=None, dead=None, audit=365 * DAY)


def test_the_cut_off_lies_as_far_back_as_things_are_kept():
    assert cut_offs(Keep(done=10.0, dead=30.0), now=100.0) == CutOffs(90.0, 70.0)
    assert cut_offs(Keep(done=None, dead=30.0), now=100.0) == CutOffs(NEVER, 70.0)
    assert cut_offs(Keep(done=10.0, dead=None), now=100.0) == CutOffs(90.0, NEVER)
    assert cut_offs(Keep(done=None, dead=None, audit=60.0), now=100.0) == CutOffs(NEVER, NEVER, 40.0)


def test_a_step_that_took_long_is_followed_by_one_of_half_its_size_and_a_short_one_by_a_larger_one():
    assert next_step(200, took=2 * STEP_S, most=250) == 100
    assert next_step(200, took=0.8 * STEP_S, most=250) == 200
    assert next_step(100, took=0.0, most=250) == 125


def test_a_step_is_never_larger_than_asked_for_nor_so_small_that_the_walk_stands_still():
    assert next_step(240, took=0.0, most=250) == 250
    assert next_step(250, took=0.0, most=250) == 250
    assert next_step(LEAST_STEP, took=60.0, most=250) == LEAST_STEP
