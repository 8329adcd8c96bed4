"""Defines how processes on one database notify each other, so that none waits for the next poll.

A part of the contract: see `store.contract` for what holds for every verb. A notification may get lost or arrive twice:
it changes when a process looks, never what it finds.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from hookline.model import EndpointId, WorkerId

MOST_LANES = 350  # named in one notification; PostgreSQL carries 8,000 bytes with each


class Notification(msgspec.Struct, frozen=True):
    """What there is to look at."""

    origin: WorkerId  # the sender
    lanes: tuple[EndpointId, ...] = ()  # lanes with rows that are due
    is_every_lane: bool = False  # too many to name
    is_change: bool = False  # an operator changed something


class NotificationStore(Protocol):
    """The verbs that send and receive notifications."""

    async def notify(self, notification: Notification) -> None:
        """Send a notification with at most MOST_LANES lanes to all listeners."""

    async def listen(
        self, hear: Callable[[Notification], None], *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Call `hear` for every notification, also this process's own, until cancelled; `on_ready` once they arrive.

        Returns where no other process can be on the database. `StoreUnavailable`: the session was lost, listen again.
        `StoreRefused`: notifications are sent but do not arrive.
        """
