"""Keeps the time of a database that is only a file.

It is the machine's time when the file was opened, or the latest time found in the file if that is later, carried
forward by the monotonic clock. So a wall clock that is set while hookline runs makes nothing due, and one that was set
back between two runs does not set the store's time back.

A file whose time is ahead was mostly written under a clock that was ahead. Its time then runs slower than the clock
until the two meet. In a retry nobody notices that. But it may take long until they meet, so meanwhile moments given by
people are converted (`due`).
"""

from hookline.clock import Clock, carried

CATCHING_UP = 0.9  # of the clock's speed: a retry is late by a ninth, and an hour ahead takes ten hours
WORTH_IT = 1.0  # seconds; two correct clocks differ by less
NO_CLOCK_BEFORE = 1_577_836_800.0  # 2020. A machine that starts without a clock shows 1970: the file is right


class FileTime:
    """The store's time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()  # the moment to which the three below refer
        self._base = clock.wall()
        self._debt = 0.0  # seconds that it was ahead then
        self._has_clock = self._base >= NO_CLOCK_BEFORE

    def now(self, *, written: float) -> float:
        """The time, never before the latest one `written` in the file."""
        now = self._now()
        if now < written:
            behind = written - now
            debt = self.ahead + (behind if behind >= WORTH_IT else 0.0)
            self._began, self._base, self._debt = (
                self._clock.monotonic(),
                written,
                debt if self._has_clock else 0.0,
            )
            return written
        return now

    @property
    def ahead(self) -> float:
        """By how many seconds the file's time is still ahead of the clock with which it was opened."""
        return max(0.0, self._debt - (1 - CATCHING_UP) * (self._clock.monotonic() - self._began))

    @property
    def rate(self) -> float:
        """How fast the file's time runs."""
        return CATCHING_UP if self.ahead > 0 else 1.0

    def due(self, moment: float) -> float:
        """The file's time at a real moment."""
        return carried(moment, now=self._now(), ahead=self.ahead, rate=CATCHING_UP) if self._debt else moment

    def _now(self) -> float:
        passed = self._clock.monotonic() - self._began
        return self._base + max(CATCHING_UP * passed, passed - self._debt)
