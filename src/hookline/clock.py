"""What time is it?

Three clocks, never mixed: the store's time decides what is due and whose a lane is; the wall clock is only
written into headers, ids and logs; the monotonic clock measures. This is the only module that reads them.
"""

import asyncio
import time
from functools import partial
from typing import NamedTuple, Protocol

# CLOCK_BOOTTIME goes on while the machine sleeps: a worker that wakes from a suspended machine must see
# that its pulse is old.
_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Time, as an argument."""

    line: "Timeline | None"  # if the store's time was found ahead; for those who ask for every event

    def now(self) -> float:
        """The store's time, in seconds since 1970."""

    def wall(self) -> float:
        """The machine's idea of the time, in seconds since 1970; may jump."""

    def monotonic(self) -> float:
        """Seconds since some moment; never jumps, also counts a suspended machine."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait until the event is set or the time is over; says whether it was set."""

    def follow(self, store_now: float, *, at: float, ahead: float = 0.0, rate: float = 1.0) -> None:
        """The store's clock stood at `store_now` when the monotonic one stood at `at`.

        It may be `ahead` of the right time; then it runs at this `rate` until it meets it (a file, see its timekeeping).
        """

    def due(self, moment: float) -> float:
        """The store's time at the moment that people mean; another one only while the store's is ahead."""

    def shown(self, at: float) -> float:
        """The moment to show people for a time of the store's; another one only if its time was found ahead."""

    def asked(self, moment: float) -> float:
        """The store's time to compare with for a moment that people give: what is shown before it lies before it."""


class Timeline(NamedTuple):
    """How a store's time that was found ahead goes with the right one, until they meet.

    What was written before it was found so may have been written by any clock. What cannot be later than that moment is
    left as it is, the rest is shown as of then: the order stays, and nothing is shown as later than it can have been.
    """

    store: float  # when it was found
    right: float  # then
    rate: float

    def shown(self, at: float) -> float:
        """The right time at this time of the store's."""
        if at < self.store:
            return min(at, self.right)
        return min(at, self.right + (at - self.store) / self.rate)

    def asked(self, moment: float) -> float:
        """The first time of the store's that is shown as this moment or a later one."""
        if moment <= self.right:
            return moment
        return max(moment, self.store + self.rate * (moment - self.right))


def carried(moment: float, *, now: float, ahead: float, rate: float) -> float:
    """What a clock says at the moment that people mean, if it says `now`, is `ahead`, and runs at `rate` until it is not."""
    return max(moment, now + rate * (moment - (now - ahead))) if ahead > 0 else moment


class SystemClock:
    """The real clocks; the store's time is its last reading carried on by the monotonic clock."""

    # Read many times for every delivery: the clocks themselves, with no call of ours around them. In the class, so that
    # a clock made of this one can have others.
    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic if _BOOT is None else partial(time.clock_gettime, _BOOT))

    def __init__(self) -> None:
        self._offset = time.time() - self.monotonic()
        self._rate = 1.0
        self._ahead = 0.0
        self.line: Timeline | None = None

    def now(self) -> float:
        # Whole microseconds, as PostgreSQL keeps them: a time reads the same before it is stored and after.
        # (By whole numbers: `round` to six places costs ten times as much, and this is called for every delivery.)
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
    """The real clocks for code that holds its thread up instead of awaiting."""

    def wall(self) -> float:
        """The machine's idea of the time, in seconds since 1970; may jump."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment; never jumps."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
