"""Limits the memory for large payloads.

A lane that waits for memory holds no slot and no task. It is offered again when bytes are given back, in the order of
its class.
"""

from collections import deque
from collections.abc import Callable

from hookline.pipeline.lanes.lane import Lane
from hookline.rules.memory import BUDGET_BYTES, fits
from hookline.rules.slots import LaneHealth, kept_in_line

_KEPT = 500  # small deliveries that all waiting lanes of a class keep in memory together, about


class MemoryLine:
    """The lanes of one class that wait for memory."""

    __slots__ = ("line",)

    def __init__(self) -> None:
        self.line: deque[Lane] = deque()

    def room_in_line(self) -> int:
        """How many deliveries each of its lanes may hold in memory while it waits."""
        return kept_in_line(_KEPT, len(self.line))


class PayloadMemory:
    """The bytes that large payloads may take."""

    def __init__(self, budget: int = BUDGET_BYTES) -> None:
        self._budget = budget
        self._held = [0] * len(LaneHealth)
        self._of_lane: dict[Lane, int] = {}
        self._lines = tuple(MemoryLine() for _ in LaneHealth)
        self._wanted: dict[Lane, int] = {}  # by lanes that wait, or that were called and have not come yet
        self.offer: Callable[[Lane], None] = lambda _: None

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return sum(self._held)

    def admits(self, lane: Lane, size: int) -> bool:
        """Whether the lane may load so many bytes now. A lane that was not called goes behind those that wait."""
        if self._lines[lane.health].line and lane not in self._wanted:
            return False
        return self._fits(lane, size)

    def take(self, lane: Lane, size: int) -> None:
        """Count the bytes that the lane loads."""
        self._wanted.pop(lane, None)
        self._held[lane.health] += size
        self._of_lane[lane] = self._of_lane.get(lane, 0) + size

    def park(self, lane: Lane, size: int) -> None:
        """Let the lane wait for so many bytes; a lane that was called and came too late keeps its place."""
        line = self._lines[lane.health]
        if lane in self._wanted:
            line.line.appendleft(lane)
        else:
            line.line.append(lane)
        self._wanted[lane] = size
        lane.park(line)

    def regraded(self, lane: Lane, before: LaneHealth) -> None:
        """The lane belongs to another class: it waits no longer in its former one, and its answer offers it next."""
        line = self._lines[before]
        if lane.parked_at is line and not lane.is_lost:
            line.line.remove(lane)
            del self._wanted[lane]
            lane.unpark()

    def give_back(self, lane: Lane, health: LaneHealth, size: int) -> None:
        """The bytes that the lane loaded in that health are free again."""
        self._held[health] -= size
        left = self._of_lane[lane] - size
        if left:
            self._of_lane[lane] = left
        else:
            del self._of_lane[lane]
        self.call_waiting()

    def call_waiting(self) -> None:
        """Offer the lanes that there is room for."""
        for line in self._lines:
            waiting = line.line
            while waiting:
                lane = waiting[0]
                if lane.is_lost or lane.parked_at is not line:
                    waiting.popleft()  # its endpoint was changed meanwhile: its deliveries are read again
                    continue
                if not self._fits(lane, self._wanted[lane]):
                    break
                waiting.popleft()
                lane.unpark()
                self.offer(lane)

    def forget_lost(self) -> None:
        """Forget the lanes that were called and will not come."""
        for lane in [lane for lane in self._wanted if lane.is_lost]:
            del self._wanted[lane]

    def _fits(self, lane: Lane, size: int) -> bool:
        return fits(
            size,
            lane.health,
            held=self._held,
            of_lane=self._of_lane.get(lane, 0),
            budget=self._budget,
        )
