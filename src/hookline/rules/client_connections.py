"""Decides whether the server takes one more connection of a client.

One address gets a share of all connections, so that one machine cannot keep the others out. This machine's own addresses
have no share: a proxy or a load generator beside the server is all of its clients at once.
"""

from enum import StrEnum
from ipaddress import ip_address

import msgspec


class Full(StrEnum):
    """Which limit a connection is over."""

    SERVER = "server"
    ADDRESS = "address"


class ConnectionLimits(msgspec.Struct, frozen=True):
    """How many connections may be open."""

    most: int
    most_of_one: int  # from one address


def limits(most: int, of_one: int | None) -> ConnectionLimits:
    """The limits; without one for each address it is half of all."""
    return ConnectionLimits(most, max(1, most // 2) if of_one is None else min(of_one, most))


def full(limits: ConnectionLimits, *, are_open: int, from_there: int, address: str) -> Full | None:
    """The limit that one more connection from this address would be over; None: it is taken."""
    if are_open >= limits.most:
        return Full.SERVER
    if from_there >= limits.most_of_one and not _is_here(address):
        return Full.ADDRESS
    return None


def _is_here(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return True  # a socket in the file system
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_loopback or (mapped is not None and mapped.is_loopback)
