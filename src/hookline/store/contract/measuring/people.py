"""Defines how a store keeps the messages to people that are still to be sent.

A part of the contract: see `store.contract` for what holds for every verb. They are written with the own events that they
tell of (`publish_announcements`). Whoever takes some has them for a while; what is not ended by then is taken again.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

GATHER_MOST = 5_000  # messages that are taken at once


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
        self, *, channels: Sequence[str], gather: str, limit: int, now: float, until: float
    ) -> list[DueNotification]:
        """Take what is due on these channels for so many accounts, until this time; nobody else has it meanwhile.

        The accounts come first whose messages are due for longest; on two channels an account counts twice. If one of
        the kind `gather` is due, all of this kind that were never tried come along.
        """

    async def end_notifications(self, done: Sequence[int], again: Sequence[tuple[int, float]]) -> None:
        """Delete the messages that were sent or given up, and try the others again at their time."""
