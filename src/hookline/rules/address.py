"""Decides which IP addresses a request may be sent to.

The machines of the public internet are allowed, and so are the networks that an operator named, but none of those that
the operator denied. This is an allow-list where it can be one: an address nobody thought of is refused. `ipaddress.is_global` is not used: it calls multicast
global, and also the NAT64, 6to4 and IPv4-compatible spellings of 127.0.0.1.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def _ranges(*networks: str) -> tuple[tuple[int, int], ...]:
    # Compared as plain numbers: that takes a tenth of the time of `address in network`.
    nets = [ip_network(network) for network in networks]
    return tuple((int(net.network_address), int(net.broadcast_address)) for net in nets)


_V4_DENIED = _ranges(
    "0.0.0.0/8",  # "this network"; Linux connects 0.0.0.0 to loopback
    "10.0.0.0/8",
    "100.64.0.0/10",  # carrier-grade NAT
    "127.0.0.0/8",
    "169.254.0.0/16",  # link-local, where clouds keep their metadata
    "172.16.0.0/12",
    "192.0.0.0/24",  # protocol assignments; metadata of one cloud
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # 6to4 relays
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarking
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
)
_V6_GLOBAL = _ranges("2000::/3")
_V6_DENIED = _ranges(
    "2001::/23",  # protocol assignments, Teredo among them
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4: an IPv4 address in disguise
    "3fff::/20",  # documentation
)
_V6_6TO4 = _ranges("2002::/16")
_V6_TEREDO = _ranges("2001::/32")
_V6_LOCAL_NAT64 = _ranges("64:ff9b:1::/48")
_V6_ENDING_IN_V4 = _ranges("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")  # compatible, translated, NAT64
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})  # how an interface's id begins that ends in an IPv4 address


def is_public(address: str) -> bool:
    """Whether the address, as text, is a machine of the public internet; False for text that is no address.

    Every form that wraps an IPv4 address (mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP) is refused
    whatever it wraps: every public machine can be reached without one.
    """
    found = _read(address)
    return found is not None and _is_public(found)


def may_dial(address: str, allowed: Sequence[Network] = (), denied: Sequence[Network] = ()) -> bool:
    """Whether a connection to the address may be opened: public or in a network the operator allowed, and not denied."""
    found = _read(address)
    if found is None or (denied and _is_denied(found, denied)):
        return False
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            # The kernel connects a mapped address to the IPv4 machine, so that machine has to be allowed.
            return _within(found.ipv4_mapped, allowed)
        wrapped = _wrapped(int(found))
        if wrapped:
            # A gateway may be allowed without everything behind it being allowed.
            return _within(found, allowed) and all(
                _is_public(inner) or _within(inner, allowed) for inner in wrapped
            )
    return _is_public(found) or _within(found, allowed)


def is_denied(address: str, denied: Sequence[Network]) -> bool:
    """Whether the address, in any of the forms that lead to it, is in a network that the operator denied."""
    found = _read(address)
    return found is not None and _is_denied(found, denied)


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """Whether a connection to the address reaches a machine in one of the networks."""
    found = _read(address)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found is not None and _within(found, networks)


def _read(address: str) -> Address | None:
    try:
        return ip_address(address)
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    number = int(address)
    if isinstance(address, IPv4Address):
        return not _among(number, _V4_DENIED)
    if address.scope_id is not None:
        return False  # a zone has a meaning only on a local link
    return _among(number, _V6_GLOBAL) and not _among(number, _V6_DENIED) and not _is_isatap(number)


def _is_denied(address: Address, denied: Sequence[Network]) -> bool:
    forms: list[Address] = [address]
    if isinstance(address, IPv4Address):
        forms.append(IPv6Address(0xFFFF << 32 | int(address)))
    else:
        forms += _wrapped(int(address))
        if address.ipv4_mapped is not None:
            forms.append(address.ipv4_mapped)
    return any(_within(form, denied) for form in forms)


def _wrapped(number: int) -> list[IPv4Address]:
    """The IPv4 addresses that a gateway would forward this IPv6 address to, or by way of."""
    found = []
    if _among(number, _V6_ENDING_IN_V4) and number > 1:  # :: and ::1 are themselves
        found.append(number)
    if _among(number, _V6_6TO4):
        found.append(number >> 80)
    if _among(number, _V6_TEREDO):
        found += [number >> 64, ~number]  # the server, and the client behind it, whose bits are inverted
    if _among(number, _V6_LOCAL_NAT64):
        # RFC 6052: around the middle octet under a prefix of 48 bits, at the end under one of 96.
        around = number >> 48 & 0xFFFF_0000 | number >> 40 & 0xFFFF
        found.append(number if number & 0xFF_FFFF_FFFF else around)
    if _is_isatap(number):
        found.append(number)
    return [IPv4Address(each & 0xFFFF_FFFF) for each in found]


def _is_isatap(number: int) -> bool:
    return number >> 32 & 0xFFFF_FFFF in _ISATAP


def _among(number: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= number <= last for first, last in ranges)


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)
