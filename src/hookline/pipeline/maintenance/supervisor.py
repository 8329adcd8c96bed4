"""Keeps the loops of a process running when something fails in them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import StorageFull, StoreRefused
from hookline.pipeline.membership.heartbeat import Heartbeat

_SAY_AGAIN = 60.0  # seconds between two log lines about a database that refuses
_REST = 1.0  # seconds before a loop that failed starts over

log = structlog.get_logger()

Loop = Callable[[], Coroutine[None, None, None]]


class Supervisor:
    """The loops of a process, each in a task of its own."""

    def __init__(self, heartbeat: Heartbeat, clock: Clock) -> None:
        self._heartbeat = heartbeat
        self._clock = clock
        self._refused_at = float("-inf")
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, loops: Sequence[Loop]) -> None:
        """Run them until their tasks are cancelled."""
        self.tasks = [asyncio.create_task(self._survive(loop), name=loop.__qualname__) for loop in loops]

    async def _survive(self, loop: Loop) -> None:
        while True:
            try:
                await loop()
            except StoreRefused as error:
                # Rights taken away, a table gone: it may be corrected while this process runs.
                self.say_refused(error)
                await self._clock.sleep(_REST)
            except Exception:
                # A bug in one loop must not stop the others; the loop itself starts over from the store.
                log.exception("loop.failed", loop=loop.__qualname__)
                await self._clock.sleep(_REST)

    def say_refused(self, error: StoreRefused | StorageFull) -> None:
        """Log it once for all loops that meet it, and not where the pulse logs the same."""
        at = self._clock.monotonic()
        if at - self._refused_at >= _SAY_AGAIN and self._heartbeat.is_fresh():
            self._refused_at = at
            log.error("store.refused", error=str(error))
