"""Counts the lanes that a worker has above its share.

A free lane goes to the first worker that takes it. So a worker that started first, or that publishes most, may hold
them all while others have nothing to do. A few lanes above the share stay where they are: moving a lane has a price,
and what is known of the other workers is as old as their last heartbeat.
"""

from collections.abc import Sequence

_FEW = 8
_PART = 4  # a quarter of the share may be on top of it


def surplus(mine: int, others: Sequence[int]) -> int:
    """How many of this worker's lanes others should have; `others` are the lane counts of those that can take some."""
    if not others:
        return 0
    share = -(-(mine + sum(others)) // (len(others) + 1))
    over = mine - share
    return over if over > max(_FEW, share // _PART) else 0
