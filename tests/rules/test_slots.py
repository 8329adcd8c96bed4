"""How many requests a lane and a class of lanes may have under way."""

import pytest

from hookline.model import Outcome
from hookline.rules.slots import (
    LaneHealth,
    depth,
    health_after,
    is_retrys_turn,
    kept_in_line,
    share_of_unproven,
    shares,
    window_after,
)


@pytest.mark.parametrize(
    ("slots", "expected"), [(1_000, (1_000, 500, 500, 250)), (8, (8, 4, 4, 2)), (1, (1, 1, 1, 1))]
)
def test_untried_and_slow_lanes_get_half_the_slots_and_failing_ones_a_quarter(slots, expected):
    assert shares(slots) == expected


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.ACCEPTED, LaneHealth.PROVEN),
        (Outcome.REJECTED, LaneHealth.PROVEN),
        (Outcome.GONE, LaneHealth.PROVEN),
        (Outcome.TRANSIENT, LaneHealth.FAILING),
        (Outcome.THROTTLED, LaneHealth.FAILING),
    ],
)
def test_a_lane_that_answers_is_proven(outcome, expected):
    assert health_after(outcome, [0.1]) is expected


def test_a_lane_starts_with_one_request_and_doubles_up_to_its_cap():
    windows = [1]
    for _ in range(4):
        windows.append(window_after(windows[-1], Outcome.ACCEPTED, cap=5))
    assert windows == [1, 2, 4, 5, 5]


def test_a_failure_takes_the_lane_back_to_one_request():
    assert window_after(5, Outcome.TRANSIENT, cap=5) == 1


def test_every_fifth_send_is_a_retrys():
    assert [n for n in range(1, 16) if is_retrys_turn(n)] == [4, 9, 14]


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        ([9.0], LaneHealth.SLOW),
        ([9.0, 9.0], LaneHealth.SLOW),
        ([0.1, 9.0], LaneHealth.PROVEN),
        ([0.1, 9.0, 9.0], LaneHealth.PROVEN),
        ([0.1, 9.0, 9.0, 9.0], LaneHealth.SLOW),
        ([9.0, 9.0, 9.0, 0.1], LaneHealth.PROVEN),
    ],
)
def test_a_lane_whose_last_answers_took_long_is_slow_although_it_accepts(durations, expected):
    assert health_after(Outcome.ACCEPTED, durations) is expected


def test_a_quarter_of_the_slots_is_kept_for_the_proven():
    assert share_of_unproven(1_000) == 750
    assert share_of_unproven(1) == 1


@pytest.mark.parametrize(
    ("cap", "is_strict", "expected"),
    [(1, False, 64), (5, False, 64), (32, False, 64), (33, False, 66), (50, False, 100), (1, True, 2)],
)
def test_a_lane_reaches_as_far_as_twice_its_cap_and_not_less_than_a_settle_takes(cap, is_strict, expected):
    assert depth(cap, is_strict=is_strict) == expected


@pytest.mark.parametrize(
    ("cap", "lanes", "expected"), [(100, 0, 200), (100, 1, 200), (100, 3, 66), (100, 500, 1), (1, 1, 2)]
)
def test_lanes_that_wait_for_one_host_share_what_may_be_in_memory_for_it(cap, lanes, expected):
    assert kept_in_line(cap, lanes) == expected
