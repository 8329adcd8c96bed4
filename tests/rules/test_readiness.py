"""Publishes are accepted unless they wait or were refused a moment ago."""

import pytest

from hookline.rules.readiness import Publishing, fault, is_shown

NEVER = float("-inf")


@pytest.mark.parametrize(
    ("publishing", "expected"),
    [
        (Publishing(), None),
        (Publishing(waiting_since=99.5), None),
        (Publishing(waiting_since=99.0), "publishes have been waiting for 1.0 s"),
        (Publishing(waiting_since=90.0, committed_at=89.9), "publishes have been waiting for 10.0 s"),
        (Publishing(refused_at=99.5, refusal="full"), "full"),
        (Publishing(refused_at=99.5, refusal="full", committed_at=99.6), None),
        (Publishing(refused_at=99.0, refusal="full"), None),
        (Publishing(waiting_since=99.9, refused_at=99.8, refusal="locked"), "locked"),
    ],
)
def test_why_publishes_are_not_accepted(publishing, expected):
    assert fault(publishing, at=100.0) == expected


@pytest.mark.parametrize(("committed_at", "expected"), [(99.6, True), (99.5, False), (NEVER, False)])
def test_only_a_recent_commit_speaks_for_the_next_one(committed_at, expected):
    assert is_shown(Publishing(committed_at=committed_at), at=100.0) is expected
