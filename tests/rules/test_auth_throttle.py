"""A caller that tries too many wrong keys has to wait."""

import pytest

from hookline.model import RateLimit
from hookline.rules.auth_throttle import (
    after_guess,
    origin_of,
)

LIMIT = RateLimit(per_second=2.0, burst=3)


def test_a_few_may_be_wrong_and_then_it_takes_time():
    bucket = None
    waits = []
    for _ in range(5):
        bucket, wait = after_guess(bucket, LIMIT, now=100.0)
        waits.append(round(wait, 3))
    assert waits == [0, 0, 0, 0.5, 0.5]
    bucket, wait = after_guess(bucket, LIMIT, now=100.6)
    assert wait == 0
    _, wait = after_guess(bucket, LIMIT, now=100.6)
    assert 0 < wait < 0.5


def test_a_guess_that_has_to_wait_makes_the_next_wait_no_longer():
    bucket = None
    for _ in range(1_000):
        bucket, _ = after_guess(bucket, LIMIT, now=100.0)
    assert after_guess(bucket, LIMIT, now=101.0)[1] == 0


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("", ""),
        ("a unix socket", "a unix socket"),
    ],
)
def test_one_network_of_ipv6_is_one_origin(address, origin):
    assert origin_of(address) == origin
