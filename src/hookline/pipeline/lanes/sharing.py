"""Which lanes does a worker with more than its share leave to others?

Those with the least under way. They take nothing new for a moment, and go when what was under way is settled; one that
is still busy then goes on here as if nothing had been.
"""

from hookline.clock import Clock
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.ownership import Holdings

_MOMENT = 0.5  # seconds that a lane may stand still
_STEP = 0.02
_LONGEST = 60.0  # seconds between two tries where what is left to others is not taken


class Sharing:
    """Gives away half of what is too much, and looks what became of it before it gives more."""

    def __init__(self, holdings: Holdings, clock: Clock, *, every: float) -> None:
        self._holdings = holdings
        self._clock = clock
        self._every = every  # the others' numbers are no newer than that
        self._pause = every
        self._next_at = 0.0
        self._expected = 0  # lanes that the others should hold by now

    async def look(self) -> None:
        """Let lanes go if there are too many here, and others could take them; they may have more to send."""
        at = self._clock.monotonic()
        over = self._holdings.surplus()
        if not over or at < self._next_at:
            return
        elsewhere = sum(self._holdings.elsewhere())
        in_vain = elsewhere < self._expected
        self._pause = min(4 * self._pause, _LONGEST) if in_vain else self._every
        self._next_at = at + self._pause
        given = await self._give([*self._movable()][: (over + 1) // 2])
        self._expected = elsewhere + (given + 1) // 2

    def _movable(self) -> list[Lane]:
        lanes = (
            lane
            for lane in self._holdings.lanes.values()
            if lane.is_held and not (lane.is_careful or lane.is_suspect)
        )
        return sorted(lanes, key=lambda lane: lane.in_flight + lane.unsettled)

    async def _give(self, lanes: list[Lane]) -> int:
        """How many of them could be let go."""
        left = lanes
        for lane in left:
            lane.begin_release()
        end = self._clock.monotonic() + _MOMENT
        try:
            while left and self._clock.monotonic() < end:
                await self._holdings.release(left, woken=True)
                left = [lane for lane in left if not lane.lost]
                if left:
                    await self._clock.sleep(_STEP)
        finally:
            if not self._holdings.is_in_doubt:  # else it is found out first who owns them
                for lane in left:
                    if not lane.lost:
                        self._holdings.keep(lane)
        return len(lanes) - len(left)
