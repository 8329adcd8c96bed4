"""Measures how fast this worker delivers."""

from collections.abc import Callable

from hookline.clock import Clock


class RateMeter:
    """The rate of a growing count, from one look to the next."""

    def __init__(self, clock: Clock, count: Callable[[], int]) -> None:
        self._clock = clock
        self._count = count
        self._last = (count(), clock.monotonic())

    def per_s(self) -> float:
        """The rate since the last look."""
        before, since = self._last
        self._last = count, at = self._count(), self._clock.monotonic()
        return (count - before) / (at - since) if at > since else 0.0
