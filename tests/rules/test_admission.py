"""How much a commit may take, and for whom."""

import pytest

from hookline.rules.admission import MOST, MOST_DELIVERIES, earned, share, waits_for_the_loop


@pytest.mark.parametrize(
    ("events", "accounts", "expected"),
    [
        (MOST, 1, MOST),
        (MOST, 2, MOST // 2),
        (100, 3, 33),
        (100, 1_000, 1),
        (5_000, 1, MOST_DELIVERIES),
        (1, 0, 1),
    ],
)
def test_accounts_share_a_commit_equally(events, accounts, expected):
    assert share(events, accounts) == expected


@pytest.mark.parametrize(
    ("durations", "turn", "expected"),
    [
        ([], 1.0, False),  # it never answered
        ([0.002], 0.002, True),
        ([0.006], 0.002, True),
        ([0.007], 0.002, False),
        ([0.002], 0.0, False),
        ([0.002, 0.002, 0.050], 0.002, True),  # one that came late means nothing
        ([0.002, 0.050, 0.050, 0.050], 0.002, False),
        ([0.0], 0.0, False),  # no time was measured
    ],
)
def test_a_lane_waits_for_the_loop_when_its_answers_are_there_within_a_few_turns(durations, turn, expected):
    assert waits_for_the_loop(durations, turn=turn) is expected


def test_a_receiver_that_takes_its_time_is_not_mistaken_for_a_loop_that_has_none():
    for turn in (0.0001, 0.001, 0.01):
        assert not waits_for_the_loop([0.1] * 5, turn=turn)


def test_a_lane_that_is_behind_is_given_less_than_it_sends():
    assert earned(400) == 300
    for sent in range(1, 1_000):
        assert earned(sent) < sent
