"""The lowest living worker of a version moves."""

import pytest

from hookline.model import WorkerId
from hookline.rules.outbox_election import Candidate, moves


def other(id, *, delivers=True, is_leaving=False, version="1"):
    return Candidate(WorkerId(id), delivers, is_leaving, version)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], True),
        ([other(b"c")], True),
        ([other(b"a")], False),
        ([other(b"a", delivers=False)], True),
        ([other(b"a", is_leaving=True)], True),
        ([other(b"a", version="0")], True),  # it may not know of the outbox
        ([other(b"c"), other(b"a")], False),
    ],
)
def test_who_moves(others, expected):
    assert moves(WorkerId(b"b"), "1", others) is expected
