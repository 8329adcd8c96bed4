"""What do processes on one database tell each other, so that nobody has to wait for the next poll?

A part of the contract: see `store.contract` for what holds for every verb. A hint may get lost or come twice: it
changes when somebody looks, never what is found.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from hookline.model import EndpointId, WorkerId

MOST_LANES = 350  # named in one hint; PostgreSQL carries 8,000 bytes with a notification


class Notification(msgspec.Struct, frozen=True):
    """What there is to look at."""

    origin: WorkerId  # who says so
    lanes: tuple[EndpointId, ...] = ()  # with rows that are due
    is_every_lane: bool = False  # too many to be named
    is_change: bool = False  # an operator changed something


class NotificationStore(Protocol):
    """How hints travel."""

    async def tell(self, hint: Notification) -> None:
        """Send a hint of at most MOST_LANES lanes to whoever listens."""

    async def listen(
        self, hear: Callable[[Notification], None], *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Call `hear` for every hint, this process's own too, until cancelled; `on_ready` once hints arrive.

        Ends by itself where nobody else can be on the database. `StoreUnavailable`: the session was lost, listen
        again. `StoreRefused`: hints are sent and do not arrive.
        """
