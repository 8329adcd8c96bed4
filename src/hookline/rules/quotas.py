"""Decides whether somebody has asked for, or published, as much as is allowed for now.

It is a token bucket (see `limits`) from which several tokens are taken at once: all of them or none.
"""

import math

from hookline.model import RateLimit
from hookline.rules.limits import Bucket, full, refilled

KEY_BURST_S = 2.0  # seconds' worth that a key may ask for at once
_TICK_S = 1e-6  # rounding must not ask somebody back too early


def for_keys(per_second: float) -> RateLimit | None:
    """The limit on the requests of a key; None: there is none."""
    return None if not per_second else RateLimit(per_second, max(1, math.ceil(per_second * KEY_BURST_S)))


def for_accounts(per_second: float, *, batch: int) -> RateLimit | None:
    """The limit on the events of an account. The largest batch fits into its burst: none is refused for ever."""
    return None if not per_second else RateLimit(per_second, max(batch, math.ceil(per_second)))


def after(bucket: Bucket | None, limit: RateLimit, *, tokens: int, now: float) -> tuple[Bucket, float]:
    """The bucket after so many tokens were taken, and how many seconds they have to wait for; 0: they were taken."""
    current = full(limit, now=now) if bucket is None else refilled(bucket, limit, now=now)
    if current.tokens >= tokens:
        return Bucket(current.tokens - tokens, current.at), 0.0
    missing = tokens - current.tokens
    return current, missing / limit.per_second + max(current.at - now, 0.0) + _TICK_S
