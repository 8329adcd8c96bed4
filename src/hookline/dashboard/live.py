"""Sends what changes on open pages, as server-sent events.

What a page shows is gathered once for all who look at the same page of the same account, at most every two seconds, and
only while somebody looks. A stream carries regions by their id; unchanged ones are left out.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import msgspec
import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError

EVERY_S = 2.0
MOST_STREAMS = 500
MOST_OF_ONE = 50  # of one account, or of one visit of an operator, so that nobody keeps the others out
STREAM_FOR_S = 600.0  # then the browser connects again, and its visit is checked again
_BEGIN = b"retry: 2000\n\n"

Regions = dict[str, str]  # HTML by the id of its place
Gather = Callable[[], Awaitable[Regions]]

log = structlog.get_logger()


class Live:
    """The streams of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._channels: dict[str, _Channel] = {}
        self._is_leaving = False
        self._held: Counter[str] = Counter()  # streams by who has them

    def is_full(self, holder: str) -> bool:
        """Whether no more streams are opened for this holder."""
        is_full = self._held.total() >= MOST_STREAMS or self._held[holder] >= MOST_OF_ONE
        return self._is_leaving or is_full

    async def stream(
        self, name: str, holder: str, gather: Gather, is_good: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        """The events of a page; they end when its visit is no longer good."""
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel(self._clock, gather)
        self._held[holder] += 1
        channel.viewers += 1
        channel.begin()
        sent: Regions = {}
        ends_at = self._clock.monotonic() + STREAM_FOR_S
        seen = -1
        try:
            yield _BEGIN
            while not self._is_leaving and self._clock.monotonic() < ends_at:
                try:
                    is_visit_good = await is_good()
                except HooklineError:
                    return  # nobody can tell now; the browser connects again
                if not is_visit_good:
                    yield b"event: ended\ndata: \n\n"
                    return
                seen = await channel.next(seen)
                new = {id: html for id, html in channel.regions.items() if sent.get(id) != html}
                sent |= new
                content = msgspec.json.encode({"regions": new, "is_stale": channel.is_failing})
                yield b"event: regions\ndata: " + content + b"\n\n"
        finally:
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]
            channel.viewers -= 1
            if not channel.viewers:
                channel.end()
                self._channels.pop(name, None)

    def leave(self) -> None:
        """End all streams: the server stops."""
        self._is_leaving = True
        for channel in self._channels.values():
            channel.wake()


class _Channel:
    """One page of one account, for all its viewers."""

    def __init__(self, clock: Clock, gather: Gather) -> None:
        self._clock = clock
        self._gather = gather
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Event()
        self.viewers = 0
        self.n = 0
        self.regions: Regions = {}
        self.is_failing = False

    def begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def wake(self) -> None:
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    async def next(self, seen: int) -> int:
        """Wait for what comes after this number; the number of what is there now."""
        if self.n <= seen or not self.n:
            await self._turn.wait()
        return self.n

    async def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                try:
                    self.regions = await self._gather()
                    self.is_failing = False
                except HooklineError as error:
                    self.is_failing = True
                    log.debug("live.failed", error=str(error))
                except Exception:
                    self.is_failing = True
                    log.exception("live.failed")
                self.n += 1
                self.wake()
                await self._clock.sleep(EVERY_S)
