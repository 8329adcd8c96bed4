"""Decides which delivery is sent next.

Lanes with something to send wait in line, one line per class of health. Slots go round the classes, and round the lanes
of a class. One delivery under way is one slot, from the first byte asked for to the answer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from itertools import count

from hookline.clock import Clock
from hookline.model import FOREVER
from hookline.pipeline.catalogue.host_limits import Host
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.payload_memory import PayloadMemory
from hookline.rules.crash_suspects import TURN
from hookline.rules.slots import LaneHealth, share_of_unproven, shares
from hookline.store.contract import Loaded

_CLASSES = tuple(LaneHealth)
_DRAINING = 0.02  # seconds between checks whether anything is still under way
_NO_ALARM = 60.0  # seconds to wait when no lane is held back by time


class Dispatcher:
    """Hands out the worker's slots."""

    def __init__(
        self,
        slots: int,
        clock: Clock,
        *,
        memory: PayloadMemory,
        may_send: Callable[[], bool],
        send: Callable[[Lane, Loaded, bool], None],
    ) -> None:
        self.slots = slots
        self.in_flight = 0
        self.waiting: dict[Lane, LaneHealth] = {}  # lanes that wait in line, with the line of each
        self._shares = shares(slots)
        self._unproven = share_of_unproven(slots)
        self._used = [0] * len(LaneHealth)
        self._lines: tuple[deque[Lane], ...] = tuple(deque() for _ in LaneHealth)
        self._turn = 0
        self._newest_first = False
        self._memory = memory
        self._may_send = may_send
        self._send = send
        self.on_probe: Callable[[Lane], None]  # the lane's circuit asks for a probe
        self._pumping = False
        self._clock = clock
        self._alarms: list[tuple[float, int, Lane]] = []
        self._alarm_at: dict[Lane, float] = {}  # the first alarm of each lane that has one
        self._alarm_set = asyncio.Event()
        self._order = count()
        self._crowded: set[Host] = set()  # hosts that lanes wait for
        self._alone: Lane | None = None  # the only lane that may send

    @property
    def is_saturated(self) -> bool:
        return self.in_flight >= self.slots

    def offer(self, lane: Lane) -> None:
        """The lane may have something to send: send it if there are slots and nobody waits, else put it in line."""
        if lane in self.waiting:
            return
        if not lane.can_send():
            self._look_later(lane)
        elif self.waiting or self._pumping or self._alone is not None:
            self._stand_in_line(lane)
            self.pump()
        else:
            self._send_all(lane)

    def pump(self) -> None:
        """Send as long as there are slots and lanes in line."""
        if self._pumping or not self.waiting:
            return
        self._pumping = True
        try:
            while self.in_flight < self.slots and self._may_send():
                lane = self._next()
                if lane is None:
                    return
                if lane.can_send():
                    self._send_one(lane)
                self.offer(lane)
        finally:
            self._pumping = False

    def _send_all(self, lane: Lane) -> None:
        """Send all of the lane: the path of nearly every delivery. Nobody waits, so there is no turn to keep."""
        self._pumping = True
        more = True
        try:
            while more and self.in_flight < self.slots and self._has_share(lane.health) and self._may_send():
                self._send_one(lane)
                more = lane.can_send()
        finally:
            self._pumping = False
        if more:
            self._stand_in_line(lane)
        else:
            self._look_later(lane)

    def _look_later(self, lane: Lane) -> None:
        """Set an alarm for when time, or a due probe, ends what holds the lane back.

        If something else ends it, the lane is offered again when that happens. The time may already be over: it passed
        since the lane was asked whether it can send.
        """
        if lane.flow.is_plain or not lane.has_unsent or not lane.is_held:
            return
        if lane.flow.wants_probe():
            self.on_probe(lane)
        elif lane.awaits_time():
            self._wake_at(lane, lane.flow.looks_again_at())

    def _has_share(self, health: LaneHealth) -> bool:
        used = self._used
        if health is LaneHealth.PROVEN:
            return True
        return (
            used[health] < self._shares[health] and self.in_flight - used[LaneHealth.PROVEN] < self._unproven
        )

    def _send_one(self, lane: Lane) -> None:
        """Send the lane's next delivery, unless its host is at its cap, or there is no memory."""
        host = lane.prepared.host if lane.prepared is not None else None
        if host is not None and not host.admits(lane):
            host.park(lane)
            self._crowded.add(host)
            return
        delivery = lane.pop()
        if delivery.payload is None:
            size = delivery.payload_bytes
            if not self._memory.admits(lane, size):
                lane.unpop(delivery)
                self._memory.park(lane, size)
                return
            self._memory.take(lane, size)
        if host is not None:
            host.in_flight += 1
            if lane.is_called:
                lane.end_call()
        is_probe = lane.flow.spend()
        self.in_flight += 1
        self._used[lane.health] += 1
        self._send(lane, delivery, is_probe)

    def _stand_in_line(self, lane: Lane) -> None:
        if lane not in self.waiting:
            self.waiting[lane] = lane.health
            self._lines[lane.health].append(lane)

    def _step_out(self, lane: Lane) -> bool:
        """Take the lane out of its line; says whether it stood in one."""
        health = self.waiting.pop(lane, None)
        if health is None:
            return False
        self._lines[health].remove(lane)
        return True

    def regraded(self, lane: Lane, before: LaneHealth) -> None:
        """The lane belongs to another class: it waits no longer for the slots and the memory of its former one."""
        if self._step_out(lane):
            self._stand_in_line(lane)
        self._memory.regraded(lane, before)

    async def run_alarms(self) -> None:
        """Offer lanes again when the time that held them back is over, until cancelled."""
        while True:
            self._alarm_set.clear()
            now = self._clock.now()
            while self._alarms and self._alarms[0][0] <= now:
                lane = heappop(self._alarms)[2]
                self._alarm_at.pop(lane, None)
                self.offer(lane)
            pause = self._alarms[0][0] - now if self._alarms else _NO_ALARM
            await self._clock.wait(self._alarm_set, max(pause, 0.0))

    def look_at_alarms(self) -> None:
        """The clock may have been put right: an alarm may be due sooner than was worked out."""
        if self._alarms and self._alarms[0][0] <= self._clock.now():
            self._alarm_set.set()

    async def alone(self, lane: Lane, send: Callable[[], Awaitable[None]], over: asyncio.Event) -> None:
        """Let no other lane send and, when nothing else is under way, let this lane send until it is over.

        It waits for neither longer than a turn takes: an endpoint that hangs must not stop the whole worker.
        """
        self._alone = lane
        try:
            until = self._clock.monotonic() + TURN
            while self.in_flight and self._clock.monotonic() < until:
                await self._clock.sleep(_DRAINING)
            await send()
            await self._clock.wait(over, TURN)
        finally:
            self._alone = None
            self.pump()

    def _wake_at(self, lane: Lane, at: float) -> None:
        if at >= self._alarm_at.get(lane, FOREVER) or lane.is_lost:
            return
        self._alarm_at[lane] = at
        heappush(self._alarms, (at, next(self._order), lane))
        if self._alarms[0][2] is lane:
            self._alarm_set.set()

    def finish(self, health: LaneHealth, host: Host | None) -> None:
        """A delivery is no longer under way; it was begun in that health and to that host."""
        self.in_flight -= 1
        self._used[health] -= 1
        if host is not None:
            host.in_flight -= 1
            if host.line:
                self._call(host)

    def call_waiting(self) -> None:
        """Call lanes that wait for a host or memory: one called before may have had nothing to send at its turn."""
        self._memory.forget_lost()
        self._memory.call_waiting()
        for host in tuple(self._crowded):
            self._call(host)

    def _call(self, host: Host) -> None:
        """Put the lanes in line that their host has room for: their turn is before that of the finished lane."""
        free = host.cap - host.in_flight
        while free > 0 and (lane := host.call()) is not None:
            if lane.can_send():
                self._stand_in_line(lane)
                free -= 1
            else:
                lane.end_call()
                self._look_later(lane)
        if not host.line:
            self._crowded.discard(host)

    def _next(self) -> Lane | None:
        if self._alone is not None:
            return self._alone if self._step_out(self._alone) else None
        for step in range(len(_CLASSES)):
            health = _CLASSES[(self._turn + step) % len(_CLASSES)]
            line = self._lines[health]
            if line and self._has_share(health):
                self._turn = (health + 1) % len(_CLASSES)
                if health is LaneHealth.UNTRIED:
                    # Oldest and newest in turn: a flood of untried lanes starves neither the last nor the first.
                    self._newest_first = not self._newest_first
                    lane = line.pop() if self._newest_first else line.popleft()
                else:
                    lane = line.popleft()
                del self.waiting[lane]
                return lane
        return None
