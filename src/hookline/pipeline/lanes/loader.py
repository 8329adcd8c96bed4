"""Loads due deliveries from the store into the lanes.

There is one loader, with one statement for all lanes that have room and may have rows. Polling is the guarantee; a
nudge only makes it sooner.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.failpoints import failpoint
from hookline.model import FOREVER, LONG_AGO, DeliveryId
from hookline.pipeline.lanes.buffers import Buffers
from hookline.pipeline.lanes.lane import Lane
from hookline.rules.slots import LaneHealth
from hookline.store.contract import Loaded, Store, Want

_TICK = (
    0.1  # seconds between looks at recently active lanes, where there are no notifications of others' commits
)
_SHORTEST = 0.01  # least seconds between two loads without a nudge
_AT_ONCE = 200  # deliveries offered before others have their turn: about 20 ms
_LANES_AT_ONCE = 500  # most lanes that one load is for: a few milliseconds, here and in the database
_ACTIVE = 2.0  # a lane is active for so many seconds after its last delivery

log = structlog.get_logger()


class Loader:
    """Fills the lanes' buffers.

    Every owned lane has one next look: at a time in the heap, or now in the line of its class, where it waits for room.
    Nothing here walks over all lanes; a worker may own thousands. All polled lanes are polled at the same moments, so
    that one statement serves all of them, whenever each became quiet.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        buffers: Buffers,
        poll: float,
        is_alone: Callable[[], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._buffers = buffers
        self._poll = poll
        self._is_alone = is_alone  # is there no other process that could publish?
        self.on_loaded: Callable[[Lane], None]
        self.on_headless: Callable[[Lane], None]  # a lane waits for a head that is not where it should be
        self._nudged = asyncio.Event()
        self._loading = False
        self._tombstones: set[DeliveryId] = set()
        # By monotonic time; an entry is valid while it is the lane's next look.
        self._looks: list[tuple[float, int, Lane]] = []
        self._next_look: dict[Lane, float] = {}
        self._order = count()
        # Ordered dicts: a lane leaves from the middle when its health changes.
        self._lines: tuple[OrderedDict[Lane, None], ...] = tuple(OrderedDict() for _ in LaneHealth)

    def nudge(self, lane: Lane) -> None:
        """Look at this lane as soon as possible."""
        lane.want_load()
        if self._next_look.get(lane, FOREVER) > LONG_AGO:
            self._look_at(lane, LONG_AGO)
        self._nudged.set()

    def expect(self, lane: Lane, due_at: float) -> None:
        """A delivery of the lane is due then."""
        if lane.expect(due_at):
            at = self._clock.monotonic() + due_at - self._clock.now()
            if at < self._next_look.get(lane, FOREVER):
                self._look_at(lane, at)
                if self._looks[0][2] is lane:
                    self._nudged.set()

    def settled(self, id: DeliveryId) -> None:
        """A delivery left its lane: a load under way may still return its old row."""
        if self._loading:
            self._tombstones.add(id)

    def has_room(self) -> None:
        """Deliveries left their lanes: lanes in line may be loaded now."""
        if any(self._lines):
            self._nudged.set()

    def regraded(self, lane: Lane, before: LaneHealth) -> None:
        """The lane belongs to another class: if it is in line, it waits for the room of that class from now on."""
        line = self._lines[before]
        if lane in line:
            del line[lane]
            self._lines[lane.health][lane] = None
            self._nudged.set()

    async def run(self) -> None:
        """Load until cancelled."""
        while True:
            try:
                more = await self.look()
            except StoreUnavailable as error:
                log.debug("load.failed", error=str(error))
                more = False
            if not more:
                await self._clock.wait(self._nudged, self._pause())
            self._nudged.clear()

    async def look(self) -> bool:
        """Load once for every lane whose turn it is and that has room; True if any has more."""
        at, now = self._clock.monotonic(), self._clock.now()
        self._line_up(at, now)
        asked = self._ask(at)
        if not asked:
            return False
        known = [id for lane, _, _ in asked for id in lane.known]
        for lane, _, _ in asked:
            lane.begin_load(at=at, now=now)
        self._loading = True
        try:
            rows = await self._store.load([want for _, want, _ in asked], known=known, now=now)
        except BaseException:
            for lane, _, _ in asked:
                lane.not_loaded()
                lane.read_again()
                self._look_at(lane, at + self._poll)
            raise
        finally:
            self._loading = False
            tombstones, self._tombstones = self._tombstones, set()
        for lane, _, _ in asked:
            if lane.polled_at == at:
                self._look_again(lane, at, now)
            else:
                self._look_at(lane, LONG_AGO)  # nudged meanwhile
        failpoint("load.after")
        await self._offer(self._spread(asked, rows, tombstones))
        more = [lane for lane, _, _ in asked if lane.behind and lane.wants_more() and not lane.awaits_head]
        for lane in more:
            self.nudge(lane)
        return bool(more) or any(
            line and self._buffers.room(health) > 0
            for health, line in zip(LaneHealth, self._lines, strict=True)
        )  # room was kept for lanes that had nothing: lanes still in line can have it

    def _line_up(self, at: float, now: float) -> None:
        """Put the lanes whose time has come into the line of their class."""
        lined_up = 0
        while self._looks and self._looks[0][0] <= at and lined_up < _LANES_AT_ONCE:
            due, _, lane = heappop(self._looks)
            if lane.is_lost:
                self._next_look.pop(lane, None)
                continue
            if due != self._next_look.get(lane):
                continue
            lined_up += 1
            if lane.has_unsent and lane.is_held and lane.flow.wants_probe():
                # Offer it for its probe: it was not released in the cooldown, and without room no load offers it.
                self.on_loaded(lane)
            if self._is_turn(lane, now):
                self._next_look[lane] = LONG_AGO
                self._lines[lane.health][lane] = None
            else:
                self._look_again(lane, at, now)

    def _ask(self, at: float) -> list[tuple[Lane, Want, int]]:
        """What to load for which lanes: equal shares of the free room, first come first served."""
        asked: list[tuple[Lane, Want, int]] = []
        for health in LaneHealth:
            line = self._lines[health]
            left = self._buffers.room(health)
            share = max(1, left // max(1, len(line)))
            while line and left > 0:
                lane, _ = line.popitem(last=False)
                if lane.is_lost:
                    self._next_look.pop(lane, None)
                    continue
                room = min(lane.room(), share)
                if room <= 0 or not lane.is_held or lane.is_careful:
                    self._look_at(lane, _next(at, self._poll))  # any change of that nudges too
                    continue
                if lane.order is not None and lane.awaits_head and lane.order.due is None:
                    self._look_at(lane, _next(at, self._poll))
                    self.on_headless(lane)
                    continue
                left -= room
                asked.append((lane, lane.want(room, at=at), lane.generation))
        return asked

    def _spread(
        self, asked: list[tuple[Lane, Want, int]], rows: list[Loaded], tombstones: set[DeliveryId]
    ) -> list[Lane]:
        """Put the rows into their lanes; the lanes that have something to send."""
        offered = []
        by_lane: dict[bytes, list[Loaded]] = {}
        for row in rows:
            by_lane.setdefault(row.endpoint_id, []).append(row)
        for lane, want, generation in asked:
            found = by_lane.get(lane.endpoint_id, [])
            if lane.is_lost or lane.generation != generation:
                lane.not_loaded()
                continue  # lost, or the row is older than an operator's change: it is read again
            order = lane.order
            if order is not None and lane.awaits_head and all(row.id != order.head for row in found):
                # The head goes first and needs the room. Either this row was read before the head went back to wait, or
                # the head is due at another time than this worker believes.
                lane.not_loaded()
                if not want.ready:
                    self.on_headless(lane)
                continue
            ready = 0
            for row in found:
                ready += row.queue == "ready"
                if row.id not in lane.known and row.id not in tombstones:
                    lane.add(row)
            lane.loaded(want, ready=ready, timed=len(found) - ready)
            if lane.has_unsent or lane.is_suspect:
                offered.append(lane)
        return offered

    async def _offer(self, lanes: list[Lane]) -> None:
        """Let them send, a few at a time: between them answers are read and settled, which makes room for a load."""
        sent = 0
        for lane in lanes:
            if lane.is_lost:
                continue  # lost meanwhile
            sent += len(lane.ready) + len(lane.timed)
            self.on_loaded(lane)
            if sent >= _AT_ONCE:
                sent = 0
                await self._clock.sleep(0)

    def _is_turn(self, lane: Lane, now: float) -> bool:
        """Whether something may be loaded for the lane, now that it is looked at."""
        if not lane.is_held or lane.is_careful or lane.room() <= 0:
            return False  # any change of that nudges, or sets another look
        if lane.awaits_head:
            return now >= lane.flow.hold_until
        # Refill at half: a lane that is behind is loaded again when that many are settled.
        return not lane.behind or lane.wants_more() or lane.next_due <= now

    def _look_again(self, lane: Lane, at: float, now: float) -> None:
        """Set the lane's next look: after a while, or when something of it is due."""
        every = self._poll
        if at - lane.active_at < _ACTIVE and not self._is_alone():
            every = min(every, _TICK)
        look = _next(at, every)
        for due in (lane.next_due, lane.flow.hold_until if lane.awaits_head else FOREVER):
            if due > now:
                look = min(look, at + due - now)
        self._look_at(lane, look)

    def _look_at(self, lane: Lane, at: float) -> None:
        self._next_look[lane] = at
        heappush(self._looks, (at, next(self._order), lane))

    def _pause(self) -> float:
        next_look = self._looks[0][0] - self._clock.monotonic() if self._looks else self._poll
        return max(next_look, _SHORTEST)


def _next(at: float, every: float) -> float:
    """The next common moment at which all lanes are polled; these moments are `every` seconds apart."""
    return (at // every + 1) * every
