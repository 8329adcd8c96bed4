"""Limits how many wrong API keys a caller may try.

Wrong keys are counted by the caller's address and by how the keys begin. So neither one machine that tries all keys nor
many machines that try the rest of one key get far. Valid keys are not counted and work whatever else comes from their
address.
"""

from ipaddress import ip_address, ip_network

from hookline.model import RateLimit
from hookline.rules.limits import Bucket, full, next_at, take

BY_ADDRESS = RateLimit(per_second=3.0, burst=300)
BY_PREFIX = RateLimit(per_second=3.0, burst=300)
PREFIX_BYTES = 8  # of a key: the part of it that is shown

_IPV6_BITS = 64  # one customer's network: its owner can choose the rest of the address


def after_guess(bucket: Bucket | None, limit: RateLimit, *, now: float) -> tuple[Bucket, float]:
    """The bucket after one more guess, and how many seconds the guess must wait; 0: it is checked now."""
    known = full(limit, now=now) if bucket is None else bucket
    taken = take(known, limit, now=now)
    return (known, max(next_at(known, limit, now=now) - now, 0.0)) if taken is None else (taken, 0.0)


def origin_of(address: str) -> str:
    """The network that a caller's address is counted under."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), _IPV6_BITS), strict=False).network_address)
