"""Who carries out bulk replays and discards?

Any process that delivers, one transaction at a time. How far a job is, is written with each step, so whoever
comes next goes on from there; two at the same job leave it to one of them.

A job that cannot go on does not hold up those behind it: after `TRIES` looks at which it failed by itself (the store
refuses what it would write, or it makes hookline itself fail) it has failed for good. What the database is at fault for
(rights, a disk that is full, no answer) is waited for, however long.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.errors import RowRefused, StoreRefused, StoreUnavailable
from hookline.failpoints import failpoint
from hookline.model import EndpointId, JobId
from hookline.pipeline.membership.burial import sweep
from hookline.store.contract import JobState, Store

STEP = 500  # dead letters in one transaction: other writers wait for no more than that

TRIES = 5  # whatever it was may pass: a row that another process was just about to mend
_LOOK_EVERY = 3.0  # seconds; others' jobs, and those that others left
_BACKOFF = 0.5  # seconds after the store did not answer

log = structlog.get_logger()


class Jobs:
    """Carries out running jobs, turn by turn."""

    def __init__(
        self, store: Store, clock: Clock, announce: Callable[[EndpointId], None], *, step: int = STEP
    ) -> None:
        self._store = store
        self._clock = clock
        self._announce = announce  # rows of this lane are committed and due
        self._limit = step
        self._some = asyncio.Event()
        self._is_closing = False
        self._tries: dict[JobId, int] = {}  # of those that failed when they were last looked at
        self._rests = asyncio.Event()  # no step is under way
        self._rests.set()

    def nudge(self) -> None:
        """A job was created: look now."""
        self._some.set()

    async def close(self) -> None:
        """Begin no more steps, and wait until the lanes of the last one are announced.

        Whoever cancels `run` without this may do so between a step's commit and its answer: its lanes then sleep
        until the next sweep.
        """
        self._is_closing = True
        await self._rests.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._some.clear()
            try:
                await self._work_through(deque(await self._store.running_jobs()))
            except StoreUnavailable as error:
                log.debug("job.interrupted", error=str(error))
                await self._recover()
                continue
            await self._clock.wait(self._some, _LOOK_EVERY)

    async def _work_through(self, jobs: deque[JobId]) -> None:
        while jobs and not self._is_closing:
            job = jobs.popleft()
            self._rests.clear()
            try:
                if await self._step(job):
                    jobs.append(job)
                self._tries.pop(job, None)
            except StoreUnavailable:
                raise
            except StoreRefused as error:
                if not isinstance(error, RowRefused):
                    raise
                await self._failed(job, error)
            except Exception as error:
                await self._failed(job, error)
            finally:
                self._rests.set()

    async def _failed(self, id: JobId, error: Exception) -> None:
        """Leave it for the next look, or for good."""
        tries = self._tries[id] = self._tries.get(id, 0) + 1
        if tries < TRIES:
            log.warning("job.failing", job=id.hex(), tries=tries, error=_line(error))
            return
        del self._tries[id]
        if await self._store.fail_job(id, reason=_line(error), now=self._clock.now()):
            log.error("job.failed", job=id.hex(), error=_line(error))

    async def _step(self, id: JobId) -> bool:
        """One transaction; says whether there is more to do here."""
        failpoint("job.before")
        step = await self._store.advance_job(id, limit=self._limit, now=self._clock.now())
        if step is None:
            return False
        failpoint("job.after")
        for lane in step.lanes:
            self._announce(lane)
        if step.job.state is JobState.RUNNING:
            return True
        if step.job.state is JobState.FAILED:
            log.error("job.failed", job=ids.show(step.job.kind.value, id), error=step.job.reason)
            return False
        log.info(
            "job.finished", job=ids.show(step.job.kind.value, id), done=step.job.done, failed=step.job.failed
        )
        return False

    async def _recover(self) -> None:
        """Wait until the store answers; a step may have been committed whose lanes nobody was told of."""
        while True:
            await self._clock.sleep(_BACKOFF)
            try:
                await sweep(self._store, self._clock)
            except StoreUnavailable:
                continue
            return


def _line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:500]
