"""A clock that a test moves by hand."""

import asyncio
import heapq
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

from hookline.clock import Timeline

STEP_S = 0.25  # well below a heartbeat: workers see time pass, not jump
REAL_MOMENT_S = 0.001  # real time for each step: sockets and databases run in real time

T = TypeVar("T")


class ManualClock:
    """A clock that stands still until `advance()` is called; sleepers wake in the order of their times."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._time = start
        self._base = start
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._time

    def wall(self) -> float:
        return self._time

    def monotonic(self) -> float:
        return self._time - self._base

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._time + seconds, next(self._order), future))
        await future

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        if event.is_set():
            return True
        sleeper = asyncio.ensure_future(self.sleep(seconds))
        waiter = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({sleeper, waiter}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            waiter.cancel()
        return event.is_set()

    def follow(self, store_now: float, *, at: float, ahead: float = 0.0, rate: float = 1.0) -> None:
        """Do nothing: the test's time is the store's, whatever the database's clock says."""

    line: Timeline | None = None

    def due(self, moment: float) -> float:
        return moment

    def shown(self, at: float) -> float:
        return at

    def asked(self, moment: float) -> float:
        return moment

    def advance(self, seconds: float) -> None:
        """Move time forward and wake everybody whose time has come."""
        self._time += seconds
        while self._sleepers and self._sleepers[0][0] <= self._time:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)

    async def tick(self, seconds: float = STEP_S) -> None:
        """Move time forward, and let real time pass for the work that this starts."""
        self.advance(seconds)
        await asyncio.sleep(REAL_MOMENT_S)

    async def pass_until(self, work: Coroutine[Any, Any, T]) -> T:
        """Let time pass until the work is done."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await self.tick()
        finally:
            task.cancel()
        return task.result()
