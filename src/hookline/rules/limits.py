"""May an endpoint with a rate limit be sent one more request now?

A token bucket: `per_second` tokens flow in, up to `burst`; a request takes one. In any stretch of time no
more than `rate · length + burst` requests begin.
"""

import msgspec

from hookline.model import RateLimit

_TICK = 1e-6  # seconds; finer than this the store's time does not go, and rounding must not come too early


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """What there was at a moment of the store's time."""

    tokens: float
    at: float


def full(limit: RateLimit, *, now: float) -> Bucket:
    """A bucket nobody has taken from."""
    return Bucket(float(limit.burst), now)


def refilled(bucket: Bucket, limit: RateLimit, *, now: float) -> Bucket:
    """The bucket as it is now; a clock that went back adds nothing."""
    if now <= bucket.at:
        return Bucket(min(bucket.tokens, float(limit.burst)), bucket.at)
    tokens = min(float(limit.burst), bucket.tokens + (now - bucket.at) * limit.per_second)
    return Bucket(tokens, now)


def take(bucket: Bucket, limit: RateLimit, *, now: float) -> Bucket | None:
    """The bucket after one request, None when there is no token for it."""
    current = refilled(bucket, limit, now=now)
    return None if current.tokens < 1.0 else Bucket(current.tokens - 1.0, current.at)


def next_at(bucket: Bucket, limit: RateLimit, *, now: float) -> float:
    """When there is a token again."""
    current = refilled(bucket, limit, now=now)
    if current.tokens >= 1.0:
        return now
    return current.at + (1.0 - current.tokens) / limit.per_second + _TICK
