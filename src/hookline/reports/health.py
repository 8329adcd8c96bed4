"""Answers how much waits, fails and arrives.

Nothing is counted for a question. The counts are those of the last look (`pipeline.measuring.health_look`), so the
answer takes as long for ten million deliveries as for ten.
"""

from collections.abc import AsyncIterator

from hookline import rfc3339
from hookline.clock import Clock
from hookline.model import EndpointId
from hookline.reports.owners import LaneOwners
from hookline.reports.views import HealthReport, PercentilesReport
from hookline.rules.latency_buckets import LatencyKind, add_encoded, of_kind, percentile
from hookline.rules.liveness import Condition, condition
from hookline.store.contract import EndpointCounts, HealthSample, Store, WorkerRow
from hookline.store.contract.measuring.health import AttemptTotals

HOUR_S = 3_600.0
_RECENT_S = 120.0  # the newest sample is hardly ever older; only then all of a day's are read
_WORKERS = 200  # read at a time
_PARTS_AT_ONCE = 100  # minutes added up before others have their turn


class HealthReports:
    """The health of the installation, or of one account's endpoints."""

    def __init__(self, store: Store, owners: LaneOwners, clock: Clock, *, heartbeat: float) -> None:
        self._store = store
        self._owners = owners
        self._clock = clock
        self._heartbeat = heartbeat

    async def report(self, account: str | None = None) -> HealthReport:
        """The health of an account's endpoints; None: of everything."""
        now = self._clock.now()
        newest = await self._newest(now)
        counts: HealthSample | EndpointCounts | None = newest
        if account is not None:
            counts = await self._store.account_counts(account)
        workers = [each async for each in self.living_workers(now)]
        response, end_to_end = await self._last_hour(account, now=now)
        return HealthReport(
            pending=0 if counts is None else counts.pending,
            awaiting_retry=0 if counts is None else counts.awaiting_retry,
            in_flight=await self._in_flight(account, workers),
            dead=0 if counts is None else counts.dead,
            delivered_last_hour=response.accepted,
            failed_last_hour=0 if counts is None else counts.failed_last_hour,
            oldest_pending_age_s=_age(None if counts is None else counts.oldest_pending, now=now),
            oldest_due_age_s=_age(None if counts is None else counts.oldest_due, now=now),
            mean_response_ms_last_hour=_rounded(response.seconds * 1e3, response.attempts),
            delivery_rate=_rounded(response.accepted, response.attempts),
            end_to_end_ms=end_to_end,
            circuits_open=await self._store.open_circuits(account=account),
            outbox_refused=sum(
                each.rows
                for each in await self._store.count_refused()
                if account is None or each.account == account
            ),
            workers=sum(each.kind != "api" for each in workers),
            as_of=None if newest is None else rfc3339.show(self._clock.shown(newest.at)),
        )

    async def counted_at(self) -> float | None:
        """When everything was last counted; None: never."""
        newest = await self._newest(self._clock.now())
        return None if newest is None else newest.at

    async def _newest(self, now: float) -> HealthSample | None:
        samples = await self._store.health_samples(since=now - _RECENT_S)
        samples = samples or await self._store.health_samples(since=0.0)
        return samples[-1] if samples else None

    async def _last_hour(self, account: str | None, *, now: float) -> tuple[AttemptTotals, PercentilesReport]:
        """What was attempted in the last hour, in whole minutes, and how long it took from publish to delivery."""
        totals = await self._store.attempt_totals(since=now - HOUR_S, account=account)
        counts: dict[int, int] = {}
        for n, rest in enumerate(totals.rest, start=1):
            add_encoded(counts, rest)
            if n % _PARTS_AT_ONCE == 0:
                await self._clock.sleep(0.0)
        found = of_kind(counts, LatencyKind.END_TO_END)
        p50, p95, p99 = (_ms(percentile(found, percent)) for percent in (50, 95, 99))
        return totals, PercentilesReport(p50=p50, p95=p95, p99=p99)

    async def living_workers(self, now: float) -> AsyncIterator[WorkerRow]:
        """The processes that were heard recently."""
        after = None
        while True:
            found = await self._store.list_workers(after=after, limit=_WORKERS)
            for each in found:
                is_stale = (
                    condition(
                        silent=now - each.seen_at,
                        is_draining=each.load.draining,
                        is_buried=each.buried,
                        heartbeat=self._heartbeat,
                    )
                    is Condition.STALE
                )
                if not is_stale:
                    yield each
            if len(found) < _WORKERS:
                return
            after = found[-1].id

    async def _in_flight(self, account: str | None, workers: list[WorkerRow]) -> int:
        if account is None:
            return sum(each.load.in_flight for each in workers)
        busy: dict[EndpointId, int] = {}
        for status in (await self._owners.statuses()).values():
            busy |= {EndpointId(lane.endpoint_id): lane.in_flight for lane in status.lanes if lane.in_flight}
        own = await self._store.endpoints_by_id(sorted(busy)) if busy else []
        return sum(busy[each.id] for each in own if each.account == account)


def _age(since: float | None, *, now: float) -> float | None:
    return None if since is None else round(max(0.0, now - since), 3)


def _rounded(total: float, number: int) -> float | None:
    """The mean, or null of nothing."""
    return round(total / number, 4) if number else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 3)
