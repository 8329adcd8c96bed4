"""Defines how a store keeps the messages to people that are still to be sent.

A part of the contract: see `store.contract` for what holds for every verb. They are written with the own events that they
tell of (`publish_announcements`). Whoever takes one has it for a while; if it is not ended by then, it is taken again.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

GATHER_MOST = 5_000  # messages that are gathered into one


class DueNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a person that is to be sent now."""

    n: int
    channel: str
    recipient: str
    kind: str
    account: str | None
    detail: str
    at: float
    tries: int  # this one included


class PeopleStore(Protocol):
    """The verbs about messages to people."""

    async def take_notifications(
        self, *, gather: str, limit: int, now: float, until: float
    ) -> list[DueNotification]:
        """Take messages that are due, until this time; nobody else has them meanwhile.

        With each message of the kind `gather` come the others of this kind to the same recipient about the same
        account that were never tried, due or not.
        """

    async def end_notifications(self, done: Sequence[int], again: Sequence[tuple[int, float]]) -> None:
        """Delete the messages that were sent or given up, and try the others again at their time."""
