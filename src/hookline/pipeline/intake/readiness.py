"""Finds out whether a publish would be accepted now.

While events are published, their commits tell. Otherwise it is tried: a commit of nothing takes the way of a publish, with
its session, its locks and its disk. There is one trial at a time, and none while a good one is recent, however many ask.
A trial that waits is not repeated: its end is awaited.
"""

import asyncio
from collections.abc import Callable

import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError
from hookline.rules.readiness import RECENT, Publishing, fault, is_shown
from hookline.store.contract import Store

PATIENCE = 0.8  # seconds that a trial may take
_AGAIN = 0.1  # seconds for which a failed trial is not repeated

log = structlog.get_logger()


class Readiness:
    """Whether this process accepts publishes."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        publishing: Callable[[], Publishing],
        is_alive: Callable[[], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._publishing = publishing
        self._is_alive = is_alive  # the heartbeat is recent, and no write was refused
        self._trial: asyncio.Task[None] | None = None
        self._began = float("-inf")  # the last trial
        self._ended = asyncio.Event()
        self._failed: str | None = None
        self._is_lost = False

    async def fault(self) -> str | None:
        """Why a publish would wait or be refused now; None: it would not."""
        why = await self._look()
        if (why is not None) is not self._is_lost:
            self._is_lost = why is not None
            if why is None:
                log.info("readiness.regained")
            else:
                log.warning("readiness.lost", reason=why)
        return why

    async def close(self) -> None:
        """Give up a trial that is under way."""
        if self._trial is not None:
            self._trial.cancel()
            await asyncio.gather(self._trial, return_exceptions=True)

    async def _look(self) -> str | None:
        if not self._is_alive():
            return "the database does not answer, or refuses the heartbeat"
        publishing, at = self._publishing(), self._clock.monotonic()
        if (why := fault(publishing, at=at)) is not None:
            return why
        if is_shown(publishing, at=at):
            return None
        return await self._tried()

    async def _tried(self) -> str | None:
        """The outcome of a trial that is recent or under way, or of a new one."""
        at = self._clock.monotonic()
        if self._trial is None and at - self._began >= (RECENT if self._failed is None else _AGAIN):
            self._began = at
            self._ended.clear()
            self._trial = asyncio.create_task(self._try())
        if self._trial is not None:
            await self._clock.wait(self._ended, max(0.0, self._began + PATIENCE - at))
        if self._trial is not None:
            return f"a commit has been waiting for {self._clock.monotonic() - self._began:.1f} s"
        return self._failed

    async def _try(self) -> None:
        try:
            await self._store.try_accept(now=self._clock.now())
            self._failed = None
        except HooklineError as error:
            self._failed = str(error)
        finally:
            self._trial = None
            self._ended.set()
