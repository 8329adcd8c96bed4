"""Reports the status of a lane that is owned here.

The owner knows it before the store does: its decisions are stored a little later.
"""

from collections.abc import Mapping, Set

from hookline.clock import Clock
from hookline.model import Circuit, CircuitState, DeliveryId, EndpointId
from hookline.pipeline.lanes.lane import Lane
from hookline.rules.slowness import is_slow


class LaneStatus:
    """What this process knows of the lanes it owns, for whoever asks."""

    def __init__(self, lanes: Mapping[EndpointId, Lane], under_way: Set[bytes], clock: Clock) -> None:
        self._lanes = lanes
        self._under_way = under_way
        self._clock = clock

    def circuit_of(self, endpoint: EndpointId) -> Circuit | None:
        """The circuit of a lane that is owned here, None of any other."""
        lane = self._lanes.get(endpoint)
        return None if lane is None else lane.flow.circuit

    def is_slow(self, endpoint: EndpointId) -> bool:
        """Is an endpoint whose lane is owned here slow, by its last attempts?"""
        lane = self._lanes.get(endpoint)
        return lane is not None and is_slow(lane.flow.durations)

    def waiting_reason(self, endpoint: EndpointId) -> str | None:
        """What keeps the deliveries of a lane that is owned here from being sent now; None: not owned here."""
        lane = self._lanes.get(endpoint)
        if lane is None:
            return None
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
