"""Defines how a store counts what flows now.

A part of the contract: see `store.contract` for what holds for every verb. No verb reads more rows than it says,
however many there are.
"""

from typing import Protocol

import msgspec

from hookline.model import EndpointId, EventId


class CountedEvents(msgspec.Struct, frozen=True):
    """How many events were found."""

    number: int
    is_more: bool  # not all were looked at


class MinuteAttempts(msgspec.Struct, frozen=True):
    """The attempts of one minute."""

    at: float  # when it began
    attempts: int
    accepted: int


class FlowStore(Protocol):
    """The verbs about the flow."""

    async def count_events(
        self, *, first: EventId, beyond: EventId, limit: int, account: str | None = None
    ) -> CountedEvents:
        """The events from the id `first` to before `beyond`, of one account or of all; looks at `limit` + 1 at most."""

    async def minute_attempts(
        self, *, since: float, until: float, account: str | None = None
    ) -> list[MinuteAttempts]:
        """The attempts of each stored minute from `since` to before `until` that has any, oldest first."""

    async def busiest_endpoints(self, *, account: str, limit: int) -> list[EndpointId]:
        """The endpoints of an account with the most attempts in their last day; those without any come last."""
