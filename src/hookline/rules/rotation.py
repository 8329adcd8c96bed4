"""Which secrets sign at a moment, and what does a rotation make of them?

A new secret signs from the moment it is there; the one before goes on signing beside it until the overlap
ends, so that receivers change over when it suits them. Never more than two.
"""

import math

import msgspec

from hookline.model import Endpoint, Signature

DEFAULT_OVERLAP_S = 86_400
LONGEST_OVERLAP_S = 30 * 86_400


class Rotated(msgspec.Struct, frozen=True):
    """The endpoint with its new secret."""

    endpoint: Endpoint


class UnderWay(msgspec.Struct, frozen=True):
    """Nothing is done: two secrets sign already, and a third one would cut the first one's overlap short."""

    until: float


def is_overlapping(endpoint: Endpoint, *, at: float) -> bool:
    """Does the secret before still sign?"""
    until = endpoint.old_secret_until
    return endpoint.old_secret is not None and until is not None and at < until


def rotate(
    endpoint: Endpoint, secret: str, *, signature: Signature, overlap: float, now: float
) -> Rotated | UnderWay:
    """The endpoint after a rotation to `secret`; without an overlap whatever signed before signs no more."""
    if overlap <= 0:
        return Rotated(
            msgspec.structs.replace(
                endpoint, secret=secret, signature=signature, old_secret=None, old_secret_until=None
            )
        )
    if is_overlapping(endpoint, at=now):
        assert endpoint.old_secret_until is not None  # noqa: S101 - what overlapping means
        return UnderWay(endpoint.old_secret_until)
    return Rotated(
        msgspec.structs.replace(
            endpoint,
            secret=secret,
            signature=signature,
            old_secret=endpoint.secret,
            # Whole, because it is compared with the timestamp in a request.
            old_secret_until=float(math.ceil(now + overlap)),
        )
    )
