"""How many lanes does a worker whose slots are all in use leave to others?

Up to half of those that have waited long, each time: the others then take what they can, and the next look shows
whether more should go. Never more than there are free slots elsewhere.
"""

from collections.abc import Iterable

import msgspec


class Peer(msgspec.Struct, frozen=True):
    """What a worker knows of another one's room."""

    free_slots: int
    is_leaving: bool  # draining, or taken for dead


def give_up(waiting: int, peers: Iterable[Peer]) -> int:
    """How many of so many waiting lanes are left to these."""
    room = sum(peer.free_slots for peer in peers if not peer.is_leaving)
    return min((waiting + 1) // 2, max(0, room))
