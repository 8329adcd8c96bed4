"""The statistics of an endpoint agree with its attempts."""

import math
from collections import Counter
from random import Random

import pytest

from factories import a_settlement, a_worker, an_attempt
from hookline import rfc3339
from hookline.model import EndpointId, ErrorKind, Outcome, State, Timings
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.pipeline.measuring.latency_meter import measure
from hookline.reports.latency_sums import LatencyFigures
from hookline.reports.stats import endpoint_stats
from hookline.rules.latency_buckets import NOTHING
from hookline.rules.latency_samples import keys_by_endpoint
from hookline.store.contract import LatencyDay
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio

ENDPOINT = EndpointId(b"e" * 16)
NONE = LatencyFigures(samples=0, p50_ms=None, p95_ms=None, p99_ms=None, mean_ms=None)


def settlements(durations, *, at, failing=0):
    """Settlements with these response times, the first ones not accepted."""
    made = []
    for n, seconds in enumerate(durations):
        fields = {"duration": seconds, "at": at, "timings": Timings(None, None, None, seconds / 2)}
        if n < failing:
            fields |= {"outcome": Outcome.TRANSIENT, "status": 503, "error": ErrorKind.HTTP_5XX}
        made.append(
            a_settlement(
                b"%016d" % n,
                ENDPOINT,
                attempt=an_attempt(b"%016d" % n, **fields),
                state=State.PENDING if n < failing else State.DELIVERED,
                waited_since=at - 0.5,
                published_at=at - 2.0,
            )
        )
    return made


async def measured(store, clock, batches):
    """Write minutes: the settlements of each, by when it began."""
    worker = a_worker()
    await store.register(worker)
    cells = []
    for minute, batch in batches.items():
        counts = Counter(keys_by_endpoint(*measure(batch))[ENDPOINT])
        del counts[NOTHING]
        cells.append(cell_of(ENDPOINT, minute, counts))
    source = await store.new_latency_source()
    assert await store.flush_latencies(
        worker.id, cells, source=source, n=0, math=LATENCY_COUNTS, now=clock.now()
    )


def near(found, wanted):
    return abs(found - wanted) <= wanted * 0.0101


async def test_percentiles_mean_and_answers_are_those_of_the_attempts(store):
    clock, rng = ManualClock(), Random(7)
    now = clock.now() // 60 * 60
    minutes = {now - 60 * n: [rng.lognormvariate(-3, 1.5) for _ in range(50)] for n in range(0, 1_400, 7)}
    await measured(store, clock, {at: settlements(each, at=at, failing=5) for at, each in minutes.items()})
    step = await store.roll_latencies(after=None, math=LATENCY_COUNTS, now=clock.now(), next_at=clock.now())
    assert step is not None
    stats = await endpoint_stats(store, clock, ENDPOINT, window=86_400)
    durations = sorted(seconds for each in minutes.values() for seconds in each)
    assert stats.samples == len(durations)
    for percent, found in ((50, stats.p50_ms), (95, stats.p95_ms), (99, stats.p99_ms)):
        assert near(found, 1_000 * durations[math.ceil(len(durations) * percent / 100) - 1])
    assert near(stats.mean_ms, 1_000 * math.fsum(durations) / len(durations))
    assert stats.success_rate == 0.9
    assert stats.by_status == {"200": 45 * len(minutes), "503": 5 * len(minutes)}
    assert near(stats.queue_wait.p50_ms, 500)
    assert stats.end_to_end.samples == 45 * len(minutes), "only what was delivered has an end"
    assert stats.phases.first_byte.samples == stats.samples
    assert stats.phases.connect == NONE
    assert sum(point.samples for point in stats.series) == stats.samples
    assert (stats.step_s, stats.precision_s) == (3_600, 60)


async def test_figures_of_no_samples_are_null(store):
    stats = await endpoint_stats(store, ManualClock(), ENDPOINT, window=3_600)
    assert (stats.samples, stats.p50_ms, stats.p95_ms, stats.mean_ms) == (0, None, None, None)
    assert stats.success_rate is None
    assert (stats.by_status, stats.series, stats.slow) == ({}, (), False)
    assert stats.queue_wait == stats.end_to_end == stats.phases.tls == NONE


async def test_a_window_is_cut_to_minutes_and_a_long_one_to_hours(store):
    clock = ManualClock()
    now = clock.now()
    for window, precision in ((900, 60), (172_800, 60), (172_860, 3_600), (90 * 86_400, 3_600)):
        stats = await endpoint_stats(store, clock, ENDPOINT, window=window)
        assert stats.precision_s == precision
        assert rfc3339.read(stats.since) == (now - window) // precision * precision


async def test_attempts_before_the_window_are_not_in_it(store):
    clock = ManualClock()
    now = clock.now() // 60 * 60
    await measured(
        store, clock, {now - 60 * n: settlements([0.1], at=now - 60 * n) for n in (0, 14, 15, 16, 17)}
    )
    stats = await endpoint_stats(store, clock, ENDPOINT, window=900)
    assert stats.samples == 3
    assert [point.samples for point in stats.series] == [1, 1, 1]


async def test_slow_is_what_the_last_day_says(store):
    clock = ManualClock()
    day = LatencyDay(
        endpoint_id=ENDPOINT, as_of=clock.now(), attempts=100, accepted=100, p50=0.1, p95=2.5, p99=3.0
    )
    await store.write_latency_days([day])
    assert (await endpoint_stats(store, clock, ENDPOINT, window=900)).slow
