"""Decides a delivery's next state after an attempt."""

import msgspec

from hookline.model import Outcome, Reason
from hookline.rules.retry import Policy, wait_after


class Delivered(msgspec.Struct, frozen=True):
    """The endpoint accepted it."""


class RetryAt(msgspec.Struct, frozen=True):
    """Not accepted; try again at this time."""

    at: float


class Dead(msgspec.Struct, frozen=True):
    """Given up, for this reason."""

    reason: Reason


Decision = Delivered | RetryAt | Dead
DELIVERED = Delivered()


def decide(
    outcome: Outcome, *, attempt: int, policy: Policy, now: float, roll: float, asked: float | None = None
) -> Decision:
    """The settlement of a delivery whose `attempt`-th request ended like this."""
    match outcome:
        case Outcome.ACCEPTED:
            return DELIVERED
        case Outcome.REJECTED:
            return Dead(Reason.REJECTED)
        case Outcome.GONE:
            return Dead(Reason.GONE)
        case Outcome.TRANSIENT | Outcome.THROTTLED:
            wait = wait_after(attempt, policy=policy, roll=roll, asked=asked)
            return Dead(Reason.EXHAUSTED) if wait is None else RetryAt(now + wait)
