"""Reports the status of a lane that is owned here.

The owner knows it before the store does: its decisions are stored a little later.
"""

from collections.abc import Mapping, Set

from hookline.clock import Clock
from hookline.model import Circuit, CircuitState, DeliveryId, EndpointId
from hookline.pipeline.lanes.lane import Lane
from hookline.rules.worker_status import KnownLane, packed


class LaneStatus:
    """What this process knows of the lanes it owns, for whoever asks."""

    def __init__(self, lanes: Mapping[EndpointId, Lane], under_way: Set[bytes], clock: Clock) -> None:
        self._lanes = lanes
        self._under_way = under_way
        self._clock = clock

    def owns(self, endpoint: EndpointId) -> bool:
        """Is the lane owned here?"""
        return endpoint in self._lanes

    def circuit_of(self, endpoint: EndpointId) -> Circuit | None:
        """The circuit of a lane that is owned here, None of any other."""
        lane = self._lanes.get(endpoint)
        return None if lane is None else lane.flow.circuit

    def waiting_reason(self, endpoint: EndpointId) -> str | None:
        """What keeps the deliveries of a lane that is owned here from being sent now; None: not owned here."""
        lane = self._lanes.get(endpoint)
        if lane is None:
            return None
        return self._reason(lane)

    def in_flight(self, endpoint: EndpointId) -> int:
        """The number of requests under way in a lane that is owned here."""
        lane = self._lanes.get(endpoint)
        return 0 if lane is None else lane.in_flight

    def packed(self) -> bytes:
        """What the other processes should know, for the heartbeat."""
        known = [
            KnownLane(lane.endpoint_id, reason, lane.in_flight)
            for lane in self._lanes.values()
            if (reason := self._reason(lane)) != "slot" or lane.in_flight
        ]
        return packed(known, self._under_way)

    def _reason(self, lane: Lane) -> str:
        flow = lane.flow
        if flow.circuit.state is not CircuitState.CLOSED:
            return "circuit"
        order = lane.order
        if order is not None and (order.head is not None or lane.in_flight or lane.unsettled):
            return "order"
        if flow.rest_until > self._clock.now():
            return "receiver"
        if flow.hold_until > self._clock.now():
            return "due"
        return "rate" if flow.opens_at() > self._clock.now() else "slot"

    def is_under_way(self, delivery: DeliveryId) -> bool:
        """Is it being sent by this process now?"""
        return delivery in self._under_way
