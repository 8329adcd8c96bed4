"""Knows the endpoints whose circuits trip at half their threshold because they are very slow.

They are read from the stored percentiles of the last 24 hours, which are the same for every process: a lane that moves
to another owner keeps its threshold. A lane asks for each failure, so the answer is kept in memory.
"""

import structlog

from hookline.clock import Clock
from hookline.errors import HooklineError
from hookline.model import EndpointId
from hookline.rules.slowness import VERY_SLOW, is_very_slow_day
from hookline.store.contract import Store

LOOK_EVERY = 60.0  # seconds; percentiles are reckoned every five minutes, so both together stay below 15
_PAGE = 500

log = structlog.get_logger()


class VerySlowEndpoints:
    """The very slow endpoints, as of the last look; `in` says whether one of them is."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._ids: frozenset[EndpointId] = frozenset()
        self._is_failing = False

    def __contains__(self, endpoint: object) -> bool:
        return endpoint in self._ids

    async def run(self) -> None:
        """Look again until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            await self.look()

    async def look(self) -> None:
        """Read who is very slow; if that fails, what was known stays."""
        found: set[EndpointId] = set()
        after: tuple[float, EndpointId] | None = None
        try:
            while True:
                days = await self._store.slowest(after=after, above=VERY_SLOW, limit=_PAGE)
                found.update(day.endpoint_id for day in days if is_very_slow_day(day.attempts, day.p95))
                if len(days) < _PAGE:
                    break
                after = (days[-1].p95 or 0.0, days[-1].endpoint_id)
        except HooklineError as error:
            if not self._is_failing:
                self._is_failing = True
                log.warning("latency.task_failed", error=str(error))
            return
        self._is_failing = False
        self._ids = frozenset(found)
