"""Which lanes does a saturated worker leave to those that have room?

Lanes that stood in line at two looks, a second apart, and sent nothing in between. Nothing of this is counted while
deliveries are sent: a look compares what the lanes had sent by then.
"""

from collections.abc import Callable, Sequence

from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.ownership import Holdings
from hookline.rules.shedding import Peer, give_up
from hookline.store.contract import Worker


class Shedding:
    """Compares one look with the next."""

    def __init__(
        self, holdings: Holdings, dispatcher: Dispatcher, *, peers: Callable[[], Sequence[Worker]]
    ) -> None:
        self._holdings = holdings
        self._dispatcher = dispatcher
        self._peers = peers
        self._in_line: dict[Lane, int] = {}  # at the look before, with what they had sent by then

    async def look(self) -> None:
        """Let lanes go that wait here in vain while others have room; they have more to send."""
        before, self._in_line = self._in_line, {}
        # With a slot left it would be this worker that takes them again.
        if not self._dispatcher.is_saturated or not self._dispatcher.waiting:
            return
        lanes = self._holdings.lanes.values()
        self._in_line = {lane: lane.sends for lane in lanes if lane.queued}
        waiting = [
            lane
            for lane, sends in self._in_line.items()
            if before.get(lane) == sends
            and not (lane.in_flight or lane.unsettled or lane.releasing or lane.is_careful or lane.is_suspect)
        ]
        peers = [Peer(peer.load.free_slots, peer.buried or peer.load.draining) for peer in self._peers()]
        await self._holdings.release(waiting[: give_up(len(waiting), peers)], woken=True)
