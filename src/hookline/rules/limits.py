"""Decides whether an endpoint's rate limit allows one more request now.

It is a token bucket: `per_second` tokens flow in, up to `burst`, and a request takes one. In any stretch of time at
most `rate · length + burst` requests start.
"""

import msgspec

from hookline.model import RateLimit

_TICK = 1e-6  # seconds; the store's time is no finer, and rounding must not send a request too early


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """The tokens at a moment of the store's time."""

    tokens: float
    at: float


def full(limit: RateLimit, *, now: float) -> Bucket:
    """A bucket that no request has taken from."""
    return Bucket(float(limit.burst), now)


def refilled(bucket: Bucket, limit: RateLimit, *, now: float) -> Bucket:
    """The bucket as it is now; a clock that was set back adds nothing."""
    if now <= bucket.at:
        return Bucket(min(bucket.tokens, float(limit.burst)), bucket.at)
    tokens = min(float(limit.burst), bucket.tokens + (now - bucket.at) * limit.per_second)
    return Bucket(tokens, now)


def take(bucket: Bucket, limit: RateLimit, *, now: float) -> Bucket | None:
    """The bucket after one request; None when it holds no token."""
    current = refilled(bucket, limit, now=now)
    return None if current.tokens < 1.0 else Bucket(current.tokens - 1.0, current.at)


def next_at(bucket: Bucket, limit: RateLimit, *, now: float) -> float:
    """When the next token is there."""
    current = refilled(bucket, limit, now=now)
    if current.tokens >= 1.0:
        return now
    return current.at + (1.0 - current.tokens) / limit.per_second + _TICK
