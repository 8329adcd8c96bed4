"""Carries out bulk replays and discards.

Any delivering process does it, one transaction at a time. Each step stores the job's progress, so the next process
continues from there. If two work on the same job, one of them leaves it to the other.

A job that cannot continue does not delay the ones behind it. After `TRIES` looks at which it failed by itself (the
store refuses its writes, or it makes hookline itself fail) it has failed for good. If the database is at fault (rights,
a full disk, no answer), the job waits, however long that takes.
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

STEP = 500  # dead letters in one transaction: other writers wait no longer than for these

TRIES = 5  # the cause may pass: another process may just be correcting the row
_LOOK_EVERY = 3.0  # seconds; for jobs of other processes, and jobs they left
_BACKOFF = 0.5  # seconds after the store did not answer

log = structlog.get_logger()


class Jobs:
    """Carries out running jobs in turn."""

    def __init__(
        self, store: Store, clock: Clock, announce: Callable[[EndpointId], None], *, step: int = STEP
    ) -> None:
        self._store = store
        self._clock = clock
        self._announce = announce  # rows of this lane are committed and due
        self._limit = step
        self._some = asyncio.Event()
        self._is_closing = False
        self._tries: dict[JobId, int] = {}  # of the jobs that failed at their last look
        self._rests = asyncio.Event()  # no step is under way
        self._rests.set()

    def nudge(self) -> None:
        """A job was created: look now."""
        self._some.set()

    async def close(self) -> None:
        """Begin no more steps, and wait until the lanes of the last one are announced.

        Otherwise `run` may be cancelled between a step's commit and its answer: its lanes would then sleep until the
        next sweep.
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
        """Leave the job for the next look, or for good."""
        tries = self._tries[id] = self._tries.get(id, 0) + 1
        if tries < TRIES:
            log.warning("job.failing", job=id.hex(), tries=tries, error=_line(error))
            return
        del self._tries[id]
        if await self._store.fail_job(id, reason=_line(error), now=self._clock.now()):
            log.error("job.failed", job=id.hex(), error=_line(error))

    async def _step(self, id: JobId) -> bool:
        """Run one transaction; True if there is more to do here."""
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
        """Wait until the store answers; a step may have been committed whose lanes were not announced."""
        while True:
            await self._clock.sleep(_BACKOFF)
            try:
                await sweep(self._store, self._clock)
            except StoreUnavailable:
                continue
            return


def _line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:500]
