"""Detects connections that come back to this server."""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

Place = tuple[str, int]  # an address and a port; 0.0.0.0 and :: are every address of this machine


def is_own(address: str, port: int, *, listening: Sequence[Place], is_here: Callable[[str], bool]) -> bool:
    """Whether a connection to this address and port reaches us; `is_here`: is it an address of this machine?"""
    found = _read(address)
    if found is None:
        return False
    for host, own_port in listening:
        own = _read(host)
        if own is None or port != own_port:
            continue
        if own == found or (own.is_unspecified and is_here(address)):
            return True
    return False


def _read(address: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(address)
    except ValueError:
        return None
