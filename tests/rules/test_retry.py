import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import Outcome, Reason
from hookline.rules.retry import DEFAULT_POLICY, wait_after
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
