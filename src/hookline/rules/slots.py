"""How many requests may be under way, and for whom?

Lanes are proven, untried or failing by how their last attempt went. Proven lanes may use every slot, untried
ones half, failing ones a quarter: whatever hangs, a quarter of the slots is there for those that answer.
"""

from enum import IntEnum

from hookline.model import Outcome

RETRY_SHARE = 5  # when fresh deliveries and retries both wait, every fifth send is a retry


class Health(IntEnum):
    """How a lane's last attempt went."""

    PROVEN = 0
    UNTRIED = 1
    FAILING = 2


def shares(slots: int) -> tuple[int, int, int]:
    """How many slots each class may use, indexed by Health."""
    return slots, max(1, slots // 2), max(1, slots // 4)


def health_after(outcome: Outcome) -> Health:
    """A lane that answers, even with a refusal, does not hold slots; one that fails or is throttled may."""
    return Health.FAILING if outcome in (Outcome.TRANSIENT, Outcome.THROTTLED) else Health.PROVEN


def window_after(window: int, health: Health, *, cap: int) -> int:
    """How many requests a lane may have under way after its last one: doubles on success, one after a failure."""
    return 1 if health is Health.FAILING else min(cap, window * 2)


def is_retrys_turn(sends: int) -> bool:
    """Is the next send, after this many, a retry's if one waits?"""
    return sends % RETRY_SHARE == RETRY_SHARE - 1
