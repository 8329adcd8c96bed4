"""Bugs: a worker trusts its own clock."""

import time
from collections.abc import Callable

from hookline.clock import SystemClock


def due_by_wall_clock() -> None:
    """The machine's clock decides what is due and what a rate allows."""

    def wall(self: SystemClock) -> float:
        return time.time()

    SystemClock.now = wall


BUGS: dict[str, Callable[[], None]] = {
    "due-by-wall-clock": due_by_wall_clock,
}
