"""The clocks of the processes of a simulated world."""

from random import Random
from typing import NamedTuple

from hookline.clock import SystemClock
from tests.sim.loop import SimLoop

EPOCH = 1_800_000_000.0
TICK = 1e-5  # seconds; times are kept in whole microseconds


class Pulse(NamedTuple):
    """The store's time according to a pulse."""

    began: float
    doubt: float  # seconds that it may be off: half of the time it took
    ahead: float  # seconds that the store itself is off


class ProcessClock(SystemClock):
    """A process's clocks: the world sets the error of its wall clock; everything else is the product's own code."""

    def __init__(
        self, loop: SimLoop, *, wall_error: float = 0.0, booted: float = 0.0, ticks: bool = False
    ) -> None:
        super().__init__()
        self._loop = loop
        self._read_at = 0.0
        # Time passes between two readings, as on a real machine; now and then too little to be seen.
        self._ticks = Random(1) if ticks else None
        self._booted = booted
        self.wall_error = wall_error  # seconds; faults change it
        self.wall = self._wall
        self.monotonic = self._monotonic
        self._offset = self.wall() - self.monotonic()
        self._answered = Pulse(float("-inf"), 0.0, 0.0)  # by any caller
        self.pulse = self._answered  # the last one whose time was followed

    def follow(self, store_now: float, *, at: float, ahead: float = 0.0, rate: float = 1.0) -> None:
        super().follow(store_now, at=at, ahead=ahead, rate=rate)
        self.pulse = self._answered

    def answer(self, began: float, *, ahead: float) -> None:
        """Record the answer to a pulse: when the pulse began, and how far ahead the answered time is."""
        self._answered = Pulse(began, (self._loop.time() - began) / 2, ahead)

    def _wall(self) -> float:
        return EPOCH + self._loop.time() + self.wall_error

    def _monotonic(self) -> float:
        if self._ticks is not None and self._ticks.random() < 0.95:
            self._read_at += 1e-6
        self._read_at = max(self._loop.time(), self._read_at)
        return self._booted + self._read_at
