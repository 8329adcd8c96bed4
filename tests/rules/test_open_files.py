"""How many file descriptors are for receivers."""

import pytest

from hookline.rules.open_files import (
    most_connections,
    slots_within,
)


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [(None, None), (65_536, 64_512), (4_096, 3_072), (2_048, 1_024), (1_024, 512), (256, 128), (1, 1)],
)
def test_half_of_few_files_and_all_but_a_thousand_of_many_are_for_receivers(allowed, expected):
    assert most_connections(allowed) == expected


@pytest.mark.parametrize(
    ("wanted", "allowed", "expected"),
    [(1_000, None, 1_000), (1_000, 65_536, 1_000), (1_000, 1_024, 512), (10, 256, 10), (1_000, 1, 1)],
)
def test_no_more_requests_are_under_way_than_can_have_a_connection(wanted, allowed, expected):
    assert slots_within(wanted, allowed) == expected
