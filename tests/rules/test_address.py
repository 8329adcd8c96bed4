"""Every address that is not a machine of the public internet is refused, however it is spelled."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookline.rules.address import is_denied, is_public, may_dial

U32 = st.integers(0, 2**32 - 1)
U128 = st.integers(0, 2**128 - 1)

DENIED_V4 = [
    ip_network("0.0.0.0/8"),
    ip_network("10.0.0.0/8"),
    ip_network("100.64.0.0/10"),
    ip_network("127.0.0.0/8"),
    ip_network("169.254.0.0/16"),
    ip_network("172.16.0.0/12"),
    ip_network("192.0.0.0/24"),
    ip_network("192.0.2.0/24"),
    ip_network("192.88.99.0/24"),
    ip_network("192.168.0.0/16"),
    ip_network("198.18.0.0/15"),
    ip_network("198.51.100.0/24"),
    ip_network("203.0.113.0/24"),
    ip_network("224.0.0.0/4"),
    ip_network("240.0.0.0/4"),
]
GLOBAL_V6 = ip_network("2000::/3")
DENIED_V6 = [ip_network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]

LOOPBACK = ip_network("127.0.0.0/8")
EVERYTHING = [ip_network("0.0.0.0/0"), ip_network("::/0")]


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "172.15.255.255",
        "172.32.0.0",
        "100.63.255.255",
        "223.255.255.255",
        "2600:1234::1",
        "2a00:1450:4001::1",
        "2000::",
        "3ffe:ffff::1",
        "2001:200::1",
        "2001:db9::1",
    ],
)
def test_a_public_address_may_be_dialled(address):
    assert is_public(address)
    assert may_dial(address)


@pytest.mark.parametrize("network", DENIED_V4 + DENIED_V6, ids=str)
def test_a_denied_network_is_denied_from_its_first_address_to_its_last(network):
    assert not is_public(str(network[0]))
    assert not is_public(str(network[-1]))


@pytest.mark.parametrize(
    "address",
    [
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "::5efe:7f00:1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "100::1",
        "4000::1",
        "2600::1%eth0",
        "5f00::1",
    ],
)
def test_what_ipaddress_may_take_for_global_is_denied(address):
    assert not is_public(address)
    assert not may_dial(address)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "1.2.3.4 ", "[::1]"]
)
def test_what_is_no_address_is_denied_even_if_everything_is_allowed(text):
    assert not is_public(text)
    assert not may_dial(text, EVERYTHING)


@settings(deadline=None, max_examples=1_000)
@given(U32)
def test_the_v4_verdict_is_the_deny_list(number):
    address = IPv4Address(number)
    assert is_public(str(address)) is not any(address in network for network in DENIED_V4)


@settings(deadline=None, max_examples=1_000)
@given(U128 | st.integers(int(GLOBAL_V6[0]), int(GLOBAL_V6[-1])))
def test_the_v6_verdict_is_the_allow_list_less_its_exceptions(number):
    address = IPv6Address(number)
    is_isatap = number >> 32 & 0xFFFF_FFFF in (0x5EFE, 0x0200_5EFE)
    expected = address in GLOBAL_V6 and not any(address in network for network in DENIED_V6) and not is_isatap
    assert is_public(str(address)) is expected


@settings(deadline=None, max_examples=500)
@example(int(IPv4Address("8.8.8.8")))
@example(int(IPv4Address("127.0.0.1")))
@given(U32)
def test_every_v4_address_is_denied_in_every_v6_disguise(number):
    for disguise in disguises(number):
        assert not is_public(str(IPv6Address(disguise)))
        assert not may_dial(str(IPv6Address(disguise)))


def disguises(v4: int) -> list[int]:
    """Every IPv6 address that leads to this IPv4 address."""
    nat64, local_nat64 = int(IPv6Address("64:ff9b::")), int(IPv6Address("64:ff9b:1::"))
    return [
        v4,  # compatible
        0xFFFF << 32 | v4,  # mapped
        0xFFFF << 48 | v4,  # translated
        nat64 | v4,
        local_nat64 | v4,
        local_nat64 | v4 >> 16 << 64 | (v4 & 0xFFFF) << 40,  # under a prefix of 48 bits
        0x2002 << 112 | v4 << 80,  # 6to4
        0x2001 << 112 | v4 << 64,  # Teredo server
        0x2001 << 112 | v4 ^ 0xFFFFFFFF,  # Teredo client
        0x5EFE << 32 | v4,  # ISATAP
        0xFE80 << 112 | 0x200_5EFE << 32 | v4,
        0x2600_1234 << 96 | 0x5EFE << 32 | v4,  # under the prefix of a public network
        0x2600_1234 << 96 | 0x200_5EFE << 32 | v4,
    ]


@pytest.mark.parametrize(
    ("address", "allowed", "verdict"),
    [
        ("127.0.0.1", [LOOPBACK], True),
        ("10.0.0.1", [LOOPBACK], False),
        ("8.8.8.8", [LOOPBACK], True),
        ("::1", [LOOPBACK], False),
        ("::1", [ip_network("::1/128")], True),
        ("fd00::1", [ip_network("fd00::/8")], True),
        ("fe80::1%eth0", [ip_network("fe80::/10")], True),
        ("::ffff:127.0.0.1", [LOOPBACK], True),
        ("::ffff:127.0.0.1", [ip_network("::/0")], False),
        ("::ffff:10.0.0.1", [LOOPBACK], False),
        ("64:ff9b::8.8.8.8", [ip_network("64:ff9b::/96")], True),
        ("64:ff9b::127.0.0.1", [ip_network("64:ff9b::/96")], False),
        ("64:ff9b::127.0.0.1", [ip_network("64:ff9b::/96"), LOOPBACK], True),
        ("64:ff9b::127.0.0.1", [LOOPBACK], False),
        ("2002:7f00:1::", [ip_network("2002::/16")], False),
        ("2002:808:808::", [ip_network("2002::/16")], True),
        ("::7f00:1", [ip_network("::/0")], False),
        ("::ffff:0:7f00:1", [ip_network("::/0")], False),
        # Teredo: the server's address, and the client's with its bits inverted.
        ("2001:0:808:808::f7f7:f7f7", [ip_network("2001::/32")], True),
        ("2001:0:7f00:1::f7f7:f7f7", [ip_network("2001::/32")], False),
        ("2001:0:808:808::80ff:fffe", [ip_network("2001::/32")], False),
        ("2001:0:808:808::80ff:fffe", [ip_network("2001::/32"), LOOPBACK], True),
        ("2001:0:808:808::f7f7:f7f7", [], False),
        # ISATAP
        ("2600:1234::5efe:808:808", [], False),
        ("2600:1234::5efe:808:808", [ip_network("2600:1234::/64")], True),
        ("2600:1234::200:5efe:7f00:1", [ip_network("2600:1234::/64")], False),
        ("2600:1234::200:5efe:7f00:1", [ip_network("2600:1234::/64"), LOOPBACK], True),
        ("fe80::5efe:a00:1", [ip_network("fe80::/10")], False),
        # NAT64 under the prefix for local use, in both layouts
        ("64:ff9b:1::808:808", [ip_network("64:ff9b:1::/48")], True),
        ("64:ff9b:1::7f00:1", [ip_network("64:ff9b:1::/48")], False),
        ("64:ff9b:1:808:8:800::", [ip_network("64:ff9b:1::/48")], True),
        ("64:ff9b:1:7f00:0:100::", [ip_network("64:ff9b:1::/48")], False),
    ],
)
def test_an_allowed_network_opens_itself_and_nothing_behind_it(address, allowed, verdict):
    assert may_dial(address, allowed) is verdict


@settings(deadline=None, max_examples=1_000)
@example(int(IPv4Address("8.8.8.8")), 8)
@example(int(IPv4Address("10.0.0.1")), 8)
@given(st.integers(2, 2**32 - 1), st.integers(1, 32))  # ::0 and ::1 are no forms of an IPv4 address
def test_a_denied_v4_network_is_denied_in_every_form_although_everything_is_allowed(number, length):
    denied = [ip_network((number, length), strict=False)]
    forms = [IPv4Address(number), *map(IPv6Address, disguises(number))]
    assert all(is_denied(str(form), denied) for form in forms)
    assert not any(may_dial(str(form), EVERYTHING, denied) for form in forms)


@settings(deadline=None, max_examples=1_000)
@given(U128, st.integers(1, 128))
def test_a_denied_v6_network_is_denied_although_everything_is_allowed(number, length):
    denied = [IPv6Network((number, length), strict=False)]
    assert is_denied(str(IPv6Address(number)), denied)
    assert not may_dial(str(IPv6Address(number)), EVERYTHING, denied)


@settings(deadline=None, max_examples=1_000)
@given(U128 | U32.flatmap(lambda v4: st.sampled_from(disguises(v4))), U32, st.integers(1, 32))
def test_what_is_denied_changes_nothing_for_what_lies_outside(number, network, length):
    address, denied = str(IPv6Address(number)), [ip_network((network, length), strict=False)]
    if not is_denied(address, denied):
        assert may_dial(address, EVERYTHING, denied) is may_dial(address, EVERYTHING)
        assert may_dial(address, (), denied) is may_dial(address)


def test_a_network_denied_in_its_mapped_form_is_denied_as_it_is():
    assert is_denied("10.1.2.3", [ip_network("::ffff:10.0.0.0/104")])
    assert not is_denied("11.1.2.3", [ip_network("::ffff:10.0.0.0/104")])


def test_what_is_no_address_is_not_denied_but_may_not_be_dialled_either():
    assert not is_denied("localhost", EVERYTHING)
    assert not may_dial("localhost", EVERYTHING, EVERYTHING)
