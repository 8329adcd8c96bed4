"""What somebody may still do now."""

import pytest

from hookline.model import RateLimit
from hookline.rules.limits import Bucket
from hookline.rules.quotas import after, for_accounts, for_keys


@pytest.mark.parametrize(
    ("per_second", "keys", "accounts"),
    [
        (0.0, None, None),
        (0.1, RateLimit(0.1, 1), RateLimit(0.1, 1_000)),
        (0.75, RateLimit(0.75, 2), RateLimit(0.75, 1_000)),
        (10.0, RateLimit(10.0, 20), RateLimit(10.0, 1_000)),
        (2_500.5, RateLimit(2_500.5, 5_001), RateLimit(2_500.5, 2_501)),
    ],
)
def test_limits_allow_a_burst_and_every_batch(per_second, keys, accounts):
    assert for_keys(per_second) == keys
    assert for_accounts(per_second, batch=1_000) == accounts


def test_tokens_are_taken_together_or_not_at_all():
    limit = RateLimit(10.0, 20)
    bucket, wait = after(None, limit, tokens=15, now=100.0)
    assert (bucket, wait) == (Bucket(5.0, 100.0), 0.0)
    kept, wait = after(bucket, limit, tokens=15, now=100.0)
    assert kept == bucket
    assert wait == pytest.approx(1.0)
    again, wait = after(bucket, limit, tokens=15, now=100.0 + wait)
    assert wait == 0.0
    assert again.tokens == pytest.approx(0.0, abs=1e-4)


def test_a_clock_that_was_set_back_gives_nothing_and_is_waited_for():
    bucket, wait = after(Bucket(0.0, 100.0), RateLimit(1.0, 2), tokens=1, now=90.0)
    assert bucket == Bucket(0.0, 100.0)
    assert wait == pytest.approx(11.0)
