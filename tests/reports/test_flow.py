"""What flows, and how long it takes, agrees with the events and the attempts."""

import math
from random import Random
from typing import Any

import pytest

from contract.test_board import a_day, measured
from factories import a_publication
from hookline.ids import Ids
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS
from hookline.reports import flow as flow_module
from hookline.reports.flow import FlowReports
from hookline.reports.health import HealthReports
from hookline.reports.owners import LaneOwners
from hookline.store.contract import EVERY_ENDPOINT, Load
from hookline.store.contract.measuring.flow import MinuteAttempts
from hookline.testing.clock import ManualClock
from reports.test_health import counted
from scenes import a_lane_in, a_worker_in, accepted

pytestmark = pytest.mark.anyio

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
START = 1_800_000_000.0 + 1_245.0  # within a minute and an hour


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def flow(store, clock):
    nobody: Any = None
    health = HealthReports(store, LaneOwners(store, nobody, clock, heartbeat=2.0), clock, heartbeat=2.0)
    return FlowReports(store, health, clock)


async def test_events_of_the_last_ten_whole_seconds_are_counted(store, flow, clock):
    clock.advance(0.25)
    lane = await a_lane_in(store)
    made, at, publications = Ids(clock, Random(1)), clock.now(), []
    for seconds, account in ((-9.0, "acme"), (1, "acme"), (2, "default"), (9.5, "acme"), (10.1, "acme")):
        clock.advance(at + seconds - clock.now()) if seconds > 0 else None
        publications.append(a_publication(lane, id=made.event(), account=account))
    await accepted(store, *publications)
    report = await flow.now()
    assert (report.published_per_s, report.published_is_more) == (0.4, False)
    assert (await flow.now("acme")).published_per_s == 0.3
    assert (await flow.now("default")).published_per_s == 0.1
    assert (await flow.now("nobody")).published_per_s == 0.0


async def test_a_flood_is_counted_up_to_a_limit(store, flow, clock):
    lane = await a_lane_in(store)
    made = Ids(clock, Random(1))
    floods = [a_publication(lane, id=made.event()) for _ in range(flow_module.MOST_PUBLISHED + 1)]
    for start in range(0, len(floods), 2_000):
        await accepted(store, *floods[start : start + 2_000])
    clock.advance(1.0)
    report = await flow.now()
    assert (report.published_per_s, report.published_is_more) == (2_000.0, True)


async def test_minutes_and_rates_are_those_of_the_stored_minutes(store, flow, clock):
    mine, also_mine, other = [await a_lane_in(store, account=name) for name in ("acme", "acme", "other")]
    until = (START - 30) // MINUTE * MINUTE
    rng = Random(5)
    rows = [
        (id, until + n * MINUTE, rng.randrange(10, 20), rng.randrange(10))
        for id in (EVERY_ENDPOINT, mine, also_mine, other)
        for n in range(-70, 2)
        if n % 7
    ]
    await measured(store, rows)
    for account, own in ((None, {EVERY_ENDPOINT}), ("acme", {mine, also_mine}), ("other", {other})):
        report = await flow.now(account)
        expected = [
            MinuteAttempts(
                at,
                sum(row[2] for row in rows if row[0] in own and row[1] == at),
                sum(row[3] for row in rows if row[0] in own and row[1] == at),
            )
            for at in (until + n * MINUTE for n in range(-60, 0))
        ]
        assert list(report.minutes) == expected
        assert report.as_of == until
        newest = expected[-2:]
        assert report.failed_per_s == sum(each.attempts - each.accepted for each in newest) / 120
        if account is not None:
            assert report.delivered_per_s == sum(each.accepted for each in newest) / 120
    assert sum(each.attempts for each in (await flow.now("nobody")).minutes) == 0


async def test_the_installation_delivers_what_its_living_workers_say(store, flow, clock):
    for rate, seen in ((10.0, 0.0), (2.5, 1.0), (100.0, 500.0)):
        worker = await a_worker_in(store, seen_at=clock.now() - seen)
        if not seen > 100:
            await store.beat(worker, Load(delivered_per_s=rate), now=clock.now())
    assert (await flow.now()).delivered_per_s == 12.5
    assert (await flow.now("acme")).delivered_per_s == 0.0


def near(found, times, percent):
    wanted = 1_000 * sorted(times)[math.ceil(len(times) * percent / 100) - 1]
    return abs(found - wanted) <= wanted * 0.0101


async def test_end_to_end_percentiles_are_those_of_the_deliveries(store, flow, clock):
    mine, also_mine, other = [await a_lane_in(store, account=name) for name in ("acme", "acme", "other")]
    rng = Random(11)
    batches = {
        (id, age): [rng.lognormvariate(0, 1.5) for _ in range(20)]
        for id in (mine, also_mine, other)
        for age in (120.0, 4_000.0, 8_000.0, DAY - 300.0, 30 * HOUR, 5 * DAY)
    }
    await counted(store, clock, batches)
    await store.roll_latencies(after=None, math=LATENCY_COUNTS, now=clock.now(), next_at=clock.now())
    owned = {None: {mine, also_mine, other}, "acme": {mine, also_mine}, "other": {other}}
    for account, own in owned.items():
        for window, step in ((HOUR, MINUTE), (DAY, HOUR), (7 * DAY, HOUR), (30 * DAY, DAY)):
            found = await flow.end_to_end(account, window=window)
            inside = {at: times for at, times in batches.items() if at[0] in own and at[1] < window}
            times = [seconds for each in inside.values() for seconds in each]
            assert found.samples == len(times) == sum(point.samples for point in found.points)
            for percent, said in ((50, found.p50_ms), (95, found.p95_ms), (99, found.p99_ms)):
                assert near(said, times, percent), (account, window, percent)
            places = {max(found.since, (START - age) // MINUTE * MINUTE // step * step) for _, age in inside}
            assert [point.at for point in found.points] == sorted(places)
            assert found.step_s == step
            assert not found.is_partial
    nothing = await flow.end_to_end("nobody", window=HOUR)
    assert (nothing.samples, nothing.p50_ms, nothing.points) == (0, None, ())


async def test_of_many_endpoints_only_the_busiest_are_merged(store, flow, clock):
    lanes = [await a_lane_in(store, account="acme") for _ in range(201)]
    await store.write_latency_days([a_day(lane, attempts=9, as_of=clock.now()) for lane in lanes[1:]])
    await counted(store, clock, {(lane, 120.0): [1.0] for lane in lanes})
    found = await flow.end_to_end("acme", window=HOUR)
    assert (found.samples, found.is_partial) == (200, True)
    assert not (await flow.end_to_end(window=HOUR)).is_partial
    assert (await flow.end_to_end("acme", window=30 * DAY)).samples == 33, "a long window has more to merge"
