"""Defines how a store keeps event types, accounts and the mark of sealed secrets.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol

from hookline.model import Account, EndpointId, EventType

NO_ENDPOINT = EndpointId(bytes(16))  # in a change that concerns no endpoint


class DescriptionStore(Protocol):
    """The verbs for what is described, not sent."""

    async def put_event_type(self, event_type: EventType, *, now: float) -> EventType:
        """Create or replace a type's description, with one `event_type` change; `created_at` stays the first one's."""

    async def delete_event_type(self, name: str, *, now: float) -> bool:
        """Delete a type's description, with one change of kind `event_type`. False when there was none."""

    async def event_type(self, name: str) -> EventType | None:
        """One described type."""

    async def event_types(self, *, after: str = "", limit: int | None = None) -> list[EventType]:
        """By name, byte for byte, from above `after`; all of them without a limit."""

    async def put_account(self, account: Account, *, now: float) -> None:
        """Replace the settings of an account."""

    async def account(self, id: str) -> Account | None:
        """The settings of an account; None: it has none."""

    async def mark_sealed(self, mark: str, *, was: str | None = None) -> str:
        """Store the mark if there is none, or if the stored one is `was`; the mark that is stored then."""
