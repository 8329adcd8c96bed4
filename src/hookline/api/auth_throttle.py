"""Slows down callers that try wrong API keys.

It is called only for wrong keys: a caller with a valid key never gets here.
"""

from collections.abc import Callable

from hookline.model import RateLimit
from hookline.rules.auth_throttle import (
    BY_ADDRESS,
    BY_PREFIX,
    PREFIX_BYTES,
    after_guess,
    origin_of,
)
from hookline.rules.limits import Bucket

REMEMBERED = 10_000  # addresses, and key prefixes


class Guesses:
    """Counts guesses, and makes callers wait that guess too fast."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_address: dict[str, Bucket] = {}
        self._by_prefix: dict[bytes, Bucket] = {}

    def count(self, address: str, key: bytes) -> float:
        """Count one more guess; returns how many seconds the caller must wait, 0 if the key may be checked."""
        now = self._now()
        return max(
            _count(self._by_address, origin_of(address), BY_ADDRESS, now),
            _count(self._by_prefix, key[:PREFIX_BYTES], BY_PREFIX, now),
        )


def _count(
    buckets: dict[str, Bucket] | dict[bytes, Bucket], name: str | bytes, limit: RateLimit, now: float
) -> float:
    known: dict[object, Bucket] = buckets  # type: ignore[assignment]  # either of them
    bucket, wait = after_guess(known.pop(name, None), limit, now=now)
    if len(known) >= REMEMBERED:
        del known[next(iter(known))]  # the one that was quiet longest
    known[name] = bucket
    return wait
