"""Has somebody come with too many keys that are not good?

Counted by where they come from and by how the keys begin, so that neither one machine trying all keys nor many
machines trying the rest of one get far. Good keys are not counted, and are good whatever else comes from their address.
"""

from ipaddress import ip_address, ip_network

from hookline.model import RateLimit
from hookline.rules.limits import Bucket, full, next_at, take

BY_ADDRESS = RateLimit(per_second=3.0, burst=300)
BY_PREFIX = RateLimit(per_second=3.0, burst=300)
PREFIX_BYTES = 8  # of a key, as much as is shown of one

_IPV6_BITS = 64  # one customer's network: whoever has it can choose the rest of the address


def after_guess(bucket: Bucket | None, limit: RateLimit, *, now: float) -> tuple[Bucket, float]:
    """The bucket after one more guess, and how many seconds it must wait; 0: it may be looked at."""
    known = full(limit, now=now) if bucket is None else bucket
    taken = take(known, limit, now=now)
    return (known, max(next_at(known, limit, now=now) - now, 0.0)) if taken is None else (taken, 0.0)


def origin_of(address: str) -> str:
    """What a caller's address is counted as."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), _IPV6_BITS), strict=False).network_address)
