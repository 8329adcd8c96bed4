"""Answers how fast an endpoint is, and how often it accepts, over a window.

Windows are cut to whole minutes, beyond 48 hours to whole hours. The newest attempts are missing for up to 10 seconds,
30 where a worker sends to many endpoints (`as_of` says until when all are counted for sure).
"""

import msgspec

from hookline import ids, rfc3339
from hookline.clock import Clock
from hookline.model import EndpointId
from hookline.reports.latency_sums import LatencyFigures, LatencySums, cut_window, figures_of, step_of
from hookline.reports.views import EndpointText, Moment
from hookline.rules.latency_buckets import LatencyKind, accepted, by_answer, of_kind
from hookline.rules.slowness import is_slow_day
from hookline.store.contract import Store

FLUSHED_AFTER = 30.0  # seconds, at the latest


class StatsPhases(msgspec.Struct, kw_only=True):
    """The phases of requests; the first three happen on new connections only."""

    dns: LatencyFigures
    connect: LatencyFigures
    tls: LatencyFigures
    first_byte: LatencyFigures


class StatsPoint(msgspec.Struct, kw_only=True):
    """A point of the series: the attempts from `at` until the next point."""

    at: Moment
    samples: int
    accepted: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class StatsReport(LatencyFigures, kw_only=True):
    """The attempts of an endpoint in a window: response times, answers, and what deliveries waited for."""

    endpoint_id: EndpointText
    since: Moment
    until: Moment
    as_of: Moment
    precision_s: int  # windows are cut to minutes, long ones to hours
    success_rate: float | None
    slow: bool  # by the last 24 hours
    pending: int  # deliveries, as they were last counted
    dead: int
    by_status: dict[str, int]  # and errors of attempts that got no answer
    queue_wait: LatencyFigures
    end_to_end: LatencyFigures
    phases: StatsPhases
    series: tuple[StatsPoint, ...]
    step_s: int  # of the series


async def endpoint_stats(store: Store, clock: Clock, endpoint: EndpointId, *, window: float) -> StatsReport:
    """The statistics of an endpoint over the last so many seconds."""
    now = clock.now()
    cut = cut_window(window, now=now)
    parts = await store.latency_window([endpoint], since=cut.since, until=cut.until)
    depth = await store.endpoint_counts([endpoint])
    days = await store.latency_days([endpoint])
    step = step_of(window)
    sums = LatencySums(LatencyKind.RESPONSE, since=cut.since, step=step)
    await sums.add(parts, clock)
    whole = await sums.whole(clock)
    attempts = sum(of_kind(whole, LatencyKind.ANSWER).values())
    figures = figures_of(whole, LatencyKind.RESPONSE)
    return StatsReport(
        endpoint_id=ids.show("endpoint", endpoint),
        since=rfc3339.show(clock.shown(cut.since)),
        until=rfc3339.show(clock.shown(min(now, cut.until))),
        as_of=rfc3339.show(clock.shown(now - FLUSHED_AFTER)),
        precision_s=int(cut.precision),
        success_rate=accepted(whole) / attempts if attempts else None,
        slow=any(is_slow_day(day.attempts, day.p95) for day in days),
        pending=sum(each.pending for each in depth),
        dead=sum(each.dead for each in depth),
        by_status=by_answer(whole),
        queue_wait=figures_of(whole, LatencyKind.QUEUE_WAIT),
        end_to_end=figures_of(whole, LatencyKind.END_TO_END),
        phases=StatsPhases(
            dns=figures_of(whole, LatencyKind.DNS),
            connect=figures_of(whole, LatencyKind.CONNECT),
            tls=figures_of(whole, LatencyKind.TLS),
            first_byte=figures_of(whole, LatencyKind.FIRST_BYTE),
        ),
        series=tuple(
            StatsPoint(**msgspec.structs.asdict(each) | {"at": rfc3339.show(clock.shown(each.at))})
            for each in await sums.points(clock)
        ),
        step_s=int(step),
        **msgspec.structs.asdict(figures),
    )
