"""Hands a delivery that was just committed over to its lane.

It is handed over from memory if this worker owns the lane and nothing goes before the delivery. Otherwise the lane
learns that the store holds something for it: by a load if it is owned here, by a wake if it is not.
"""

from collections.abc import Callable, Sequence

from hookline.clock import Clock
from hookline.model import DeliveryId, EndpointId
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.loader import Loader
from hookline.pipeline.lanes.ownership import LaneTaker, Ownership
from hookline.pipeline.lanes.wake import Waiting, Wakes
from hookline.pipeline.membership.heartbeat import Heartbeat
from hookline.store.contract import Loaded, Store


class Handover:
    """Hands over committed deliveries, and wakes the lanes that they cannot be handed to."""

    def __init__(
        self,
        store: Store,
        ownership: Ownership,
        taker: LaneTaker,
        loader: Loader,
        dispatcher: Dispatcher,
        heartbeat: Heartbeat,
        clock: Clock,
        *,
        on_woken: Callable[[Sequence[EndpointId]], None],
    ) -> None:
        self._ownership = ownership
        self._taker = taker
        self._loader = loader
        self._heartbeat = heartbeat
        self._clock = clock
        # Read for each delivery.
        self._lanes = ownership.lanes
        self._room = ownership.buffers.room
        self._offer = dispatcher.offer
        self._is_closed = False
        self.wakes = Wakes(store, clock, take=self._take_woken, on_woken=on_woken)

    def close(self) -> None:
        """Reserve nothing more; what is committed from now on is left to other workers."""
        self._is_closed = True

    def takes_over(self) -> bool:
        """Whether deliveries may be reserved here at all now."""
        return not self._is_closed and self._heartbeat.is_fresh()

    def reserve(self, endpoint: EndpointId, delivery: DeliveryId) -> Lane | None:
        """The lane that the delivery can be handed to once it is committed; None when there is none."""
        lane = self._lanes.get(endpoint)
        if (
            lane is None
            or not lane.takes_fresh  # a strict lane does not: the load keeps its order
            or lane.parked_at is not None  # other lanes of its host go first, and the memory is theirs
            or lane.capacity <= len(lane.known)
            or self._room(lane.health) <= 0
        ):
            return None
        lane.reserve(delivery)
        return lane

    def knows(self, endpoint: EndpointId, delivery: DeliveryId) -> bool:
        """Whether the endpoint's lane is owned here and has the delivery."""
        lane = self._lanes.get(endpoint)
        return lane is not None and delivery in lane.known

    def hand_over(self, lane: Lane, delivery: Loaded, *, at: float) -> None:
        """The reserved delivery is committed: send it."""
        if delivery.id not in lane.known or not lane.is_held:
            lane.forget(delivery.id)
            self.wakes.add(delivery.endpoint_id)  # the lane went away meanwhile
            return
        if lane.behind:
            if not lane.hold_up(delivery):
                lane.forget(delivery.id)
                self._miss(lane)
            return
        lane.add(delivery, at=at)
        self._offer(lane)

    def give_up(self, lane: Lane, delivery: DeliveryId) -> None:
        """Drop a reservation whose delivery was not committed, is in doubt, or is not handed over; then look."""
        if lane.is_reserved(delivery):
            lane.forget(delivery)
            lane.read_again()

    def announce(
        self, endpoint: EndpointId, delivery: Loaded | None = None, *, due_at: float | None = None
    ) -> None:
        """A delivery of the lane was committed and is not handed over; it is due now, or at `due_at`."""
        lane = self._lanes.get(endpoint)
        if lane is None or not lane.is_held or self._is_closed or not self._heartbeat.is_fresh():
            self.wakes.add(endpoint, delivery)
        elif due_at is not None:
            self._loader.expect(lane, due_at)
        else:
            self._miss(lane)

    def _miss(self, lane: Lane) -> None:
        """The store holds a due delivery of the lane that is not in memory."""
        lane.miss()
        if lane.wants_more():
            self._loader.nudge(lane)

    async def _take_woken(self, waiting: Waiting) -> Sequence[EndpointId]:
        """Take the free ones of these lanes, and hand over what they are woken for; the lanes not owned here."""
        held = self._lanes
        others = []
        for id in waiting:
            lane = held.get(id)
            if lane is None or not lane.is_held:
                others.append(id)
            else:
                self._miss(lane)
        if not self._taker.can_take():
            return others
        now = self._clock.now()
        taken = await self._ownership.take_these({id: waiting[id] for id in others})
        for id, found in taken.items():
            lane = held.get(id)
            if lane is None or found.woke_at <= now or not lane.is_ordinary:
                continue  # there may be older ones: the load keeps the order
            if not lane.flow.is_plain or not waiting[id]:
                continue
            if found.copies != len(waiting[id]):
                continue  # another owner had the lane meanwhile and sent some of them: the load reads the rest
            lane.has_all()
            for delivery in waiting[id]:
                if lane.room() > 0 and lane.is_held:
                    self._hand_over_fresh(lane, delivery)
                else:
                    lane.miss()
        return [id for id in others if id not in taken]

    def _hand_over_fresh(self, lane: Lane, delivery: Loaded) -> None:
        """Hand over a committed delivery of a lane just taken, from memory: no load can have read it yet."""
        lane.reserve(delivery.id)
        self.hand_over(lane, delivery, at=self._clock.monotonic())
