"""When does a worker take free lanes?

Every quarter of a second, and sooner when others say that they woke some; never while all its slots are in use.
"""

import asyncio

import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.pipeline.dispatch import Dispatcher
from hookline.pipeline.heart import Heart
from hookline.pipeline.holdings import Holdings

_TAKE_EVERY = 0.25
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
        self._woken_elsewhere = asyncio.Event()
        self.is_open = delivers

    def close(self) -> None:
        """Take nothing more."""
        self.is_open = False

    def can_take(self) -> bool:
        """May lanes be taken now?"""
        return self.is_open and not self._dispatcher.is_saturated and self._heart.is_fresh()

    def nudge(self) -> None:
        """Others woke lanes that are not held here: look soon."""
        self._woken_elsewhere.set()

    async def run(self) -> None:
        """Take until cancelled."""
        while True:
            if self.can_take():
                try:
                    while await self._holdings.take() and self.can_take():
                        pass
                except StoreUnavailable as error:
                    log.debug("take.failed", error=str(error))
            await self._clock.sleep(_TAKE_SOONEST)
            await self._clock.wait(self._woken_elsewhere, _TAKE_EVERY - _TAKE_SOONEST)
            self._woken_elsewhere.clear()
