"""Which delivery is sent next?

Lanes with something to send stand in line, one line per class of health; slots go round the classes and round
the lanes of a class. One delivery under way is one slot, from the first byte asked for to the answer.
"""

from collections import deque
from collections.abc import Callable

from hookline.pipeline.lane import Lane
from hookline.rules.slots import Health, shares
from hookline.store.contract import Loaded

_CLASSES = tuple(Health)


class Dispatcher:
    """Hands out the worker's slots."""

    def __init__(
        self, slots: int, *, may_send: Callable[[], bool], send: Callable[[Lane, Loaded], None]
    ) -> None:
        self.slots = slots
        self.in_flight = 0
        self._shares = shares(slots)
        self._used = [0, 0, 0]
        self._lines: tuple[deque[Lane], ...] = (deque(), deque(), deque())
        self._turn = 0
        self._newest_first = False
        self._may_send = may_send
        self._send = send
        self._pumping = False

    @property
    def waiting(self) -> int:
        """Lanes that stand in line."""
        return sum(map(len, self._lines))

    @property
    def is_saturated(self) -> bool:
        return self.in_flight >= self.slots

    def offer(self, lane: Lane) -> None:
        """The lane may have something to send: let it stand in line, and send what there are slots for."""
        if not lane.queued and lane.can_send():
            lane.queued = True
            self._lines[lane.health].append(lane)
            self.pump()

    def pump(self) -> None:
        """Send as long as there are slots and lanes in line."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self.in_flight < self.slots and self._may_send():
                lane = self._next()
                if lane is None:
                    return
                if not lane.can_send():
                    continue
                delivery = lane.pop()
                health = lane.health
                lane.in_flight += 1
                self.in_flight += 1
                self._used[health] += 1
                if lane.can_send():
                    lane.queued = True
                    self._lines[health].append(lane)
                self._send(lane, delivery)
        finally:
            self._pumping = False

    def finish(self, lane: Lane, health: Health) -> None:
        """A delivery of the lane, begun in that health, is no longer under way."""
        lane.in_flight -= 1
        self.in_flight -= 1
        self._used[health] -= 1

    def _next(self) -> Lane | None:
        for step in range(3):
            health = _CLASSES[(self._turn + step) % 3]
            line = self._lines[health]
            if line and self._used[health] < self._shares[health]:
                self._turn = (health + 1) % 3
                if health is Health.UNTRIED:
                    # Oldest and newest in turn: a flood of untried lanes neither starves the last nor the first.
                    self._newest_first = not self._newest_first
                    lane = line.pop() if self._newest_first else line.popleft()
                else:
                    lane = line.popleft()
                lane.queued = False
                return lane
        return None
