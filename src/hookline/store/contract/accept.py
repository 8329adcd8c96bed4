"""Defines how a store accepts events.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.model import EndpointId, Event, EventId


class EventFanout(msgspec.Struct, frozen=True, gc=False):
    """An event with the endpoints it goes to; delivery i is `ids.delivery_of(event.id, i)`."""

    event: Event
    endpoints: tuple[EndpointId, ...]
    digest: bytes = b""  # of type, payload and deliver_at; compared when the idempotency key was used before


class Prior(msgspec.Struct, frozen=True):
    """The event that an idempotency key already names."""

    event_id: EventId
    type: str
    created_at: float
    digest: bytes
    endpoints: tuple[EndpointId, ...]  # of its deliveries, in fan-out order


class Acceptance(msgspec.Struct, frozen=True):
    """The result of accepting a batch of publications."""

    stale: bool  # the endpoints changed since `catalogue`: nothing was written, fan out again
    first_seq: int = 0  # no delivery written by this batch has a smaller seq
    priors: dict[EventId, Prior] = {}  # by the id of the publication that was not written because of it
    repeats: frozenset[EventId] = frozenset()  # stored before under their own ids, perhaps with other content


class AcceptStore(Protocol):
    """The verbs that accept."""

    async def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        """Write events, deliveries and idempotency keys in one commit, `seq` in the order of the batch.

        Nothing is written (`stale`) when an endpoint changed after the change numbered `catalogue`. No key is in a
        batch twice. Repeating a batch whose commit was in doubt writes nothing twice and gives the first answer again, with its `repeats`:
        an event that is already stored under its own id was accepted. Deliveries with a `deliver_at` later than now
        join the timed queue, all others the ready queue.
        """

    async def try_accept(self, *, now: float) -> None:
        """Commit nothing in the way of `accept`; raises what that would raise, and never waits for a table's lock."""
