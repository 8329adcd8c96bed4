"""Decides how many lanes a worker with no free slots leaves to others.

Each time it is up to half of those that have waited long. Other workers then take what they can, and the next look
shows whether more should go. It is never more than there are free slots elsewhere.
"""

from collections.abc import Iterable

import msgspec


class Peer(msgspec.Struct, frozen=True):
    """What a worker knows of the room in another one."""

    free_slots: int
    is_leaving: bool  # draining, or considered dead


def give_up(waiting: int, peers: Iterable[Peer]) -> int:
    """How many of so many waiting lanes are left to these workers."""
    room = sum(peer.free_slots for peer in peers if not peer.is_leaving)
    return min((waiting + 1) // 2, max(0, room))
