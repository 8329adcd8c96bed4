"""How many lanes has a worker more than its share?

A lane is taken by whoever comes first, so a worker that was there first, or that publishes most, may hold them all while
others have nothing to do. A few more than the share are left where they are: moving a lane has its price, and what
is known of the others is as old as their last beat.
"""

from collections.abc import Sequence

_FEW = 8
_PART = 4  # of the share that may be on top of it


def surplus(mine: int, others: Sequence[int]) -> int:
    """How many of the lanes here should be with others, who could take some and hold so many each."""
    if not others:
        return 0
    share = -(-(mine + sum(others)) // (len(others) + 1))
    over = mine - share
    return over if over > max(_FEW, share // _PART) else 0
