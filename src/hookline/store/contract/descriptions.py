"""What must a store keep that people say about event types, accounts and secrets?

Part of the contract (`contract.Store`), in a module of its own.
"""

from typing import Protocol

from hookline.model import Account, EndpointId, EventType

NO_ENDPOINT = EndpointId(bytes(16))  # in a change that is about no endpoint


class DescriptionStore(Protocol):
    """The verbs around what is described rather than sent."""

    async def put_event_type(self, event_type: EventType, *, now: float) -> EventType:
        """Describe a type, or describe it anew, with one change of kind `event_type`; `created_at` is the first one's."""

    async def delete_event_type(self, name: str, *, now: float) -> bool:
        """Forget what was said about a type, with one change of kind `event_type`. False when there was nothing."""

    async def event_type(self, name: str) -> EventType | None:
        """One described type."""

    async def event_types(self, *, after: str = "", limit: int | None = None) -> list[EventType]:
        """By name, byte for byte, from above `after`; all of them without a limit."""

    async def put_account(self, account: Account, *, now: float) -> None:
        """Replace what is said about an account."""

    async def account(self, id: str) -> Account | None:
        """What was said about an account; None: nothing."""

    async def mark_sealed(self, mark: str, *, was: str | None = None) -> str:
        """Keep the mark if there is none, or `was`; the one that is kept then."""
