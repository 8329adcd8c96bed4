"""Decides how many rows of an outbox are accepted together after some could not be.

A row that nobody foresaw must not hold up all others: the batch is halved until the row is alone.
"""

from enum import StrEnum

import msgspec

MOST = 500
ALONE = 3  # times that a row fails alone before it is refused


class BatchEnd(StrEnum):
    """What became of a batch."""

    DONE = "done"
    LEFT = "left"  # the store is away or overloaded: no row is to blame
    BROKEN = "broken"  # one of the rows may be to blame


class BatchPlan(msgspec.Struct, frozen=True):
    """How the next batch is made."""

    most: int = MOST
    alone: int = 0  # times that the first row failed alone

    @property
    def is_hopeless(self) -> bool:
        """Whether the first row is refused now."""
        return self.alone >= ALONE


def following(plan: BatchPlan, end: BatchEnd, *, rows: int) -> BatchPlan:
    """The plan after a batch of so many rows."""
    match end:
        case BatchEnd.DONE:
            return BatchPlan(min(MOST, plan.most * 2))
        case BatchEnd.LEFT:
            return BatchPlan(max(1, min(plan.most, rows) // 2), plan.alone)  # a lighter one may succeed
        case BatchEnd.BROKEN if rows > 1:
            return BatchPlan(rows // 2)
        case BatchEnd.BROKEN:
            return BatchPlan(1, plan.alone + 1)
