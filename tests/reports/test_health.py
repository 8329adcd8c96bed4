"""The times from publish to delivery in health are those of the last hour's deliveries."""

import math
from random import Random
from typing import Any

import pytest

from factories import a_settlement, an_attempt
from hookline.model import EndpointId, State
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS
from hookline.pipeline.measuring.latency_meter import MeasuredBatch
from hookline.reports.health import HealthReports
from hookline.reports.owners import LaneOwners
from hookline.reports.views import PercentilesReport
from hookline.rules.latency_samples import pack
from hookline.store.contract import LoggedBatch
from hookline.testing.clock import ManualClock
from scenes import a_lane_in, a_worker_in

pytestmark = pytest.mark.anyio


async def counted(store, clock, batches: dict[tuple[EndpointId, float], list[float]]) -> None:
    """Write minutes: how long each delivery took since its publish, by endpoint and age of the minute."""
    worker = await a_worker_in(store)
    logged = []
    for (endpoint, age), times in batches.items():
        at = clock.now() - age
        made = [
            a_settlement(
                b"%016d" % n,
                endpoint,
                attempt=an_attempt(b"%016d" % n, at=at, duration=0.0),
                state=State.DELIVERED,
                published_at=at - seconds,
            )
            for n, seconds in enumerate(times)
        ]
        batch = MeasuredBatch(made, n=1, minute=at // 60 * 60)
        logged.append(LoggedBatch(at // 60 * 60, pack(batch.endpoints, batch.words, batch.pairs), ()))
    assert await store.flush_latencies(
        worker,
        LATENCY_COUNTS.cells(logged),
        source=await store.new_latency_source(),
        n=0,
        math=LATENCY_COUNTS,
        now=clock.now(),
    )


def health_of(store, clock) -> HealthReports:
    nobody: Any = None
    return HealthReports(store, LaneOwners(store, nobody, clock, heartbeat=2.0), clock, heartbeat=2.0)


def are_near(found: PercentilesReport, times: list[float]) -> bool:
    ordered = sorted(times)
    wanted = {
        percent: 1_000 * ordered[math.ceil(len(ordered) * percent / 100) - 1] for percent in (50, 95, 99)
    }
    shown = {50: found.p50, 95: found.p95, 99: found.p99}
    return all(
        shown[percent] is not None and abs(shown[percent] - each) <= 0.0101 * each
        for percent, each in wanted.items()
    )


async def test_the_percentiles_are_those_of_the_last_hours_deliveries(store):
    clock, rng = ManualClock(), Random(3)
    mine, other = await a_lane_in(store, account="acme"), await a_lane_in(store, account="default")
    quick = [rng.lognormvariate(-3, 1.0) for _ in range(300)]
    slow = [rng.lognormvariate(2, 1.0) for _ in range(300)]
    await counted(
        store,
        clock,
        {
            (mine, 60.0): quick[:100],
            (mine, 1_800.0): quick[100:],
            (other, 120.0): slow,
            (mine, 3_720.0): [1_000.0] * 500,  # too old
        },
    )
    reports = health_of(store, clock)
    assert are_near((await reports.report()).end_to_end_ms, quick + slow)
    assert are_near((await reports.report("acme")).end_to_end_ms, quick)
    assert are_near((await reports.report("default")).end_to_end_ms, slow)


async def test_percentiles_of_no_deliveries_are_null(store):
    """Not 0: attempts that delivered nothing have none either."""
    clock = ManualClock()
    reports = health_of(store, clock)
    assert (await reports.report()).end_to_end_ms == PercentilesReport()
    endpoint = await a_lane_in(store)
    await counted(store, clock, {(endpoint, 4_000.0): [1.0]})
    assert (await reports.report()).end_to_end_ms == PercentilesReport()
    assert (await reports.report("acme")).end_to_end_ms == PercentilesReport()
