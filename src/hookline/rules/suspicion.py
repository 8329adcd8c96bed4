"""How are deliveries sent whose lane's last owner died?

One of them may be what killed it. Each is marked before it is sent; the more marks one carries, the fewer go with
it, until it goes alone and it is certain. Those with fewer marks go first, whatever lane they are of: whoever is
under way at the next death is one of the suspects. Four marks are the end.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

CRASH_LIMIT = 4
TURN = (
    1.0  # seconds: one that is still under way then keeps nobody waiting; what kills its worker kills it soon
)
_GROUP = 8
_FEW_LANES = (
    1,
    3,
    9,
    27,
    81,
)  # then all: others have had their share by then, also where thousands are freed
_SHARE = (
    4  # unmarked ones may use a quarter of the slots: their number is what has to be told apart after a death
)


class Marked(Protocol):
    """A delivery with the marks it was loaded with."""

    marks: int


class Plan(msgspec.Struct, frozen=True):
    """What to do with the suspects of a lane."""

    condemned: tuple[object, ...]
    sent: tuple[object, ...]  # in this order, each when there is room for it


def plan(suspects: Sequence[Marked]) -> Plan:
    """Those with too many marks are given up, the others sent, the least suspect first."""
    sent = [each for each in suspects if each.marks < CRASH_LIMIT]
    sent.sort(key=_marks)
    return Plan(condemned=tuple(each for each in suspects if each.marks >= CRASH_LIMIT), sent=tuple(sent))


def _marks(suspect: Marked) -> int:
    return suspect.marks


def goes_alone(marks: int) -> bool:
    """Must nothing else be under way in the whole worker beside one with so many marks?"""
    return marks > 1


def room_for(marks: int, *, beside: Collection[int], slots: int, others_are_marked: bool) -> int:
    """How many more with so many marks may be sent by a worker, beside suspects with these, whose turn is not over.

    `others_are_marked`: more suspect ones wait in the same worker. What kills is among them rather than here.
    """
    if any(each != marks for each in beside):
        return 0  # the less suspect would be marked for what the others did
    if goes_alone(marks):
        at_once = 1
    elif marks:
        at_once = _GROUP
    else:
        at_once = slots if others_are_marked else max(_GROUP, slots // _SHARE)
    return max(0, at_once - len(beside))


def few_of_the_dead(takes: int, *, peers: int) -> int | None:
    """How many lanes of dead workers are taken at once, after so many takes in a row; None: all there are."""
    return _FEW_LANES[takes] if peers and takes < len(_FEW_LANES) else None
