"""How do due deliveries get from the store into the lanes?

One loader, one statement for all lanes that have room and may have rows. Polling is the guarantee; being
nudged only makes it sooner.
"""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.failpoints import failpoint
from hookline.model import FOREVER, DeliveryId
from hookline.pipeline.lane import Buffers, Lane
from hookline.rules.slots import Health
from hookline.store.contract import Loaded, Store, Want

_TICK = 0.1  # seconds between looks at lanes that were active lately
_SHORTEST = 0.01  # seconds between two loads at least, when nobody nudges
_ACTIVE = 2.0  # seconds since its last delivery that a lane counts as active

log = structlog.get_logger()


class Loader:
    """Fills the lanes' buffers."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        lanes: Callable[[], Iterable[Lane]],
        buffers: Buffers,
        poll: float,
        on_loaded: Callable[[Lane], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._buffers = buffers
        self._poll = poll
        self._on_loaded = on_loaded
        self._nudged = asyncio.Event()
        self._loading = False
        self._tombstones: set[DeliveryId] = set()

    def nudge(self, lane: Lane) -> None:
        """Look at this lane as soon as may be."""
        lane.polled_at = float("-inf")
        self._nudged.set()

    def settled(self, id: DeliveryId) -> None:
        """A delivery left its lane: a load under way may still bring its row, from before."""
        if self._loading:
            self._tombstones.add(id)

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
        """Load once for every lane whose turn it is; says whether any of them has more."""
        at, now = self._clock.monotonic(), self._clock.now()
        asked = self._ask(at, now)
        if not asked:
            return False
        known = [id for lane, _, _ in asked for id in lane.known]
        for lane, _, _ in asked:
            lane.missed = False
            lane.polled_at = at
            if lane.next_due <= now:
                lane.next_due = FOREVER
        self._loading = True
        try:
            rows = await self._store.load([want for _, want, _ in asked], known=known, now=now)
        except StoreUnavailable:
            for lane, _, _ in asked:
                lane.read_again()
            raise
        finally:
            self._loading = False
            tombstones, self._tombstones = self._tombstones, set()
        failpoint("load.after")
        self._spread(asked, rows, tombstones)
        return any(lane.behind and lane.room() >= lane.cap and not lane.awaits_head for lane, _, _ in asked)

    def _ask(self, at: float, now: float) -> list[tuple[Lane, Want, int]]:
        """What to load for which lanes: equal shares of the room that is left, those loaded longest ago first."""
        turns: tuple[list[Lane], ...] = tuple([] for _ in Health)
        for lane in self._lanes():
            if lane.is_held and lane.room() > 0 and self._is_turn(lane, at, now) and not lane.is_careful:
                turns[lane.health].append(lane)
        asked: list[tuple[Lane, Want, int]] = []
        for health in Health:
            lanes = turns[health]
            left = self._buffers.room(health)
            if not lanes or left <= 0:
                continue
            share = max(1, left // len(lanes))
            if left < len(lanes):
                lanes.sort(key=lambda lane: lane.loaded_at)
            for lane in lanes[:left]:
                room = min(lane.room(), share)
                lane.loaded_at = at
                asked.append((lane, lane.want(room, at=at), lane.generation))
        return asked

    def _spread(
        self, asked: list[tuple[Lane, Want, int]], rows: list[Loaded], tombstones: set[DeliveryId]
    ) -> None:
        by_lane: dict[bytes, list[Loaded]] = {}
        for row in rows:
            by_lane.setdefault(row.endpoint_id, []).append(row)
        for lane, want, generation in asked:
            found = by_lane.get(lane.endpoint_id, [])
            if lane.lost or lane.generation != generation:
                continue  # lost, or what was read is older than an operator's change: it is read again
            ready = 0
            for row in found:
                ready += row.queue == "ready"
                if row.id not in lane.known and row.id not in tombstones:
                    lane.add(row)
            timed = len(found) - ready
            lane.has_few_ready = ready < want.ready
            lane.behind = lane.missed or ready >= want.ready or timed >= want.timed
            if timed < want.timed:
                lane.saw_all_due()
            if lane.has_unsent or lane.is_suspect:
                self._on_loaded(lane)

    def _is_turn(self, lane: Lane, at: float, now: float) -> bool:
        if lane.awaits_head:
            return now >= lane.gate.hold_until and at - lane.polled_at >= _TICK
        if lane.next_due <= now:
            return True
        if lane.behind and lane.room() < lane.cap:
            return False  # refill at half: it is asked again when that many are settled
        return at - lane.polled_at >= (_TICK if at - lane.active_at < _ACTIVE else self._poll)

    def _pause(self) -> float:
        at, now = self._clock.monotonic(), self._clock.now()
        pause = self._poll
        for lane in self._lanes():
            if at - lane.active_at < _ACTIVE:
                pause = min(pause, _TICK)
            if lane.next_due < FOREVER and lane.is_held and lane.room() > 0:
                pause = min(pause, lane.next_due - now)
        return max(pause, _SHORTEST)
