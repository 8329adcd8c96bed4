"""Tells what the owners of lanes know, in this process or another.

The owner in this process is asked directly. Others write what they know with their heartbeats, so an answer about their
lanes may be one heartbeat old.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from hookline.clock import Clock
from hookline.model import Circuit, DeliveryId, EndpointId, WorkerId
from hookline.pipeline.measuring.owner_status import owner_statuses
from hookline.rules.worker_status import KnownLane, WorkerStatus
from hookline.store.contract import LaneRow, Store


class OwnerStatus(Protocol):
    """What the worker of this process knows about the lanes it owns."""

    def owns(self, endpoint: EndpointId) -> bool:
        """Whether the lane is owned here."""

    def is_under_way(self, delivery: DeliveryId) -> bool:
        """Whether it is being sent now."""

    def circuit_of(self, endpoint: EndpointId) -> Circuit | None:
        """The circuit of a lane owned here."""

    def waiting_reason(self, endpoint: EndpointId) -> str | None:
        """What holds back a lane that is owned here."""

    def in_flight(self, endpoint: EndpointId) -> int:
        """The number of requests under way in a lane owned here."""


class LaneOwners:
    """The owners of all lanes."""

    def __init__(self, store: Store, here: OwnerStatus, clock: Clock, *, heartbeat: float) -> None:
        self._store = store
        self.here = here
        self._clock = clock
        self._heartbeat = heartbeat

    async def of(self, lanes: Iterable[LaneRow]) -> "OwnerAnswers":
        """What the owners of these lanes know; other workers are read only if one of them owns a lane."""
        elsewhere = {
            lane.endpoint_id: lane.owner
            for lane in lanes
            if lane.owner is not None and not self.here.owns(lane.endpoint_id)
        }
        return OwnerAnswers(self.here, elsewhere, await self.statuses() if elsewhere else {})

    async def statuses(self) -> dict[WorkerId, WorkerStatus]:
        """What every worker that is to be believed wrote with its last heartbeat, this one too."""
        return await owner_statuses(self._store, now=self._clock.now(), heartbeat=self._heartbeat)


class OwnerAnswers:
    """What is known of some lanes."""

    def __init__(
        self,
        here: OwnerStatus,
        elsewhere: Mapping[EndpointId, WorkerId],
        statuses: Mapping[WorkerId, WorkerStatus],
    ) -> None:
        self._here = here
        self._owners = elsewhere
        self._statuses = statuses
        self._lanes: dict[WorkerId, dict[bytes, KnownLane]] = {}
        self._sending: dict[WorkerId, frozenset[bytes]] = {}
        for owner in set(elsewhere.values()) & statuses.keys():
            self._lanes[owner] = {lane.endpoint_id: lane for lane in statuses[owner].lanes}
            self._sending[owner] = statuses[owner].deliveries()

    def is_under_way(self, delivery: DeliveryId, endpoint: EndpointId) -> bool:
        """Whether the delivery is being sent."""
        owner = self._owners.get(endpoint)
        if owner is None:
            return self._here.is_under_way(delivery)
        return delivery in self._sending.get(owner, frozenset())

    def waiting_reason(self, endpoint: EndpointId) -> str | None:
        """What holds back the lane; None: nobody knows more than the store."""
        owner = self._owners.get(endpoint)
        if owner is None:
            return self._here.waiting_reason(endpoint)
        if (status := self._statuses.get(owner)) is None:
            return None
        known = self._lanes[owner].get(endpoint)
        if known is None:
            return None if status.is_cut else "slot"  # what waits for a slot only is not written
        return known.waiting_for

    def in_flight(self, endpoint: EndpointId) -> int:
        """The number of requests under way."""
        owner = self._owners.get(endpoint)
        if owner is None:
            return self._here.in_flight(endpoint)
        known = self._lanes.get(owner, {}).get(endpoint)
        return 0 if known is None else known.in_flight
