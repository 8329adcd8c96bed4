"""Holds the lanes that must still be woken.

A process that makes rows due commits first and wakes after that. A lane stays in this set until it is woken, however
long the database is away. If this process delivers too, it takes the lane itself instead of waking it. A round begins
at once. Lanes gather only while a round is under way, so there is never more than one for each commit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import StoreUnavailable
from hookline.model import EndpointId
from hookline.store.contract import Loaded, Store

_BACKOFF = 0.5  # seconds after a failed round
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
        self._take = take  # takes the lanes it can, and returns those not owned here
        self._on_woken = on_woken
        self._waiting: Waiting = {}
        self._round: Waiting = {}  # those of the round under way
        self._is_any = False  # lanes have work, and it is not known which: all free ones are swept
        self._swept: EndpointId | None = None  # the last of them; None: the sweep begins
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

    def forget(self, lane: EndpointId) -> None:
        """Rows of the lane were changed: its deliveries are read from the store, not handed over as they were."""
        for waiting in (self._waiting, self._round):
            if lane in waiting:
                waiting[lane].clear()

    def add_unknown(self) -> None:
        """Rows may have been made due, and the answer that named their lanes was lost: look at all free lanes soon."""
        self._sweep_on(after=None)

    def _sweep_on(self, *, after: EndpointId | None) -> None:
        self._is_any, self._swept = True, after
        self._some.set()
        self._idle.clear()

    async def run(self) -> None:
        """Wake until cancelled."""
        while True:
            await self._some.wait()
            waiting, self._waiting = self._waiting, {}
            self._round = waiting
            is_any, self._is_any = self._is_any, False
            self._some.clear()
            try:
                left = sorted(await self._take(waiting))
                if left:
                    await self._store.wake(left, now=self._clock.now())
                    self._on_woken(left)
                if is_any:
                    await self._sweep_some()
            except StoreUnavailable as error:
                log.debug("wake.failed", lanes=len(waiting), error=str(error))
                self._put_back(waiting, is_any=is_any)
                await self._clock.sleep(_BACKOFF)
                continue
            except BaseException:
                self._put_back(waiting, is_any=is_any)  # a lane stays in the set whatever happens
                raise
            if not self._waiting and not self._is_any:
                self._idle.set()

    async def _sweep_some(self) -> None:
        """One step of the sweep: lanes that are known wait for a step at most."""
        after = await self._store.sweep(after=self._swept, now=self._clock.now())
        if after is not None and not self._is_any:  # else it begins again, for a later lost answer
            self._sweep_on(after=after)

    def _put_back(self, waiting: Waiting, *, is_any: bool) -> None:
        for lane in waiting:
            self.add(lane)
        if is_any and not self._is_any:
            self._sweep_on(after=self._swept)

    async def flush(self) -> None:
        """Wait until every lane in the set is woken."""
        await self._idle.wait()
