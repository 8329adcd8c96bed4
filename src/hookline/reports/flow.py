"""Answers how much flows now, and how long it takes from publish to delivery.

What was published is counted from the newest ids. What was attempted is read from the stored minutes, which are complete
up to `as_of`. Answers are used for some seconds.
"""

from collections.abc import Sequence

import msgspec

from hookline import ids
from hookline.clock import Clock
from hookline.model import EndpointId, EventId
from hookline.reports.counts import RememberedByKey
from hookline.reports.health import HealthReports
from hookline.reports.latency_sums import (
    HOUR,
    MINUTE,
    CutWindow,
    LatencyPoint,
    LatencySums,
    cut_window,
    figures_of,
    step_of,
)
from hookline.reports.stats import FLUSHED_AFTER
from hookline.rules.latency_buckets import LatencyKind
from hookline.store.contract import EVERY_ENDPOINT, Store
from hookline.store.contract.measuring.flow import CountedEvents, MinuteAttempts

PUBLISHED_S = 10  # whole seconds in which published events are counted
MOST_PUBLISHED = 20_000  # that are counted
RATE_MINUTES = 2  # whole minutes of which a rate is the mean
MINUTES = 60
MOST_ENDPOINTS = 200  # whose latencies are merged
MOST_PARTS = 30_000  # minutes and hours that are merged: about a second of work, in slices
PARTS_AT_ONCE = 1_000  # read from the store
MOST_REMEMBERED = 100  # accounts, and as many windows of accounts
GOOD_FOR, GOOD_FOR_TIMES = 2.0, 20.0  # seconds, and times as long as it took


class FlowReport(msgspec.Struct, frozen=True, kw_only=True):
    """What flows now. Times are those to show (`Clock.shown`), in seconds since 1970."""

    published_per_s: float  # of the last ten seconds
    published_is_more: bool  # there were more than can be counted
    delivered_per_s: float  # accepted attempts
    failed_per_s: float  # all others
    minutes: tuple[MinuteAttempts, ...]  # the last 60 that are complete, oldest first
    as_of: float  # until when attempts are counted; what workers say of themselves is newer


class LatencySeries(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of a window in milliseconds, with a series. Times are those to show, in seconds since 1970."""

    samples: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    points: tuple[LatencyPoint, ...]  # those that have samples or attempts, oldest first
    step_s: int
    since: float
    until: float
    is_partial: bool  # only the busiest endpoints are in it


class FlowReports:
    """The flow of an account or of the installation."""

    def __init__(self, store: Store, health: HealthReports, clock: Clock) -> None:
        self._store = store
        self._health = health
        self._clock = clock
        self._now = RememberedByKey(
            clock, self._read_now, most=MOST_REMEMBERED, good_for=GOOD_FOR, good_for_times=GOOD_FOR_TIMES
        )
        self._end_to_end = RememberedByKey(
            clock,
            self._read_latencies,
            most=MOST_REMEMBERED,
            good_for=GOOD_FOR,
            good_for_times=GOOD_FOR_TIMES,
        )

    async def now(self, account: str | None = None) -> FlowReport:
        """What flows now, of one account or of all."""
        return (await self._now.of(account).get()).value

    async def end_to_end(self, account: str | None = None, *, window: float) -> LatencySeries:
        """How long deliveries took since their publish, over the last so many seconds."""
        return (await self._end_to_end.of((account, window)).get()).value

    async def close(self) -> None:
        """Forget what is being read."""
        await self._now.close()
        await self._end_to_end.close()

    async def _read_now(self, account: str | None) -> FlowReport:
        published = await self._published(account)
        until = (self._clock.now() - FLUSHED_AFTER) // MINUTE * MINUTE
        since = until - MINUTES * MINUTE
        stored = await self._store.minute_attempts(since=since, until=until, account=account)
        minutes = _every_minute(stored, since=since)
        newest = minutes[-RATE_MINUTES:]
        accepted = sum(each.accepted for each in newest)
        delivered = accepted / (RATE_MINUTES * MINUTE)
        if account is None:
            workers = [each async for each in self._health.living_workers(self._clock.now())]
            delivered = sum(each.load.delivered_per_s for each in workers)
        return FlowReport(
            published_per_s=published.number / PUBLISHED_S,
            published_is_more=published.is_more,
            delivered_per_s=delivered,
            failed_per_s=(sum(each.attempts for each in newest) - accepted) / (RATE_MINUTES * MINUTE),
            minutes=tuple(msgspec.structs.replace(each, at=self._clock.shown(each.at)) for each in minutes),
            as_of=self._clock.shown(until),
        )

    async def _published(self, account: str | None) -> CountedEvents:
        """The events of the last whole seconds. Their ids are made by the wall clock."""
        until = self._clock.wall() // 1
        return await self._store.count_events(
            first=EventId(ids.first_at(until - PUBLISHED_S)),
            beyond=EventId(ids.first_at(until)),
            limit=MOST_PUBLISHED,
            account=account,
        )

    async def _read_latencies(self, asked: tuple[str | None, float]) -> LatencySeries:
        account, window = asked
        cut = cut_window(window, now=self._clock.now())
        each_has = _parts_of_an_endpoint(cut)
        most = min(MOST_ENDPOINTS, max(1, MOST_PARTS // each_has))
        endpoints: Sequence[EndpointId] = [EVERY_ENDPOINT]
        if account is not None:
            endpoints = await self._store.busiest_endpoints(account=account, limit=most + 1)
        step = step_of(window)
        sums = LatencySums(LatencyKind.END_TO_END, since=cut.since, step=step)
        at_once = max(1, PARTS_AT_ONCE // each_has)
        for start in range(0, min(most, len(endpoints)), at_once):
            some = endpoints[start : min(start + at_once, most)]
            parts = await self._store.latency_window(some, since=cut.since, until=cut.until)
            await sums.add(parts, self._clock)
        figures = figures_of(await sums.whole(self._clock), LatencyKind.END_TO_END)
        return LatencySeries(
            samples=figures.samples,
            p50_ms=figures.p50_ms,
            p95_ms=figures.p95_ms,
            p99_ms=figures.p99_ms,
            points=tuple(
                msgspec.structs.replace(each, at=self._clock.shown(each.at))
                for each in await sums.points(self._clock)
            ),
            step_s=int(step),
            since=self._clock.shown(cut.since),
            until=self._clock.shown(min(self._clock.now(), cut.until)),
            is_partial=len(endpoints) > most,
        )


def _parts_of_an_endpoint(cut: CutWindow) -> int:
    """At most so many minutes and hours: whole hours come as such, but for the newest two."""
    minutes = (cut.until - cut.since) / MINUTE
    return int(min(minutes, 3 * HOUR / MINUTE + (cut.until - cut.since) / HOUR))


def _every_minute(stored: Sequence[MinuteAttempts], *, since: float) -> list[MinuteAttempts]:
    """All minutes from `since` on, those without attempts too."""
    known = {each.at: each for each in stored}
    return [known.get(at) or MinuteAttempts(at, 0, 0) for at in (since + n * MINUTE for n in range(MINUTES))]
