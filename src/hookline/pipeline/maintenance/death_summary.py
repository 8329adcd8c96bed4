"""Logs how many deliveries died, once a minute for each endpoint.

A line for each would fill the log on the night when it is needed. The summary has the commonest error and status.
"""

import asyncio
from collections import Counter

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.model import EndpointId, Reason
from hookline.store.contract import Settlement

EVERY = 60.0  # seconds
ENDPOINTS = 1_000  # that are named; the deaths of the others are in one line
CAUSES = 50  # that are told apart for each endpoint

log = structlog.get_logger()

_Cause = tuple[str, str | None, int | None]  # reason, error, status


class DeathSummary:
    """The deaths that were not logged yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._named: dict[EndpointId, Counter[_Cause | None]] = {}  # None: a cause beyond CAUSES
        self._others = 0
        self._some = asyncio.Event()

    def settled(self, settlement: Settlement) -> None:
        """A delivery died of its last attempt."""
        attempt = settlement.attempt
        error = None if attempt.error is None else attempt.error.value
        reason = "" if settlement.reason is None else settlement.reason.value
        self._add(settlement.endpoint_id, (reason, error, attempt.status), 1)

    def condemned(self, endpoint: EndpointId, count: int) -> None:
        """So many deliveries died because their senders had died again and again."""
        if count:
            self._add(endpoint, (Reason.CRASH_LIMIT.value, None, None), count)

    async def run(self) -> None:
        """Log what has come together, a minute after the first of it, until cancelled."""
        while True:
            await self._some.wait()
            await self._clock.sleep(EVERY)
            self.flush()

    def flush(self) -> None:
        """Log what has come together so far."""
        named, self._named = self._named, {}
        others, self._others = self._others, 0
        self._some.clear()
        for endpoint, causes in named.items():
            (cause, _), *_ = causes.most_common(1)
            reason, error, status = cause or (None, None, None)
            log.warning(
                "deliveries.died",
                endpoint_id=ids.show("endpoint", endpoint),
                count=causes.total(),
                reason=reason,
                error=error,
                status=status,
            )
        if others:
            log.warning("deliveries.died", endpoint_id=None, count=others, note="of further endpoints")

    def _add(self, endpoint: EndpointId, cause: _Cause, count: int) -> None:
        self._some.set()
        causes = self._named.get(endpoint)
        if causes is None:
            if len(self._named) >= ENDPOINTS:
                self._others += count
                return
            causes = self._named[endpoint] = Counter()
        causes[cause if cause in causes or len(causes) < CAUSES else None] += count
