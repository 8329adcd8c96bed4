"""Defines how a store changes, lists and counts deliveries.

A part of the contract: see `store.contract` for what holds for every verb. A verb that changes deliveries
also writes one change for each of their lanes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from hookline.model import Attempt, AuditEntry, Delivery, DeliveryId, EndpointId, EventId, Reason, State


class DeliveryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which deliveries a list contains; None is any. `since` and `until` refer to the event's creation."""

    state: State | None = None
    account: str | None = None
    endpoint_id: EndpointId | None = None
    event_id: EventId | None = None
    event_type: str | None = None
    since: float | None = None
    until: float | None = None
    reason: Reason | None = None
    died_since: float | None = None  # dead letters: by the time of death (of replayed ones: their last death)
    died_until: float | None = None
    is_replayed: bool = False  # pending again after a death; used instead of `state`

    def by(self, asked: Callable[[float], float]) -> "DeliveryFilter":
        """The same, with moments given by people converted to the store's times (`Clock.asked`)."""
        names = ("since", "until", "died_since", "died_until")
        given = {name: at for name in names if (at := getattr(self, name)) is not None}
        return msgspec.structs.replace(self, **{name: asked(at) for name, at in given.items()})


class DeliveryStore(Protocol):
    """The verbs about deliveries."""

    async def retry(self, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None) -> EndpointId:
        """Make a pending delivery due now; its attempts keep counting. NotFound, WrongState."""

    async def cancel(
        self, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None
    ) -> EndpointId:
        """pending -> cancelled. NotFound, WrongState."""

    async def redrive(
        self, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None
    ) -> EndpointId:
        """dead, delivered or cancelled -> pending: attempts 0, due now, replays + 1. NotFound, WrongState.

        A death is kept as `last_death`.
        """

    async def discard(
        self, delivery: DeliveryId, *, now: float, audit: AuditEntry | None = None
    ) -> EndpointId:
        """dead -> cancelled (`discarded`). NotFound, WrongState."""

    async def redrive_event(
        self,
        event: EventId,
        *,
        endpoint: EndpointId | None,
        states: Sequence[State],
        now: float,
        audit: AuditEntry | None = None,
    ) -> list[tuple[DeliveryId, EndpointId]]:
        """Replay the deliveries of an event that are in one of the states (never pending ones)."""

    async def cancel_deleted(self, *, limit: int, now: float) -> int:
        """Cancel up to `limit` pending deliveries of deleted endpoints (`endpoint_deleted`); how many there were."""

    async def delivery(self, delivery: DeliveryId) -> Delivery | None:
        """One delivery."""

    async def deliveries_by_id(self, ids: Sequence[DeliveryId]) -> list[Delivery]:
        """The ones of these that exist, by id."""

    async def list_deliveries(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
    ) -> list[Delivery]:
        """Newest first, from below the id `after`."""

    async def attempts(self, delivery: DeliveryId) -> list[Attempt]:
        """All attempts of a delivery, oldest first, late ones included."""

    async def count_dead(self, filter: DeliveryFilter) -> int:
        """How many dead letters match."""

    async def counts(self) -> dict[State, int]:
        """How many deliveries are in each state."""
