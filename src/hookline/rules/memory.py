"""Decides whether a large payload may be brought into memory.

Payloads over the in-line size are read for their request and held until its answer. Their bytes are shared out as
slots are: whatever hangs, a quarter of them is there for lanes that answer at once, and no lane holds more than a
quarter. A payload larger than a share still goes, alone of its class: a setting may allow any size.
"""

from collections.abc import Sequence

from hookline.rules.slots import LaneHealth, share_of_unproven, shares

BUDGET_BYTES = 64 << 20
_LANES_SHARE = 4  # a lane may hold a quarter


def fits(size: int, health: LaneHealth, *, held: Sequence[int], of_lane: int, budget: int) -> bool:
    """May a lane of this health bring in `size` bytes more? `held` are the bytes of each class, `of_lane` its own."""
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
