"""Defines how a store keeps the own events that are still to be published.

A part of the contract: see `store.contract` for what holds for every verb. Verbs about deliveries, lanes and endpoints
write announcements in the commit of what they tell. Each store's `measuring.announcements` has `announce`, for other
verbs that do so.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.store.contract.accept import Acceptance, EventFanout

ANNOUNCE = "announce"  # the name of the periodic task
ANNOUNCE_CHUNK = 500  # own events in one commit


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that is to be published as an own event."""

    n: int
    kind: str  # the type of the event
    account: str | None  # that it is about; None: about the installation
    subject: bytes | None  # the id of the delivery, endpoint or alert
    detail: str | None = None  # why it happened
    at: float


class NotificationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a person, to be sent by mail or chat."""

    channel: str
    recipient: str
    kind: str
    account: str | None
    detail: str
    due_at: float


class AnnouncementStore(Protocol):
    """The verbs about own events."""

    async def announcements(self, *, limit: int) -> list[Announcement]:
        """The first ones, by number. Numbers commit out of order: one that comes later may be smaller."""

    async def publish_announcements(
        self,
        announcements: Sequence[int],
        batch: Sequence[EventFanout],
        *,
        notifications: Sequence[NotificationRow] = (),
        catalogue: int,
        now: float,
    ) -> Acceptance | None:
        """Accept these events, delete these announcements and add these notifications, in one commit.

        None, with nothing written: another process publishes at this moment, or has published one of them. Nothing
        is written either if the answer is stale, as in `accept`; without events too, as a new endpoint might want one.
        """
