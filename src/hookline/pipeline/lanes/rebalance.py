"""Leaves lanes to other workers.

`Sharing` leaves the lanes beyond this worker's share, those with the least under way first. They take nothing new for a
moment and are released when everything under way is settled. A lane that is still busy then continues here as before.

`Shedding` leaves the lanes that wait in vain for a slot: those that stood in line at two looks, a second apart, and
sent nothing in between. Nothing is counted for this while deliveries are sent: a look compares how much the lanes have
sent.
"""

from collections.abc import Callable, Sequence

from hookline.clock import Clock
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.ownership import Ownership
from hookline.rules.shedding import Peer, give_up
from hookline.store.contract import WorkerRow

_MOMENT = 0.5  # seconds that a lane may stand still
_STEP = 0.02
_LONGEST = 60.0  # seconds between two tries when nobody takes the lanes that are left


class Sharing:
    """Gives away half of the surplus, then checks whether others took it before it gives more."""

    def __init__(self, ownership: Ownership, clock: Clock, *, every: float) -> None:
        self._ownership = ownership
        self._clock = clock
        self._every = every  # the numbers of the others are no newer than that
        self._pause = every
        self._next_at = 0.0
        self._expected = 0  # lanes that the others should own by now

    async def look(self) -> None:
        """Release lanes if there are too many here and others could take them; they may have more to send."""
        at = self._clock.monotonic()
        over = self._ownership.surplus()
        if not over or at < self._next_at:
            return
        elsewhere = sum(self._ownership.elsewhere())
        in_vain = elsewhere < self._expected
        self._pause = min(4 * self._pause, _LONGEST) if in_vain else self._every
        self._next_at = at + self._pause
        given = await self._give([*self._movable()][: (over + 1) // 2])
        self._expected = elsewhere + (given + 1) // 2

    def _movable(self) -> list[Lane]:
        lanes = (lane for lane in self._ownership.lanes.values() if lane.is_held and not lane.is_suspect)
        return sorted(lanes, key=lambda lane: lane.in_flight + lane.unsettled)

    async def _give(self, lanes: list[Lane]) -> int:
        """Try to release them; how many were released."""
        left = lanes
        for lane in left:
            lane.begin_release()
        end = self._clock.monotonic() + _MOMENT
        try:
            while left and self._clock.monotonic() < end:
                await self._ownership.release(left, woken=True)
                left = [lane for lane in left if not lane.is_lost]
                if left:
                    await self._clock.sleep(_STEP)
        finally:
            if not self._ownership.is_in_doubt:  # else the owner is checked first
                for lane in left:
                    if not lane.is_lost:
                        self._ownership.keep(lane)
        return len(lanes) - len(left)


class Shedding:
    """Compares one look with the next."""

    def __init__(
        self, ownership: Ownership, dispatcher: Dispatcher, *, peers: Callable[[], Sequence[WorkerRow]]
    ) -> None:
        self._ownership = ownership
        self._dispatcher = dispatcher
        self._peers = peers
        self._in_line: dict[Lane, int] = {}  # at the last look, with what they had sent by then

    async def look(self) -> None:
        """Release lanes that wait here in vain while others have room; they have more to send."""
        before, self._in_line = self._in_line, {}
        # With a free slot, this worker would take them again.
        if not self._dispatcher.is_saturated or not self._dispatcher.waiting:
            return
        self._in_line = {lane: lane.sends for lane in self._dispatcher.waiting if not lane.is_lost}
        waiting = [
            lane for lane, sends in self._in_line.items() if before.get(lane) == sends and lane.is_movable
        ]
        peers = [Peer(peer.load.free_slots, peer.buried or peer.load.draining) for peer in self._peers()]
        await self._ownership.release(waiting[: give_up(len(waiting), peers)], woken=True)
