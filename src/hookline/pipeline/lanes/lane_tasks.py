"""Runs the tasks that a lane waits for before it sends more.

Such a task asks the store where a strict lane's head waits, stores that a probe is sent, or sends suspects with care.
A lane has one of them at a time, and a lost lane has none. However a task ends, its lane continues: it is offered
then, because nobody could have had it do what the task was for while the task was under way.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.pipeline.lanes.lane import Lane

_REST = 1.0  # seconds before a lane whose task died of an unforeseen error has another one

log = structlog.get_logger()


class LaneTasks:
    """The tasks under way."""

    def __init__(
        self, clock: Clock, *, nudge: Callable[[Lane], None], on_end: Callable[[Lane], None]
    ) -> None:
        self._clock = clock
        self._nudge = nudge
        self._on_end = on_end
        self._running: dict[Lane, asyncio.Task[None]] = {}

    @property
    def all(self) -> Iterable[asyncio.Task[None]]:
        return self._running.values()

    def has(self, lane: Lane) -> bool:
        """Is a task of the lane under way?"""
        return lane in self._running

    def run(self, lane: Lane, work: Coroutine[None, None, None]) -> None:
        """Run it beside everything else, unless another one of the lane is under way."""
        if lane in self._running:
            work.close()
            return

        async def run() -> None:
            try:
                await work
            except (StoreUnavailable, StoreRefused) as error:
                log.debug("lane_task.failed", error=str(error))
                lane.begin_again()
            except Exception:
                # Nobody thought of it. After a rest the lane reads what it has to send again, and it is tried anew.
                log.exception("lane_task.failed", endpoint_id=ids.show("endpoint", lane.endpoint_id))
                await self._clock.sleep(_REST)
                lane.begin_again()
                self._nudge(lane)
            finally:
                del self._running[lane]
            if not lane.is_lost:
                self._on_end(lane)

        def forget(task: asyncio.Task[None]) -> None:
            """Also one that was cancelled before its first step."""
            if self._running.get(lane) is task:
                work.close()
                del self._running[lane]

        task = self._running[lane] = asyncio.get_running_loop().create_task(run())
        task.add_done_callback(forget)

    def cancel(self, lane: Lane) -> None:
        """Nobody needs the lane's task any more, if there is one."""
        task = self._running.get(lane)
        if task is not None:
            task.cancel()
