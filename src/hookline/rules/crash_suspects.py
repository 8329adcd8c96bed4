"""Decides how to send the deliveries of a lane whose last owner died.

One of them may have killed it. Each is marked before it is sent. The more marks a delivery carries, the fewer are sent
beside it, until it is sent alone and the answer is certain. Deliveries with fewer marks go first, from all lanes:
whatever is under way at the next death becomes a suspect. A delivery with four marks is given up.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

CRASH_LIMIT = 4
TURN = 1.0  # seconds: after this a request under way delays nobody; one that kills its worker does so early
_GROUP = 8
_FEW_LANES = (
    1,
    3,
    9,
    27,
    81,
)  # then all: by then others have had their share, even where thousands of lanes are freed
_SHARE = 4  # unmarked ones may use a quarter of the slots: all of these have to be told apart after a death


class Marked(Protocol):
    """A delivery with the marks it had when it was loaded."""

    marks: int


class Plan(msgspec.Struct, frozen=True):
    """What to do with the suspects of a lane."""

    condemned: tuple[object, ...]
    sent: tuple[object, ...]  # in this order, each as soon as there is room


def plan(suspects: Sequence[Marked]) -> Plan:
    """Deliveries with too many marks are given up. The others are sent, the least suspect first."""
    sent = [each for each in suspects if each.marks < CRASH_LIMIT]
    sent.sort(key=_marks)
    return Plan(condemned=tuple(each for each in suspects if each.marks >= CRASH_LIMIT), sent=tuple(sent))


def _marks(suspect: Marked) -> int:
    return suspect.marks


def goes_alone(marks: int) -> bool:
    """Whether a delivery with so many marks must be the only one under way in the whole worker."""
    return marks > 1


def room_for(marks: int, *, beside: Collection[int], slots: int, others_are_marked: bool) -> int:
    """How many more with so many marks a worker may send, beside suspects with these marks whose turn is not over.

    `others_are_marked`: more suspects wait in the same worker. The one that kills is among them rather than here.
    """
    if any(each != marks for each in beside):
        return 0  # otherwise the less suspect would be marked for what the others did
    if goes_alone(marks):
        at_once = 1
    elif marks:
        at_once = _GROUP
    else:
        at_once = slots if others_are_marked else max(_GROUP, slots // _SHARE)
    return max(0, at_once - len(beside))


def few_of_the_dead(takes: int, *, peers: int) -> int | None:
    """How many lanes of dead workers are taken at once, after so many takes in a row; None: all of them."""
    return _FEW_LANES[takes] if peers and takes < len(_FEW_LANES) else None
