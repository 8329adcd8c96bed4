"""An address where hookline itself listens is recognised."""

import pytest

from hookline.rules.own_address import is_own


@pytest.mark.parametrize(
    ("address", "port", "listening", "expected"),
    [
        ("192.0.2.1", 8080, ("192.0.2.1", 8080), True),
        ("192.0.2.1", 8081, ("192.0.2.1", 8080), False),
        ("192.0.2.9", 8080, ("192.0.2.1", 8080), False),
        ("2001:db8::1", 8080, ("2001:0db8::0001", 8080), True),
        ("192.0.2.5", 8080, ("0.0.0.0", 8080), True),  # of this machine, see below
        ("192.0.2.5", 8081, ("0.0.0.0", 8080), False),
        ("192.0.2.9", 8080, ("0.0.0.0", 8080), False),
        ("192.0.2.5", 8080, ("::", 8080), True),
        ("hooks.example.com", 8080, ("0.0.0.0", 8080), False),
        ("192.0.2.5", 8080, ("localhost", 8080), False),
    ],
)
def test_an_address_is_ours_if_we_listen_there(address, port, listening, expected):
    assert is_own(address, port, listening=[listening], is_here=lambda each: each == "192.0.2.5") is expected


def test_who_listens_nowhere_has_no_own_address():
    assert not is_own("192.0.2.1", 8080, listening=[], is_here=lambda each: True)
