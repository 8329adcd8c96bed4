"""Decides which secrets sign before, during and after a rotation.

A new secret signs from the moment it exists. The previous one keeps signing beside it until the overlap ends, so that
receivers can change over at a time that suits them. There are never more than two.
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
    """Nothing was changed: two secrets sign already, and a third would cut the overlap of the first short."""

    until: float


def is_overlapping(endpoint: Endpoint, *, at: float) -> bool:
    """Whether the previous secret still signs."""
    until = endpoint.old_secret_until
    return endpoint.old_secret is not None and until is not None and at < until


def rotate(
    endpoint: Endpoint, secret: str, *, signature: Signature, overlap: float, now: float
) -> Rotated | UnderWay:
    """The endpoint after a rotation to `secret`; without an overlap the previous secrets stop signing."""
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
            # Whole seconds, because it is compared with the timestamp in a request.
            old_secret_until=float(math.ceil(now + overlap)),
        )
    )
