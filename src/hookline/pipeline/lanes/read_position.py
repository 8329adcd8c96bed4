"""Knows from which row on a lane reads.

Rows below a floor were seen and are settled; a load does not read them again. Commits do not come in order. So only
rows seen a while ago raise the floor, and from time to time everything is read.
"""

from collections.abc import Iterable

from hookline.model import LONG_AGO, EndpointId, Queue
from hookline.store.contract import Loaded, Want

_MEMORY = 15.0  # seconds: a row with a smaller seq may commit this late and is still loaded above a floor
_FULL_LOOK = 30.0  # seconds between loads without a floor


class ReadPosition:
    """How far a lane was read by its owner."""

    __slots__ = ("_full_look_at", "_recent", "_settled_below", "_unseen", "seen_due", "seen_seq")

    def __init__(self, *, at: float) -> None:
        self.seen_seq = 0  # the highest of its fresh deliveries
        self.seen_due = LONG_AGO  # the latest of its timed deliveries
        self._recent = (at, 0, LONG_AGO)
        self._settled_below = (0, LONG_AGO)  # seq and due seen at least _MEMORY ago
        self._full_look_at = LONG_AGO
        # For each queue: how many of its first rows a dead owner may have had under way and are not read yet.
        self._unseen = (0, 0)

    @property
    def has_unseen_suspects(self) -> bool:
        return any(self._unseen)

    def doubt(self, rows: int) -> None:
        """A dead owner may have had so many of each queue under way: they are to be read."""
        self._unseen = (rows, rows)

    def saw_suspects(self, want: Want, *, ready: int, timed: int) -> None:
        """So many rows were read that a dead owner may have had under way."""
        left_ready, left_timed = self._unseen
        self._unseen = (
            left_ready - ready if ready >= want.ready else 0,
            left_timed - timed if timed >= want.timed else 0,
        )

    def begin_again(self) -> None:
        """Let the next load read everything."""
        self._full_look_at = LONG_AGO

    def remember(self, at: float) -> None:
        """Raise the floor to what was seen a while ago."""
        if at - self._recent[0] >= _MEMORY:
            self._settled_below = self._recent[1:]
            self._recent = (at, self.seen_seq, self.seen_due)

    def want_suspects(self, lane: EndpointId, room: int) -> Want:
        """What to ask for while some rows are unread that a dead owner may have had under way: only those."""
        ready, timed = self._unseen
        return Want(lane, min(room, ready), min(room, timed))

    def want(
        self, lane: EndpointId, room: int, timed: int, *, known: Iterable[Loaded | None], at: float
    ) -> Want:
        """What to ask for: from time to time everything, else from the floor or from the first that is `known`."""
        if at - self._full_look_at >= _FULL_LOOK:
            self._full_look_at = at
            return Want(lane, room, timed)
        floor, due_floor = self._settled_below
        for delivery in known:
            if delivery is None:
                continue
            if delivery.queue is Queue.READY:
                floor = min(floor, delivery.seq)
            else:
                due_floor = min(due_floor, delivery.due_at)
        return Want(lane, room, timed, floor, due_floor)
