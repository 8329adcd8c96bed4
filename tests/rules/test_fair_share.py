"""How many lanes a worker gives away to others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.rules.fair_share import surplus


@pytest.mark.parametrize(
    ("mine", "others", "too_many"),
    [
        (100, [], 0),  # nobody else is there
        (100, [0], 50),
        (100, [0, 0, 0], 75),
        (0, [100], 0),
        (50, [50], 0),
        (60, [40], 0),  # near enough
        (63, [37], 13),
        (8, [0], 0),
        (16, [0], 0),
        (17, [0], 0),
        (18, [0], 9),
        (101, [0, 100], 34),
    ],
)
def test_what_is_over_the_share_and_more_than_a_few(mine, others, too_many):
    assert surplus(mine, others) == too_many


@given(st.integers(0, 5_000), st.lists(st.integers(0, 5_000), max_size=10))
def test_after_giving_it_away_nobody_gives_it_back(mine, others):
    given_away = surplus(mine, others)
    assert 0 <= given_away <= mine
    if given_away:
        assert surplus(mine - given_away, [*others[1:], others[0] + given_away]) == 0
