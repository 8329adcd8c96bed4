"""Defines how a store shows events.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline import ids
from hookline.model import Attempt, AttemptId, Event, EventId, State

SHOWN_PAYLOAD_BYTES = 16_384  # larger ones are left out of lists: a page of 200 stays below 4 MiB
CLOCKS_APART_S = (
    86_400.0  # an id has the publisher's time, `created_at` the store's; they never differ by more
)


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events a list contains; None is any. `since` and `until` refer to their creation."""

    account: str | None = None
    type: str | None = None
    idempotency_key: str | None = None  # while it names an event
    since: float | None = None
    until: float | None = None
    ids_since: float | None = (
        None  # where it differs from `since`: by the publishers' clock, if the store's is ahead
    )

    @property
    def first_id(self) -> bytes | None:
        """No matching event has a smaller id: a list of the last hour does not walk back for years."""
        since = self.since if self.ids_since is None else self.ids_since
        return None if since is None else ids.first_at(since - CLOCKS_APART_S)

    @property
    def beyond_id(self) -> bytes | None:
        """Every matching event has a smaller id."""
        return None if self.until is None else ids.first_at(self.until + CLOCKS_APART_S)


class ListedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event as a list shows it."""

    id: EventId
    account: str
    type: str
    payload: bytes | None  # None: larger than SHOWN_PAYLOAD_BYTES
    payload_bytes: int
    idempotency_key: str | None
    deliver_at: float | None
    created_at: float


class EventStore(Protocol):
    """The verbs that show events."""

    async def event(self, event: EventId) -> Event | None:
        """One event with its payload."""

    async def payload(self, event: EventId) -> bytes:
        """The payload of an event whose row exists."""

    async def list_events(
        self, filter: EventFilter, *, after: EventId | None, limit: int
    ) -> list[ListedEvent]:
        """Newest first, from below the id `after`."""

    async def count_by_state(self, events: Sequence[EventId]) -> dict[EventId, dict[State, int]]:
        """How many of each event's deliveries are in each state; every event and every state is included."""

    async def list_attempts(self, event: EventId, *, after: AttemptId | None, limit: int) -> list[Attempt]:
        """All attempts of an event's deliveries, newest first by id, from below the id `after`."""
