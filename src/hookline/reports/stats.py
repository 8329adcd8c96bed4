"""Answers how fast an endpoint is, and how often it accepts, over a window.

Windows are cut to whole minutes, beyond 48 hours to whole hours. The newest attempts are missing for up to 10 seconds,
30 where a worker sends to many endpoints (`as_of` says until when all are counted for sure).
"""

from collections.abc import Iterable, Mapping

import msgspec

from hookline import ids, rfc3339
from hookline.clock import Clock
from hookline.model import EndpointId
from hookline.reports.views import EndpointText, Moment
from hookline.rules.latency_buckets import (
    LatencyKind,
    accepted,
    add_encoded,
    by_answer,
    decompress,
    mean,
    of_kind,
    percentile,
)
from hookline.rules.slowness import is_slow_day
from hookline.store.contract import LatencyPart, Store
from hookline.store.contract.measuring.latency import MINUTES_KEPT

FLUSHED_AFTER = 30.0  # seconds, at the latest
_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_PARTS_AT_ONCE = 100  # added up before others have their turn


class LatencyFigures(msgspec.Struct, kw_only=True):
    """Percentiles in milliseconds; null without samples."""

    samples: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    mean_ms: float | None


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
    precision = _MINUTE if window <= MINUTES_KEPT else _HOUR
    until = (now // _MINUTE + 1) * _MINUTE
    since = (now - window) // precision * precision
    parts = await store.latency_window([endpoint], since=since, until=until)
    depth = await store.endpoint_counts([endpoint])
    days = await store.latency_days([endpoint])
    step = _step(window)
    whole: dict[int, int] = {}
    points: dict[float, dict[int, int]] = {}  # of the response times alone
    accepted_at: dict[float, int] = {}
    for n, part in enumerate(parts, start=1):
        at = max(since, part.cell.at // step * step)
        add_encoded(points.setdefault(at, {}), _read(part, part.cell.response))
        add_encoded(whole, _read(part, part.cell.rest))
        accepted_at[at] = accepted_at.get(at, 0) + part.cell.accepted
        if n % _PARTS_AT_ONCE == 0:
            await clock.sleep(0.0)
    for point in points.values():
        for key, count in point.items():
            whole[key] = whole.get(key, 0) + count
    attempts = sum(of_kind(whole, LatencyKind.ANSWER).values())
    figures = _figures(whole, LatencyKind.RESPONSE)
    return StatsReport(
        endpoint_id=ids.show("endpoint", endpoint),
        since=rfc3339.show(clock.shown(since)),
        until=rfc3339.show(clock.shown(min(now, until))),
        as_of=rfc3339.show(clock.shown(now - FLUSHED_AFTER)),
        precision_s=int(precision),
        success_rate=accepted(whole) / attempts if attempts else None,
        slow=any(is_slow_day(day.attempts, day.p95) for day in days),
        pending=sum(each.pending for each in depth),
        dead=sum(each.dead for each in depth),
        by_status=by_answer(whole),
        queue_wait=_figures(whole, LatencyKind.QUEUE_WAIT),
        end_to_end=_figures(whole, LatencyKind.END_TO_END),
        phases=StatsPhases(
            dns=_figures(whole, LatencyKind.DNS),
            connect=_figures(whole, LatencyKind.CONNECT),
            tls=_figures(whole, LatencyKind.TLS),
            first_byte=_figures(whole, LatencyKind.FIRST_BYTE),
        ),
        series=tuple(_series(points, accepted_at, clock)),
        step_s=int(step),
        **msgspec.structs.asdict(figures),
    )


def _step(window: float) -> float:
    """Seconds of a point of the series, so that there are at most 200 of them."""
    if window <= 3 * _HOUR:
        return _MINUTE
    return _HOUR if window <= 8 * _DAY else _DAY


def _read(part: LatencyPart, data: bytes) -> bytes:
    return decompress(data) if part.is_hour else data


def _figures(counts: Mapping[int, int], kind: LatencyKind) -> LatencyFigures:
    found = of_kind(counts, kind)
    return LatencyFigures(
        samples=sum(found.values()),
        p50_ms=_ms(percentile(found, 50)),
        p95_ms=_ms(percentile(found, 95)),
        p99_ms=_ms(percentile(found, 99)),
        mean_ms=_ms(mean(found)),
    )


def _series(
    points: Mapping[float, Mapping[int, int]], accepted_at: Mapping[float, int], clock: Clock
) -> Iterable[StatsPoint]:
    for at in sorted(points):
        figures = _figures(points[at], LatencyKind.RESPONSE)
        yield StatsPoint(
            at=rfc3339.show(clock.shown(at)),
            samples=figures.samples,
            accepted=accepted_at[at],
            p50_ms=figures.p50_ms,
            p95_ms=figures.p95_ms,
            p99_ms=figures.p99_ms,
        )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 3)
