"""The state of an endpoint and its place on the board follow from a few facts."""

from itertools import permutations

import pytest

from hookline.rules.endpoint_state import BoardSort, EndpointFacts, EndpointState, sort_key, state_of

FAILING = {"is_circuit_closed": False}
SLOW = {"attempts_24h": 20, "p95_24h": 2.1}


def facts(**some) -> EndpointFacts:
    return EndpointFacts(**{"id": b"e", **some})


@pytest.mark.parametrize(
    ("some", "state"),
    [
        ({}, EndpointState.IDLE),
        ({"is_enabled": False, "is_paused": True, **FAILING, **SLOW}, EndpointState.DISABLED),
        ({"is_paused": True, **FAILING, **SLOW}, EndpointState.PAUSED),
        ({**FAILING, **SLOW}, EndpointState.FAILING),
        ({"attempts_15m": 5, "accepted_15m": 2}, EndpointState.FAILING),
        ({"attempts_15m": 5, "accepted_15m": 2, "attempts_1h": 5, "is_back": True}, EndpointState.HEALTHY),
        ({"attempts_15m": 4, "attempts_1h": 4}, EndpointState.HEALTHY),
        ({"attempts_15m": 6, "accepted_15m": 3, "attempts_1h": 6}, EndpointState.HEALTHY),
        (SLOW, EndpointState.SLOW),
        ({"attempts_24h": 19, "p95_24h": 9.0}, EndpointState.HEALTHY),
        ({"attempts_24h": 20, "p95_24h": 2.0}, EndpointState.HEALTHY),
        ({"attempts_24h": 1}, EndpointState.HEALTHY),
        ({"attempts_1h": 1}, EndpointState.HEALTHY),
        ({"waiting": 1}, EndpointState.HEALTHY),
        ({"dead": 9}, EndpointState.IDLE),
    ],
)
def test_the_first_state_that_holds_is_shown(some, state):
    assert state_of(facts(**some)) is state


WORST = [
    facts(id=b"1", url="z", waiting=3, dead=4, **FAILING),
    facts(id=b"2", url="b", dead=6, **FAILING),
    facts(id=b"3", url="a", **SLOW),
    facts(id=b"4", url="a", is_enabled=False),
    facts(id=b"5", url="a", is_paused=True, waiting=99),
    facts(id=b"6", url="x", waiting=2),
    facts(id=b"7", url="y", dead=1),  # idle
    facts(id=b"8", url="k", attempts_1h=1),
    facts(id=b"9", url="l"),
]
SORTED = {
    BoardSort.WORST: WORST,
    BoardSort.SLOWEST: [facts(id=b"2", p95_24h=3.0), facts(id=b"1", p95_24h=1.0), facts(id=b"0")],
    BoardSort.WAITING: [facts(id=b"2", waiting=3), facts(id=b"0", dead=9), facts(id=b"1")],
    BoardSort.DEAD: [facts(id=b"2", dead=3), facts(id=b"0", waiting=9), facts(id=b"1")],
    BoardSort.URL: [facts(id=b"2", url="a"), facts(id=b"0", url="b"), facts(id=b"1", url="b")],
    BoardSort.ACCEPTED: [
        facts(id=b"3", attempts_1h=9),
        facts(id=b"2", attempts_1h=10, accepted_1h=9),
        facts(id=b"1", attempts_1h=1, accepted_1h=1),
        facts(id=b"0"),
    ],
}


@pytest.mark.parametrize("sort", BoardSort)
def test_the_board_has_an_order_whatever_came_first(sort):
    for shuffled in [*list(permutations(SORTED[sort]))[::4099], SORTED[sort][::-1]]:
        found = sorted(shuffled, key=lambda each: sort_key(each, state_of(each), sort))
        assert found == SORTED[sort]
