"""When a failed delivery is tried again, and when it dies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import Outcome, Reason
from hookline.rules.retry import (
    DEFAULT_POLICY,
    EQUAL,
    FULL,
    NONE,
    PRESETS,
    Jitter,
    Policy,
    growing,
    wait_after,
)
from hookline.rules.settlement import DELIVERED, Dead, RetryAt, decide

NOW = 1_000.0


@pytest.mark.parametrize(
    ("failures", "longest"),
    [(1, 30), (2, 300), (3, 1_800), (4, 7_200), (5, 28_800), (6, 86_400)],
)
def test_the_default_schedule_waits_longer_after_each_failure(failures, longest):
    assert wait_after(failures, policy=DEFAULT_POLICY, roll=1.0) == longest
    assert wait_after(failures, policy=DEFAULT_POLICY, roll=0.0) == 0


def test_the_seventh_failure_is_the_last():
    assert DEFAULT_POLICY.attempts == 7
    assert wait_after(7, policy=DEFAULT_POLICY, roll=0.5) is None


@given(st.integers(1, 6), st.floats(0, 1, exclude_max=True))
def test_full_jitter_stays_between_nothing_and_the_wait(failures, roll):
    wait = wait_after(failures, policy=DEFAULT_POLICY, roll=roll)
    assert wait is not None
    assert 0 <= wait <= DEFAULT_POLICY.waits[failures]


@pytest.mark.parametrize(
    ("outcome", "attempt", "expected"),
    [
        (Outcome.ACCEPTED, 1, DELIVERED),
        (Outcome.ACCEPTED, 7, DELIVERED),
        (Outcome.REJECTED, 1, Dead(Reason.REJECTED)),
        (Outcome.GONE, 1, Dead(Reason.GONE)),
        (Outcome.TRANSIENT, 1, RetryAt(NOW + 15)),
        (Outcome.THROTTLED, 2, RetryAt(NOW + 150)),
        (Outcome.TRANSIENT, 6, RetryAt(NOW + 43_200)),
        (Outcome.TRANSIENT, 7, Dead(Reason.EXHAUSTED)),
        (Outcome.THROTTLED, 7, Dead(Reason.EXHAUSTED)),
    ],
)
def test_what_becomes_of_a_delivery(outcome, attempt, expected):
    assert decide(outcome, attempt=attempt, policy=DEFAULT_POLICY, now=NOW, roll=0.5) == expected


@pytest.mark.parametrize(
    ("preset", "waits", "jitter"),
    [
        ("patient", (0, 30, 300, 1_800, 7_200, 28_800, 86_400), (1, 0)),
        ("minute", (0, 60, 300, 1_800, 7_200, 28_800, 86_400), (0.1, 0.1)),
        ("exponential", (0, 30, 60, 120, 240), (1, 0)),
        ("brisk", (0, 30, 60, 120, 240), (0, 0.2)),
        ("eight", (0, 30, 60, 120, 240, 480, 960, 1_920), (1, 0)),
        ("standard", (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400), (0.2, 0.2)),
        ("quick", (0, 0.05, 0.1, 0.2, 0.4), (0, 0)),
    ],
)
def test_the_presets_are_the_published_numbers(preset, waits, jitter):
    assert PRESETS[preset] == Policy(waits, Jitter(*jitter))


def test_a_growing_schedule_stops_at_its_cap():
    policy = growing(base=1.0, factor=3.0, cap=10.0, attempts=6, jitter=NONE)
    assert policy.waits == (0, 1, 3, 9, 10, 10)
    assert growing(base=1.0, factor=3.0, cap=None, attempts=5, jitter=NONE).waits == (0, 1, 3, 9, 27)


@given(
    st.sampled_from([FULL, EQUAL, NONE]) | st.builds(Jitter, st.floats(0, 1), st.floats(0, 10)),
    st.floats(0, 2_592_000),
    st.floats(0, 1, exclude_max=True),
)
def test_every_jitter_stays_within_its_bounds(jitter, wait, roll):
    drawn = wait_after(1, policy=Policy((0.0, wait), jitter), roll=roll)
    assert drawn is not None
    slack = wait * 1e-9
    assert wait * (1 - jitter.below) - slack <= drawn <= wait * (1 + jitter.above) + slack


def test_what_the_receiver_asks_for_is_a_floor():
    policy = Policy((0.0, 100.0), NONE)
    assert wait_after(1, policy=policy, roll=0.5, asked=3.0) == 100.0
    assert wait_after(1, policy=policy, roll=0.5, asked=150.0) == 150.0
    assert wait_after(2, policy=policy, roll=0.5, asked=3.0) is None
