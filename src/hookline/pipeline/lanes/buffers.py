"""Limits how many deliveries a worker's lanes hold in memory."""

from hookline.rules.slots import LaneHealth, shares

_BUFFERED = 2  # deliveries in memory for each slot of a class
_BUFFERED_PROVEN = 4  # with fewer, a busy worker reads most of what it accepts back from the store


class Buffers:
    """How many deliveries the lanes of a worker hold in memory, by the lanes' health.

    Each class has its own share, as with slots: deliveries of endpoints that hang must not keep a healthy lane from
    reading its rows.
    """

    __slots__ = ("_limits", "counts")

    def __init__(self, slots: int) -> None:
        self.counts = [0] * len(LaneHealth)
        proven, *others = shares(slots)
        self._limits = (_BUFFERED_PROVEN * proven, *(_BUFFERED * share for share in others))

    def most(self, health: LaneHealth) -> int:
        """How many of these one lane may hold: half of them, so that it cannot keep all others from reading."""
        return max(1, self._limits[health] // 2)

    def room(self, health: LaneHealth) -> int:
        """How many more deliveries lanes of this health may hold."""
        return self._limits[health] - self.counts[health]
