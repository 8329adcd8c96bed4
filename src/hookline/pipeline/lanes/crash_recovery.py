"""Sends the deliveries of a lane whose last owner died.

One of the lane's own deliveries may have killed the owner. Its suspects take turns with those of all other such lanes
of this worker, the least suspect first. Each is marked in the store just before its turn. A delivery with four marks
becomes a dead letter. When the others are settled the lane continues as usual.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import cast

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.model import DeliveryId, EndpointId, WorkerId
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.lane_tasks import LaneTasks
from hookline.rules.crash_suspects import (
    TURN,
    goes_alone,
    plan,
    room_for,
)
from hookline.store.contract import Loaded, Store

_LOOK_EVERY = 0.1  # seconds, while some wait: a turn may be over, or a lane may send again
_IDLE = 60.0

log = structlog.get_logger()


class CrashRecovery:
    """Sends suspects."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        tasks: LaneTasks,
        *,
        slots: int,
        worker: Callable[[], WorkerId],
        probe: Callable[[Lane], Awaitable[None]],
        offer: Callable[[Lane], None],
        alone: Callable[[Lane, Callable[[], Awaitable[None]], asyncio.Event], Awaitable[None]],
        on_done: Callable[[Lane], None],
        on_condemned: Callable[[EndpointId, int], None],
        announces: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._slots = slots
        self._worker = worker
        self._probe = probe  # lets one through where the circuit asks for a probe
        self._offer = offer
        self._alone = alone
        self._on_done = on_done
        self._on_condemned = on_condemned
        self._announces = announces  # whether somebody listens to own events
        self._waiting: dict[int, dict[Lane, _Line]] = {}  # by the marks of the first that waits
        self._turns: dict[DeliveryId, _Turn] = {}
        self._changed = asyncio.Event()
        self.condemned = 0  # deliveries that died of the crashes they caused, since the start

    def settled(self, id: DeliveryId) -> None:
        """A delivery was settled, or is no longer this worker's."""
        turn = self._turns.pop(id, None)
        if turn is not None:
            turn.end(id)
            self._changed.set()

    def begin(self, lane: Lane) -> None:
        """Suspects were loaded into the lane: send them, unless they may not be sent yet."""
        if not lane.is_careful and not lane.flow.wants_no_probe_yet() and not self._tasks.has(lane):
            lane.begin_care()
            self._tasks.run(lane, self._send_all(lane))

    async def _send_all(self, lane: Lane) -> None:
        """Send the suspects that were loaded into the lane, then let it go on as usual."""
        suspects: Sequence[Loaded] = lane.set_aside()
        if lane.order is not None:
            suspects = lane.order.first(suspects)
            for id in lane.aside.keys() - {each.id for each in suspects}:
                lane.forget_aside(id)
        plans = plan(suspects)
        condemned = cast("Sequence[Loaded]", plans.condemned)
        if condemned:
            dead = await self._store.condemn(
                self._worker(),
                [lane.suspect(each) for each in condemned],
                now=self._clock.now(),
                announce=self._announces(),
            )
            self.condemned += len(dead)
            for each in condemned:
                lane.forget_aside(each.id)
            self._on_condemned(lane.endpoint_id, len(dead))
            log.warning("delivery.condemned", deliveries=[ids.show("delivery", id) for id in dead])
        line = _Line(lane, cast("Sequence[Loaded]", plans.sent))
        self._stand_in_line(line)
        self._changed.set()
        try:
            await line.wait()
        finally:
            self._leave(line)
        lane.end_care()
        self._on_done(lane)

    async def run(self) -> None:
        """Give out turns, until cancelled."""
        while True:
            self._changed.clear()
            while turns := self._next():
                await self._give(turns)
            await self._clock.wait(self._changed, _LOOK_EVERY if self._waiting else _IDLE)

    def _stand_in_line(self, line: "_Line") -> None:
        """As the last of those that are as little suspect."""
        if line.waiting:
            self._waiting.setdefault(line.marks, {})[line.lane] = line

    def _step_out(self, line: "_Line") -> None:
        if line.waiting:
            lines = self._waiting[line.marks]
            del lines[line.lane]
            if not lines:
                del self._waiting[line.marks]

    def _leave(self, line: "_Line") -> None:
        """Its suspects are settled, or its lane does not send them any more."""
        self._step_out(line)
        line.waiting.clear()
        for id, turn in line.under_way.items():
            if self._turns.get(id) is turn:
                del self._turns[id]
            turn.over.set()
        line.under_way.clear()
        self._changed.set()

    def _next(self) -> "list[tuple[_Line, list[Loaded]]]":
        """Who has a turn now.

        A lane that cannot send is passed over, and a turn is over after a while, so that nobody waits long for an
        endpoint that hangs or is held back.
        """
        at = self._clock.monotonic()
        beside = [turn.marks for turn in self._turns.values() if at < turn.ends_at]
        for marks in sorted(self._waiting):
            lines = tuple(self._waiting[marks].values())
            able = (line for line in lines if line.lane.free_window())
            first = next(able, None)
            if first is None:
                continue
            room = room_for(
                marks, beside=beside, slots=self._slots, others_are_marked=self._are_some_marked(lines)
            )
            turns = []
            for line in chain((first,), able):
                if room <= 0:
                    break
                self._step_out(line)
                group = line.take(min(room, line.lane.free_window()))
                room -= len(group)
                self._stand_in_line(line)
                turns.append((line, group))
            return turns
        return []

    def _are_some_marked(self, least: "Sequence[_Line]") -> bool:
        """Do some wait that are marked, in lines of their own or at the end of these?"""
        return len(self._waiting) > 1 or any(line.waiting[-1].marks for line in least)

    async def _give(self, turns: "Sequence[tuple[_Line, Sequence[Loaded]]]") -> None:
        ends_at = self._clock.monotonic() + TURN
        for line, group in turns:
            for each in group:
                self._turns[each.id] = line.under_way[each.id] = _Turn(line, each.marks, ends_at)
        try:
            (line, group) = turns[0]
            if goes_alone(group[0].marks):
                over = line.under_way[group[0].id].over
                await self._alone(line.lane, lambda: self._send(turns), over)
            else:
                await self._send(turns)
        except Exception as error:  # whatever it is, it is theirs: the turns of others go on
            for line, _ in turns:
                line.fail(error)

    async def _send(self, turns: "Sequence[tuple[_Line, Sequence[Loaded]]]") -> None:
        """Mark these, then let their lanes send them.

        Only those about to be sent are marked: a delivery that never got its turn is no more suspect than before.
        """
        suspects = [line.lane.suspect(each) for line, group in turns for each in group]
        marked = set(await self._store.mark(self._worker(), suspects, now=self._clock.now()))
        for line, group in turns:
            lane = line.lane
            for each in reversed(group):
                if each.id not in line.under_way or each.id not in lane.known:
                    continue  # the lane went away meanwhile, or forgot it and reads it again
                if each.id in marked:
                    lane.push_back(each)
                else:
                    lane.forget_aside(each.id)  # somebody else settled or cancelled it
                    self.settled(each.id)
            if lane.has_unsent:
                if lane.flow.wants_probe():
                    await self._probe(lane)
                self._offer(lane)


class _Line:
    """The suspects of one lane: those that wait for a turn, and those that have one."""

    __slots__ = ("_over", "lane", "under_way", "waiting")

    def __init__(self, lane: Lane, suspects: Sequence[Loaded]) -> None:
        self.lane = lane
        self.waiting = deque(suspects)  # the least suspect first
        self.under_way: dict[DeliveryId, _Turn] = {}
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not suspects:
            self._over.set_result(None)

    @property
    def marks(self) -> int:
        return self.waiting[0].marks

    def take(self, most: int) -> list[Loaded]:
        """The next ones, as many as are equally suspect."""
        marks = self.marks
        taken: list[Loaded] = []
        while len(taken) < most and self.waiting and self.waiting[0].marks == marks:
            taken.append(self.waiting.popleft())
        return taken

    def settled(self, id: DeliveryId) -> None:
        self.under_way.pop(id, None)
        if not self.under_way and not self.waiting and not self._over.done():
            self._over.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    async def wait(self) -> None:
        """Until all of them are settled."""
        await self._over


class _Turn:
    """One suspect's turn, from before it is marked until it is settled."""

    __slots__ = ("_line", "ends_at", "marks", "over")

    def __init__(self, line: _Line, marks: int, ends_at: float) -> None:
        self._line = line
        self.marks = marks
        self.ends_at = ends_at
        self.over = asyncio.Event()

    def end(self, id: DeliveryId) -> None:
        self.over.set()
        self._line.settled(id)
