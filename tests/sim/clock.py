"""What time do the processes of a simulated world believe it is?"""

from hookline.clock import SystemClock
from tests.sim.loop import SimLoop

EPOCH = 1_800_000_000.0


class ProcessClock(SystemClock):
    """A process's clocks: its wall clock is as wrong as the world makes it, the rest is the product's own code."""

    def __init__(self, loop: SimLoop, *, wall_error: float = 0.0, booted: float = 0.0) -> None:
        super().__init__()
        self._loop = loop
        self._booted = booted
        self.wall_error = wall_error  # seconds; faults change it
        self.wall = self._wall
        self.monotonic = self._monotonic
        self._offset = self.wall() - self.monotonic()

    def _wall(self) -> float:
        return EPOCH + self._loop.time() + self.wall_error

    def _monotonic(self) -> float:
        return self._booted + self._loop.time()
