"""Decides in which state an endpoint is shown, and in which order a board lists endpoints.

What an operator did to an endpoint wins over how it answers: a paused endpoint is paused, whatever its circuit says.
"""

from enum import StrEnum

import msgspec

from hookline.rules.slowness import is_slow_day
from hookline.rules.status_sentence import is_failing


class EndpointState(StrEnum):
    """The states, in the order in which they are decided."""

    DISABLED = "disabled"
    PAUSED = "paused"
    FAILING = "failing"
    SLOW = "slow"
    IDLE = "idle"  # no attempt in 24 hours, and nothing waits
    HEALTHY = "healthy"


class BoardSort(StrEnum):
    """What comes first on the board."""

    WORST = "worst"  # failing, slow, disabled, paused; then by what waits and is dead; then by URL
    SLOWEST = "slowest"
    WAITING = "waiting"
    DEAD = "dead"
    URL = "url"
    ACCEPTED = "accepted"  # the lowest share of accepted attempts


class EndpointFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the state and the place of an endpoint depend on."""

    id: bytes
    url: str = ""
    is_enabled: bool = True
    is_paused: bool = False
    is_circuit_closed: bool = True
    attempts_15m: int = 0
    accepted_15m: int = 0
    is_back: bool = False  # it accepted everything in its newest minute
    attempts_1h: int = 0
    accepted_1h: int = 0
    attempts_24h: int = 0
    p95_24h: float | None = None  # seconds
    waiting: int = 0
    dead: int = 0


SortKey = tuple[float, float, str, bytes]

_WORST_FIRST = {
    EndpointState.FAILING: 0,
    EndpointState.SLOW: 1,
    EndpointState.DISABLED: 2,
    EndpointState.PAUSED: 3,
    EndpointState.IDLE: 4,
    EndpointState.HEALTHY: 4,
}


def state_of(facts: EndpointFacts) -> EndpointState:
    """The first state that holds."""
    if not facts.is_enabled:
        return EndpointState.DISABLED
    if facts.is_paused:
        return EndpointState.PAUSED
    if is_failing(
        is_circuit_closed=facts.is_circuit_closed,
        attempts=facts.attempts_15m,
        accepted=facts.accepted_15m,
        is_back=facts.is_back,
    ):
        return EndpointState.FAILING
    if is_slow_day(facts.attempts_24h, facts.p95_24h):
        return EndpointState.SLOW
    # The figures of the day are minutes old; those of the hour are newer.
    if not (facts.attempts_24h or facts.attempts_1h or facts.waiting):
        return EndpointState.IDLE
    return EndpointState.HEALTHY


def sort_key(facts: EndpointFacts, state: EndpointState, sort: BoardSort) -> SortKey:
    """Sorts endpoints; of two that are equal the older one comes first. What is not known comes last."""
    match sort:
        case BoardSort.WORST:
            return _WORST_FIRST[state], -(facts.waiting + facts.dead), facts.url, facts.id
        case BoardSort.SLOWEST:
            return facts.p95_24h is None, -(facts.p95_24h or 0.0), "", facts.id
        case BoardSort.WAITING:
            return -facts.waiting, 0, "", facts.id
        case BoardSort.DEAD:
            return -facts.dead, 0, "", facts.id
        case BoardSort.URL:
            return 0, 0, facts.url, facts.id
        case BoardSort.ACCEPTED:
            rate = facts.accepted_1h / facts.attempts_1h if facts.attempts_1h else 0.0
            return not facts.attempts_1h, rate, "", facts.id
