"""When does a worker take free lanes?

When a pulse says that the time of one has come, and sooner when others say that they woke some; never while all its
slots are in use. So nobody asks for lanes, with a lock and a commit, where there are none.
"""

import asyncio

import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.ownership import Holdings
from hookline.pipeline.membership.heartbeat import Heart

_TAKE_SOONEST = 0.02  # seconds between two takes at least, however many others say that they woke a lane

log = structlog.get_logger()


class Taking:
    """Takes lanes as long as there is room for what they hold; where nothing is delivered, none."""

    def __init__(
        self, holdings: Holdings, dispatcher: Dispatcher, heart: Heart, clock: Clock, *, delivers: bool
    ) -> None:
        self._holdings = holdings
        self._dispatcher = dispatcher
        self._heart = heart
        self._clock = clock
        self._are_some = asyncio.Event()
        self.is_open = delivers

    def close(self) -> None:
        """Take nothing more."""
        self.is_open = False

    def can_take(self) -> bool:
        """May lanes be taken now?"""
        return self.is_open and not self._dispatcher.is_saturated and self._heart.is_fresh()

    def nudge(self) -> None:
        """There are lanes to be taken, as far as is known here: try soon."""
        self._are_some.set()

    def pulsed(self) -> None:
        """Each pulse says when the first of the free lanes wakes."""
        if self._heart.wakes_at <= self._clock.now():
            self._are_some.set()

    async def run(self) -> None:
        """Take until cancelled."""
        while True:
            await self._are_some.wait()
            self._are_some.clear()
            if self.can_take():
                try:
                    while await self._holdings.take() and self.can_take():
                        pass
                except StoreUnavailable as error:
                    log.debug("take.failed", error=str(error))  # the next pulse sees them again
            await self._clock.sleep(_TAKE_SOONEST)
