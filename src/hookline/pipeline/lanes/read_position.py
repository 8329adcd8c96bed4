"""From where on does a lane read what the store holds for it?

Rows below a floor were seen and are settled; a load need not look at them again. Commits come out of order, so what
counts is what was seen a while ago, and now and then everything is looked at.
"""

from collections.abc import Iterable

from hookline.model import LONG_AGO, EndpointId, Queue
from hookline.store.contract import Loaded, Want

_MEMORY = 15.0  # seconds: rows may commit this late with a smaller seq and still be seen by a floored load
_FULL_LOOK = 30.0  # seconds between loads without a floor


class ReadPosition:
    """How far a lane was read by its owner."""

    __slots__ = ("_full_look_at", "_recent", "_settled_below", "_unseen", "seen_due", "seen_seq")

    def __init__(self, *, at: float) -> None:
        self.seen_seq = 0  # the highest of its fresh ones
        self.seen_due = LONG_AGO  # the latest of its timed ones
        self._recent = (at, 0, LONG_AGO)
        self._settled_below = (0, LONG_AGO)  # seq and due seen at least _MEMORY ago
        self._full_look_at = LONG_AGO
        # Of each queue: how many rows, from the first on, a dead owner may have had under way and are not read yet.
        self._unseen = (0, 0)

    @property
    def has_unseen_suspects(self) -> bool:
        return any(self._unseen)

    def doubt(self, rows: int) -> None:
        """So many of each queue may have been under way, and are to be read."""
        self._unseen = (rows, rows)

    def saw_suspects(self, want: Want, *, ready: int, timed: int) -> None:
        """So many were read of what a dead owner may have had under way."""
        left_ready, left_timed = self._unseen
        self._unseen = (
            left_ready - ready if ready >= want.ready else 0,
            left_timed - timed if timed >= want.timed else 0,
        )

    def begin_again(self) -> None:
        """The next load looks at everything."""
        self._full_look_at = LONG_AGO

    def remember(self, at: float) -> None:
        """Let what was seen a while ago be the floor."""
        if at - self._recent[0] >= _MEMORY:
            self._settled_below = self._recent[1:]
            self._recent = (at, self.seen_seq, self.seen_due)

    def want_suspects(self, lane: EndpointId, room: int) -> Want:
        """What to ask for as long as some are unseen that a dead owner may have had under way: those alone."""
        ready, timed = self._unseen
        return Want(lane, min(room, ready), min(room, timed))

    def want(
        self, lane: EndpointId, room: int, timed: int, *, known: Iterable[Loaded | None], at: float
    ) -> Want:
        """What to ask for: everything now and then, else from the floor on or the first that is `known`."""
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
