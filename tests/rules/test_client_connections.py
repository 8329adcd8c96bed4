"""How many connections are taken, and from whom."""

import pytest

from hookline.rules.client_connections import ConnectionLimits, Full, full, limits


@pytest.mark.parametrize(
    ("most", "of_one", "expected"),
    [(100, None, 50), (1, None, 1), (100, 30, 30), (100, 500, 100), (100, 1, 1)],
)
def test_an_address_has_half_unless_something_else_is_said(most, of_one, expected):
    assert limits(most, of_one) == ConnectionLimits(most, expected)


@pytest.mark.parametrize(
    ("are_open", "from_there", "address", "expected"),
    [
        (99, 9, "192.0.2.1", None),
        (100, 0, "192.0.2.1", Full.SERVER),
        (100, 0, "127.0.0.1", Full.SERVER),
        (99, 10, "192.0.2.1", Full.ADDRESS),
        (99, 10, "2001:db8::1", Full.ADDRESS),
        (99, 10, "::ffff:192.0.2.1", Full.ADDRESS),
        (99, 99, "127.0.0.1", None),
        (99, 99, "::1", None),
        (99, 99, "::ffff:127.0.0.1", None),
        (99, 99, "", None),  # a socket in the file system
    ],
)
def test_which_limit_one_more_is_over(are_open, from_there, address, expected):
    found = full(ConnectionLimits(100, 10), are_open=are_open, from_there=from_there, address=address)
    assert found is expected
