"""How many requests a rate limit allows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import RateLimit
from hookline.rules.limits import Bucket, full, next_at, refilled, take

LIMIT = RateLimit(per_second=2.0, burst=3)


def test_a_full_bucket_gives_its_burst_at_once_and_no_more():
    bucket, taken = full(LIMIT, now=0.0), 0
    while (after := take(bucket, LIMIT, now=0.0)) is not None:
        bucket, taken = after, taken + 1
    assert taken == 3
    assert next_at(bucket, LIMIT, now=0.0) == pytest.approx(0.5, abs=1e-5)


def test_a_bucket_never_holds_more_than_its_burst():
    assert refilled(Bucket(1.0, 0.0), LIMIT, now=1_000.0).tokens == 3.0


def test_a_clock_that_goes_back_adds_nothing():
    assert refilled(Bucket(1.0, 10.0), LIMIT, now=0.0) == Bucket(1.0, 10.0)


def test_a_hundred_a_minute_is_a_fraction_a_second():
    limit = RateLimit(per_second=100 / 60, burst=1)
    bucket, starts, now = full(limit, now=0.0), 0, 0.0
    while now < 60.0:
        after = take(bucket, limit, now=now)
        if after is None:
            now = next_at(bucket, limit, now=now)
        else:
            bucket, starts = after, starts + 1
    assert starts == 100


@given(
    st.floats(0.001, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 5), min_size=1, max_size=80),
)
def test_no_window_holds_more_than_rate_times_length_and_burst(rate, burst, steps):
    limit = RateLimit(rate, burst)
    bucket, now, starts = full(limit, now=0.0), 0.0, []
    for step in steps:
        now += step
        while (after := take(bucket, limit, now=now)) is not None:
            bucket = after
            starts.append(now)
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            assert last - first + 1 <= rate * (starts[last] - starts[first]) + burst + 1e-3


@given(st.floats(0.001, 10_000), st.integers(1, 10_000), st.floats(0, 1), st.floats(0, 4e9))
def test_the_next_token_is_there_when_it_was_promised(rate, burst, tokens, now):
    limit = RateLimit(rate, burst)
    bucket = Bucket(tokens, now)
    assert take(bucket, limit, now=next_at(bucket, limit, now=now)) is not None
