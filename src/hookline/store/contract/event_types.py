"""Defines how a store keeps the descriptions of event types.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol

from hookline.model import AuditEntry, EventType

# What stands for a stored schema that is no text; like any other that does not compile it is left out and logged.
UNREADABLE_TYPE = {"schema": ""}


class EventTypeStore(Protocol):
    """The verbs about event types."""

    async def put_event_type(
        self, event_type: EventType, *, now: float, audit: AuditEntry | None = None
    ) -> EventType:
        """Create or replace a type's description, with one `event_type` change; `created_at` stays the first one's."""

    async def delete_event_type(self, name: str, *, now: float, audit: AuditEntry | None = None) -> bool:
        """Delete a type's description, with one change of kind `event_type`. False when there was none."""

    async def event_type(self, name: str) -> EventType | None:
        """The description of one type."""

    async def event_types(self, *, after: str = "", limit: int | None = None) -> list[EventType]:
        """By name, byte for byte, from above `after`; all of them without a limit."""
