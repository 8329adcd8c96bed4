"""What if a worker went by its own clock?"""

import time
from collections.abc import Callable

from hookline.clock import SystemClock


def due_by_wall_clock() -> None:
    """What is due, and what a rate allows, is decided by the machine's idea of the time."""

    def wall(self: SystemClock) -> float:
        return time.time()

    SystemClock.now = wall


BUGS: dict[str, Callable[[], None]] = {
    "due-by-wall-clock": due_by_wall_clock,
}
