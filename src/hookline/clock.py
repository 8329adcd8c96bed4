"""Tells the time.

There are three clocks, and they are never mixed. The store's time decides what is due and who owns a lane. The wall
clock is only written into headers, ids and logs. The monotonic clock measures durations. Only this module reads them.
"""

import asyncio
import time
from functools import partial
from typing import NamedTuple, Protocol

# CLOCK_BOOTTIME keeps running while the machine sleeps: a worker that wakes with a suspended machine must see
# that its heartbeat is old.
_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Time, as an argument."""

    line: "Timeline | None"  # if the store's time was found ahead; for callers that convert every event

    def now(self) -> float:
        """The store's time, in seconds since 1970."""

    def wall(self) -> float:
        """The machine's own time, in seconds since 1970; may jump."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never jumps and keeps running while the machine is suspended."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait until the event is set or the time is over; True if it was set."""

    def follow(self, store_now: float, *, at: float, ahead: float = 0.0, rate: float = 1.0) -> None:
        """The store's clock showed `store_now` when the monotonic clock showed `at`.

        It may be `ahead` of the right time. It then runs at this `rate` until it meets the right time (SQLite's
        timekeeping does that).
        """

    def due(self, moment: float) -> float:
        """The store's time for a real moment; the two differ only while the store's time is ahead."""

    def shown(self, at: float) -> float:
        """The moment to show for a time of the store; the two differ only if the store's time was found ahead."""

    def asked(self, moment: float) -> float:
        """The store's time to compare with for a moment in a query: what is shown before the moment lies before it."""


class Timeline(NamedTuple):
    """Maps a store's time that was found ahead to the right time, until the two meet.

    Rows written before it was found ahead may carry the time of any clock. Times that cannot be later than that moment
    are left as they are. All others are shown as that moment: the order stays, and nothing is shown as later than it
    can have been.
    """

    store: float  # the store's time when it was found ahead
    right: float  # the right time at that moment
    rate: float

    def shown(self, at: float) -> float:
        """The right time at this time of the store."""
        if at < self.store:
            return min(at, self.right)
        return min(at, self.right + (at - self.store) / self.rate)

    def asked(self, moment: float) -> float:
        """The first time of the store that is shown as this moment or a later one."""
        if moment <= self.right:
            return moment
        return max(moment, self.store + self.rate * (moment - self.right))


def carried(moment: float, *, now: float, ahead: float, rate: float) -> float:
    """The reading of a clock at a real moment, if it shows `now`, is `ahead`, and runs at `rate` until it is right."""
    return max(moment, now + rate * (moment - (now - ahead))) if ahead > 0 else moment


class SystemClock:
    """The real clocks; the store's time is its last reading, carried forward by the monotonic clock."""

    # Read many times for every delivery, so these are the clocks themselves, with no call of ours around them. They are
    # class attributes, so that a subclass can replace them.
    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic if _BOOT is None else partial(time.clock_gettime, _BOOT))

    def __init__(self) -> None:
        self._offset = time.time() - self.monotonic()
        self._rate = 1.0
        self._ahead = 0.0
        self.line: Timeline | None = None

    def now(self) -> float:
        # Whole microseconds, as PostgreSQL keeps them: a time reads the same before it is stored and after.
        # (With integers: `round` to six places costs ten times as much, and this is called for every delivery.)
        return int((self.monotonic() * self._rate + self._offset) * 1e6) / 1e6

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        if event.is_set():
            return True
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True

    def follow(self, store_now: float, *, at: float, ahead: float = 0.0, rate: float = 1.0) -> None:
        self._offset, self._rate, self._ahead = store_now - at * rate, rate, ahead
        if ahead and self.line is None:
            self.line = Timeline(store_now, store_now - ahead, rate)

    def due(self, moment: float) -> float:
        if not self._ahead:
            return moment
        return carried(moment, now=self.now(), ahead=self._ahead, rate=self._rate)

    def shown(self, at: float) -> float:
        return at if self.line is None else self.line.shown(at)

    def asked(self, moment: float) -> float:
        return moment if self.line is None else self.line.asked(moment)


class ThreadClock:
    """The real clocks for code that blocks its thread instead of awaiting."""

    def wall(self) -> float:
        """The machine's own time, in seconds since 1970; may jump."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never jumps."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
