"""Adds up the hours of latencies and reckons the percentiles of the last 24 hours, one process for all.

Each call is one short step for a few endpoints and returns the seconds until the next one is wanted. A process that dies
in the middle of a task is followed by another a minute later; a step that is done twice changes nothing.
"""

from collections.abc import Sequence

import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError
from hookline.model import EndpointId
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS
from hookline.rules.latency_buckets import add_encoded, decompress, percentile
from hookline.store.contract import EVERY_ENDPOINT, LatencyDay, LatencyPart, Store
from hookline.store.contract.measuring.latency import ROLL_AFTER

DAYS_EVERY = 300.0  # seconds; an endpoint's day is at most 15 minutes old where attempts are new
DAYS_CHUNK = 5  # endpoints; a day of each is about 5 ms of reading and adding up
LOOK_EVERY = 60.0  # seconds between two looks whether a task is due

_HOUR, _DAY = 3_600.0, 86_400.0
_PAUSE = 0.05  # seconds between two steps of a task: publishing and settling come first

log = structlog.get_logger()


class LatencyTasks:
    """The tasks, with the place where each of them is."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._rolled: EndpointId | None = None
        self._reckoned: EndpointId | None = None
        self._is_failing = False

    async def run(self) -> None:
        """Do all of them until cancelled."""
        while True:
            await self._clock.sleep(await self.step())

    async def step(self) -> float:
        """One step of each task; seconds until the next one."""
        try:
            waits = [await self.roll(), await self.reckon()]
        except HooklineError as error:
            if not self._is_failing:
                self._is_failing = True
                log.warning("latency.task_failed", error=str(error))
            return LOOK_EVERY
        self._is_failing = False
        return min(waits)

    async def roll(self) -> float:
        """Add up the hours of a few endpoints."""
        now = self._clock.now()
        next_at = ((now - ROLL_AFTER) // _HOUR + 1) * _HOUR + ROLL_AFTER
        step = await self._store.roll_latencies(
            after=self._rolled, math=LATENCY_COUNTS, now=now, next_at=next_at
        )
        self._rolled = None if step is None else step.after
        return LOOK_EVERY if self._rolled is None else _PAUSE

    async def reckon(self) -> float:
        """Reckon the last 24 hours of a few endpoints."""
        now = self._clock.now()
        step = await self._store.claim_latency_days(
            after=self._reckoned, limit=DAYS_CHUNK, now=now, next_at=now + DAYS_EVERY
        )
        self._reckoned = None if step is None else step.after
        ids = [] if step is None else [id for id in step.endpoints if id != EVERY_ENDPOINT]
        if ids:
            until = (now // 60.0 + 1) * 60.0
            parts = await self._store.latency_window(
                ids, since=until - _DAY, until=until, is_response_only=True
            )
            await self._store.write_latency_days([latency_day(id, parts, as_of=now) for id in ids])
        return LOOK_EVERY if self._reckoned is None else _PAUSE


def latency_day(endpoint: EndpointId, parts: Sequence[LatencyPart], *, as_of: float) -> LatencyDay:
    """The percentiles of an endpoint's response times in these parts of its day."""
    counts: dict[int, int] = {}
    accepted = 0
    for part in parts:
        if part.cell.endpoint_id == endpoint:
            add_encoded(counts, decompress(part.cell.response) if part.is_hour else part.cell.response)
            accepted += part.cell.accepted
    return LatencyDay(
        endpoint_id=endpoint,
        as_of=as_of,
        attempts=sum(counts.values()),
        accepted=accepted,
        p50=percentile(counts, 50),
        p95=percentile(counts, 95),
        p99=percentile(counts, 99),
    )
