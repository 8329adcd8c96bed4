"""Runs the tasks that one process does for all.

Every delivering process asks when a task is due by its own clock. The store gives the task to one of them: its row in
`periodic_tasks` is locked while it is done, and says when it is due again. There is no leader. If the process that does
a task dies, its lock is free and another does it the next time.
"""

from collections.abc import Awaitable, Callable

import msgspec
import structlog

from hookline.clock import Clock
from hookline.errors import StorageFull, StoreRefused, StoreUnavailable

AFTER_A_FAILURE = 1.0  # least seconds before a failed task is tried again
# A task that took long to fail rests for this many times as long: a count that always runs into its limit must not keep
# the database busy. But a lock that is gone again must not leave us blind for minutes, so the first failures in a row
# rest for AFTER_A_FAILURE, twice as long, and so on, at most.
TIMES_AS_LONG = 20.0

Work = Callable[[], Awaitable[float | None]]  # the seconds until it is wanted again; None: as usual

log = structlog.get_logger()


class _PeriodicTask(msgspec.Struct):
    """Something that is done at intervals."""

    name: str
    every: float  # seconds
    work: Work
    wanted_at: float = float("-inf")  # on the monotonic clock
    failures: int = 0  # in a row


class PeriodicTasks:
    """The tasks of this process, one step of one task at a time."""

    def __init__(
        self, clock: Clock, *, on_refused: Callable[[StoreRefused | StorageFull], None] = lambda _: None
    ) -> None:
        self._clock = clock
        self._on_refused = on_refused
        self._tasks: list[_PeriodicTask] = []

    def add(self, name: str, every: float, work: Work) -> None:
        """Do this work at once and then every so many seconds. Each call of `work` is one step and should be short."""
        self._tasks.append(_PeriodicTask(name, every, work))

    async def run(self) -> None:
        """Run them until cancelled. Each task that is due does one step before any does its second."""
        while True:
            for task in self._tasks:
                if self._clock.monotonic() >= task.wanted_at:
                    await self._step(task)
            first = min((task.wanted_at for task in self._tasks), default=float("inf"))
            await self._clock.sleep(max(0.0, first - self._clock.monotonic()))

    async def _step(self, task: _PeriodicTask) -> None:
        began = self._clock.monotonic()
        task.failures += 1
        try:
            wanted = await task.work()
            task.failures = 0
            task.wanted_at = self._clock.monotonic() + (task.every if wanted is None else wanted)
            return
        except (StoreRefused, StorageFull) as error:
            self._on_refused(error)
        except StoreUnavailable as error:
            log.debug("task.interrupted", task=task.name, error=str(error))
        except Exception:
            # A bug in one task must not stop the others.
            if task.failures == 1:
                log.exception("task.failed", task=task.name)
        ended = self._clock.monotonic()
        rest = min(TIMES_AS_LONG * (ended - began), AFTER_A_FAILURE * 2.0 ** min(task.failures - 1, 30))
        task.wanted_at = ended + max(AFTER_A_FAILURE, rest)
