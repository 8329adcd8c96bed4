"""Which lanes must still be told that they have work?

Whoever makes rows due commits first and wakes after. A lane stays in this set until that is done, however
long the database is away; where this process delivers too, it takes the lane instead and has no need to ask.
A round begins at once. Lanes gather only while one is under way, so there is never more than one for each commit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.model import EndpointId
from hookline.store.contract import Loaded, Store

_BACKOFF = 0.5  # seconds after a round that failed
_KEPT = 64  # deliveries kept in memory per lane, to be handed over if the lane can be taken

log = structlog.get_logger()

Waiting = dict[EndpointId, list[Loaded]]


class Wakes:
    """The lanes to be woken, with the deliveries they are woken for."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        take: Callable[[Waiting], Awaitable[Sequence[EndpointId]]],
        on_woken: Callable[[Sequence[EndpointId]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._take = take  # takes those it can, says which are not held here
        self._on_woken = on_woken
        self._waiting: Waiting = {}
        self._some = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, lane: EndpointId, delivery: Loaded | None = None) -> None:
        """Wake this lane soon; the delivery, if given, is committed and due now."""
        kept = self._waiting.setdefault(lane, [])
        if delivery is not None and len(kept) < _KEPT:
            kept.append(delivery)
        self._some.set()
        self._idle.clear()

    async def run(self) -> None:
        """Wake until cancelled."""
        while True:
            await self._some.wait()
            waiting, self._waiting = self._waiting, {}
            self._some.clear()
            try:
                left = sorted(await self._take(waiting))
                if left:
                    await self._store.wake(left, now=self._clock.now())
                    self._on_woken(left)
            except StoreUnavailable as error:
                log.debug("wake.failed", lanes=len(waiting), error=str(error))
                for lane in waiting:
                    self.add(lane)
                await self._clock.sleep(_BACKOFF)
                continue
            except BaseException:
                for lane in waiting:  # a lane stays in the set whatever happens
                    self.add(lane)
                raise
            if not self._waiting:
                self._idle.set()

    async def flush(self) -> None:
        """Wait until every lane in the set is woken."""
        await self._idle.wait()
