"""Adds up the latencies of a window, as a whole and for each point of its series."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from hookline.clock import Clock
from hookline.rules.latency_buckets import (
    LatencyKind,
    add_encoded,
    decompress,
    mean,
    of_kind,
    percentile,
)
from hookline.store.contract import LatencyPart
from hookline.store.contract.measuring.latency import MINUTES_KEPT

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
PARTS_AT_ONCE = 25  # added up before others have their turn; an hour of all endpoints takes 0.2 ms
POINTS_AT_ONCE = 10  # likewise, of which the percentiles are found


class LatencyFigures(msgspec.Struct, kw_only=True):
    """Percentiles in milliseconds; null without samples."""

    samples: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    mean_ms: float | None


class LatencyPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point of a series: from `at` until the next point."""

    at: float
    samples: int
    accepted: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class LatencySums:
    """The counts of a window, and those of one kind for each point of the series."""

    def __init__(self, kind: LatencyKind, *, since: float, step: float) -> None:
        self._kind = kind
        self._since = since
        self._step = step
        self._rest: dict[int, int] = {}  # what the points do not have
        self._points: dict[float, dict[int, int]] = {}
        self._accepted: dict[float, int] = {}

    async def add(self, parts: Sequence[LatencyPart], clock: Clock) -> None:
        """Add these minutes and hours, a few at a time."""
        for n, part in enumerate(parts, start=1):
            at = max(self._since, part.cell.at // self._step * self._step)
            point = self._points.setdefault(at, {})
            if self._kind is LatencyKind.RESPONSE:  # alone in its column
                add_encoded(point, _read(part, part.cell.response))
                add_encoded(self._rest, _read(part, part.cell.rest))
            else:
                add_encoded(point, _read(part, part.cell.rest))
            self._accepted[at] = self._accepted.get(at, 0) + part.cell.accepted
            if n % PARTS_AT_ONCE == 0:
                await clock.sleep(0.0)

    async def whole(self, clock: Clock) -> dict[int, int]:
        """The counts of the window; of another kind than the response without the response times."""
        whole = dict(self._rest)
        for n, point in enumerate(self._points.values(), start=1):
            for key, count in point.items():
                whole[key] = whole.get(key, 0) + count
            if n % POINTS_AT_ONCE == 0:
                await clock.sleep(0.0)
        return whole

    async def points(self, clock: Clock) -> list[LatencyPoint]:
        """The points that have anything, oldest first."""
        found = []
        for n, at in enumerate(sorted(self._points), start=1):
            figures = figures_of(self._points[at], self._kind)
            found.append(
                LatencyPoint(
                    at=at,
                    samples=figures.samples,
                    accepted=self._accepted[at],
                    p50_ms=figures.p50_ms,
                    p95_ms=figures.p95_ms,
                    p99_ms=figures.p99_ms,
                )
            )
            if n % POINTS_AT_ONCE == 0:
                await clock.sleep(0.0)
        return found


class CutWindow(NamedTuple):
    """A window that begins and ends with a minute; a long one begins with an hour."""

    since: float
    until: float
    precision: float  # seconds


def cut_window(window: float, *, now: float) -> CutWindow:
    """The last so many seconds."""
    precision = MINUTE if window <= MINUTES_KEPT else HOUR
    return CutWindow((now - window) // precision * precision, (now // MINUTE + 1) * MINUTE, precision)


def step_of(window: float) -> float:
    """Seconds of a point of the series, so that there are at most 200 of them."""
    if window <= 3 * HOUR:
        return MINUTE
    return HOUR if window <= 8 * DAY else DAY


def figures_of(counts: Mapping[int, int], kind: LatencyKind) -> LatencyFigures:
    """The percentiles of one kind."""
    found = of_kind(counts, kind)
    return LatencyFigures(
        samples=sum(found.values()),
        p50_ms=_ms(percentile(found, 50)),
        p95_ms=_ms(percentile(found, 95)),
        p99_ms=_ms(percentile(found, 99)),
        mean_ms=_ms(mean(found)),
    )


def _read(part: LatencyPart, data: bytes) -> bytes:
    return decompress(data) if part.is_hour else data


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 3)
