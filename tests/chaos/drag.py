"""Measures how much slower this machine is than when it has nothing else to do.

Work on a shared machine waits for its turn. A few milliseconds of work are timed again and again: their time divided
by their cost is the drag. Runs that allow for it judge their timings by it.
"""

import threading
import time

WORK_S = 0.005  # of processor time
EVERY_S = 0.25


class Drag:
    """Measures until it is closed."""

    def __init__(self) -> None:
        self._found: list[float] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()

    @property
    def worst(self) -> float:
        """The drag of the worst tenth of the time so far; 1.0 on a machine that is all ours."""
        ordered = sorted(self._found)
        return ordered[int(len(ordered) * 0.9)] if ordered else 1.0

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._closing.wait(EVERY_S):
            began, cost = time.perf_counter(), time.thread_time()
            while time.thread_time() - cost < WORK_S:
                pass
            self._found.append(max(1.0, (time.perf_counter() - began) / WORK_S))
