"""Shares a worker's slots among its lanes.

Lanes are proven, untried, slow or failing, by how their last attempts went. Proven lanes may use every slot, untried
and slow ones half each, failing ones a quarter, and all that are not proven three quarters together. So whatever hangs,
a quarter of the slots is free for endpoints that answer at once. An endpoint that answers 200 just before its deadline
holds a slot as long as one that never answers, so slow lanes are a class of their own.
"""

from collections.abc import Sequence
from enum import IntEnum

from hookline.model import Outcome

RETRY_SHARE = 5  # when fresh deliveries and retries both wait, every fifth send is a retry
SLOW = 0.5  # seconds; a lane whose last attempts all took longer is slow
_DEEP = 64
SLOW_IN_A_ROW = 3  # a single slow answer of a fast endpoint means nothing


class LaneHealth(IntEnum):
    """How a lane's last attempts went."""

    PROVEN = 0
    UNTRIED = 1
    SLOW = 2  # the last ones were answered, but late
    FAILING = 3  # the last one failed or was throttled


def shares(slots: int) -> tuple[int, int, int, int]:
    """How many slots each class may use, indexed by LaneHealth."""
    return slots, max(1, slots // 2), max(1, slots // 2), max(1, slots // 4)


def share_of_unproven(slots: int) -> int:
    """How many slots all classes except the proven may use together."""
    return max(1, slots * 3 // 4)


def is_failure(outcome: Outcome) -> bool:
    """Whether the endpoint failed to take the request. A refusal is no failure: the endpoint answered, with no."""
    return outcome is Outcome.TRANSIENT or outcome is Outcome.THROTTLED


def health_after(outcome: Outcome, durations: Sequence[float]) -> LaneHealth:
    """A lane's health after an attempt with this outcome; `durations` are those of the last attempts, newest last."""
    if is_failure(outcome):
        return LaneHealth.FAILING
    if durations[-1] <= SLOW:
        return LaneHealth.PROVEN
    looked_at = min(SLOW_IN_A_ROW, len(durations))
    return (
        LaneHealth.SLOW if all(durations[-n] > SLOW for n in range(1, looked_at + 1)) else LaneHealth.PROVEN
    )


def window_after(window: int, outcome: Outcome, *, cap: int) -> int:
    """How many requests a lane may have under way after its last one: doubled on success, one after a failure."""
    return 1 if is_failure(outcome) else min(cap, window * 2)


def depth(cap: int, *, is_strict: bool) -> int:
    """How many deliveries of a lane may be in memory: waiting, under way, or answered and not settled.

    Otherwise a lane with a small cap would wait for the store after every few answers: with a cap of 10, a busy lane
    would send 10 in the time of a load and a settle, however many its receiver could take.
    """
    return 2 * cap if is_strict else max(2 * cap, _DEEP)


def kept_in_line(cap: float, lanes: int) -> int:
    """How many deliveries each lane keeps in memory while so many lanes wait for one host: twice the cap, shared."""
    return max(1, int(min(2 * cap, 1e6) // max(1, lanes)))


def is_retrys_turn(sends: int) -> bool:
    """Whether the next send, after this many, belongs to a retry if one waits."""
    return sends % RETRY_SHARE == RETRY_SHARE - 1
