"""What time is it in a database that is only a file?

The machine's time when the file was opened, or the latest time found in the file if that is later, carried on
by the monotonic clock. So a wall clock that is set while hookline runs makes nothing due, and one that was set
back between two runs does not take the store's time back.
"""

from hookline.clock import Clock


class FileTime:
    """The store's time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = clock.wall() - clock.monotonic()

    def now(self, *, written: float) -> float:
        """The time, not before the latest one `written` in the file."""
        now = self._clock.monotonic() + self._offset
        if now < written:
            self._offset += written - now
            return written
        return now
