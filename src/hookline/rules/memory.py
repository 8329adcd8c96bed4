"""Decides whether a large payload may be brought into memory.

Payloads over the in-line size are read for their request and held until its answer. Their memory is shared out like
slots: whatever hangs, a quarter of it is free for lanes that answer at once, and no lane holds more than a quarter. A
payload larger than a share is still sent, alone in its class: the settings may allow any size.
"""

from collections.abc import Sequence

from hookline.rules.slots import LaneHealth, share_of_unproven, shares

BUDGET_BYTES = 64 << 20
_LANES_SHARE = 4  # a lane may hold a quarter


def fits(size: int, health: LaneHealth, *, held: Sequence[int], of_lane: int, budget: int) -> bool:
    """Whether a lane of this health may load `size` more bytes; `held`: bytes per class, `of_lane`: the lane's own."""
    of_class = held[health]
    if not of_class:
        return True
    if of_lane and of_lane + size > budget // _LANES_SHARE:
        return False
    total = sum(held) + size
    if health is LaneHealth.PROVEN:
        return total <= budget
    of_unproven = total - held[LaneHealth.PROVEN]
    return (
        total <= budget
        and of_class + size <= shares(budget)[health]
        and of_unproven <= share_of_unproven(budget)
    )
