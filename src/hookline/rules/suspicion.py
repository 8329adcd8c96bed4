"""How are deliveries sent whose lane's last owner died?

One of them may be what killed it. All are marked before they are sent; the more marks one carries, the fewer
go with it, until it goes alone and it is certain. Four marks are the end.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

CRASH_LIMIT = 4
_GROUP = 8


class Marked(Protocol):
    """A delivery with the marks it was loaded with."""

    marks: int


D = TypeVar("D", bound=Marked)


class Plan(msgspec.Struct, frozen=True):
    """What to do with the suspects, group after group."""

    condemned: tuple[object, ...]
    together: tuple[object, ...]
    groups: tuple[tuple[object, ...], ...]  # each only after the one before is settled
    alone: tuple[object, ...]  # each with nothing else under way in the whole worker


def plan(suspects: Sequence[D]) -> Plan:
    """Unmarked ones together, those marked once in small groups, the others alone, the least suspect first."""
    once = [each for each in suspects if each.marks == 1]
    groups = [tuple(once[n : n + _GROUP]) for n in range(0, len(once), _GROUP)]
    return Plan(
        condemned=tuple(each for each in suspects if each.marks >= CRASH_LIMIT),
        together=tuple(each for each in suspects if each.marks == 0),
        groups=tuple(groups),
        alone=tuple(each for marks in range(2, CRASH_LIMIT) for each in suspects if each.marks == marks),
    )
