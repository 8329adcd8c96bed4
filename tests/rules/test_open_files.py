"""How many file descriptors are for receivers."""

import pytest

from hookline.rules.open_files import (
    most_clients,
    most_connections,
    slots_within,
)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (None, None),
        (1 << 20, 917_504),
        (65_536, 57_344),
        (4_096, 3_072),
        (2_048, 1_024),
        (1_024, 512),
        (256, 128),
        (1, 1),
    ],
)
def test_half_of_few_files_and_seven_eighths_of_many_are_for_receivers(allowed, expected):
    assert most_connections(allowed) == expected


@pytest.mark.parametrize(
    ("wanted", "allowed", "expected"),
    [(1_000, None, 1_000), (1_000, 65_536, 1_000), (1_000, 1_024, 512), (10, 256, 10), (1_000, 1, 1)],
)
def test_no_more_requests_are_under_way_than_can_have_a_connection(wanted, allowed, expected):
    assert slots_within(wanted, allowed) == expected


@pytest.mark.parametrize(
    ("wanted", "allowed", "expected"),
    [
        (None, None, 10_000),
        (None, 1 << 20, 10_000),
        (None, 65_536, 6_144),
        (None, 4_096, 768),
        (None, 256, 96),
        (None, 1, 1),
        (50_000, None, 50_000),
        (50_000, 1 << 20, 50_000),
        (50_000, 65_536, 6_144),
        (10, 65_536, 10),
    ],
)
def test_clients_get_three_quarters_of_what_receivers_do_not(wanted, allowed, expected):
    assert most_clients(wanted, allowed) == expected
    if allowed is not None and allowed > 1:
        assert expected + most_connections(allowed) < allowed
