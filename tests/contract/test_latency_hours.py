"""Hours are the sum of their minutes, whenever a minute is written; a window counts nothing twice and leaves nothing out."""

from collections import Counter

import pytest

from factories import NOW
from hookline.model import EndpointId
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.rules.latency_buckets import decode, decompress
from hookline.store.contract import EVERY_ENDPOINT, LatencyDay
from hookline.store.contract.measuring.latency import HOURS_KEPT, MINUTES_KEPT, ROLL_CHUNK
from scenes import a_worker_in, an_owned_lane
from tests.contract.test_latency_log import settle, settlements_of

pytestmark = pytest.mark.anyio

HOUR = NOW // 3_600 * 3_600  # the hour that the test begins in
ENDPOINT = EndpointId(b"e" * 16)


async def flush(store, worker, *cells, source=1_000_000, n=0, now=NOW):
    assert await store.flush_latencies(worker, cells, source=source, n=n, math=LATENCY_COUNTS, now=now)


def a_cell(at, *keys, endpoint=ENDPOINT):
    return cell_of(endpoint, at, Counter(keys))


async def roll(store, *, now):
    """Add up all hours that ended; how many steps it took."""
    steps, after = 0, None
    while True:
        step = await store.roll_latencies(after=after, math=LATENCY_COUNTS, now=now, next_at=now)
        assert step is not None
        steps, after = steps + 1, step.after
        if after is None:
            return steps


async def window(store, since, until, endpoint=ENDPOINT):
    """The parts of a window: when each begins, whether it is an hour, its counts."""
    found = []
    for part in await store.latency_window([endpoint], since=since, until=until):
        data = decompress(part.cell.response) if part.is_hour else part.cell.response
        counts = decode(data)
        assert part.cell.attempts == sum(counts.values())
        found.append((part.cell.at, part.is_hour, counts))
    return found


async def total(store, since, until):
    counts = Counter()
    for _, _, each in await window(store, since, until):
        counts.update(each)
    return counts


async def test_a_window_has_whole_hours_and_the_minutes_at_both_ends(store):
    worker = await a_worker_in(store)
    minutes = [HOUR + 60 * n for n in range(-30, 200)]
    await flush(store, worker, *[a_cell(at, n) for n, at in enumerate(minutes)], now=HOUR)
    await roll(store, now=HOUR + 3 * 3_600 + 120)
    parts = await window(store, HOUR - 600, HOUR + 9_000)
    assert [(at, is_hour) for at, is_hour, _ in parts] == [
        *[(HOUR - 600 + 60 * n, False) for n in range(10)],
        (HOUR, True),
        (HOUR + 3_600, True),
        *[(HOUR + 7_200 + 60 * n, False) for n in range(30)],
    ]
    assert await total(store, HOUR - 600, HOUR + 9_000) == Counter(range(20, 180))


@pytest.mark.parametrize(
    ("since", "until"), [(0, 60), (60, 3_540), (0, 3_600), (-1_800, 1_800), (3_600, 3_600)]
)
async def test_a_window_says_the_same_before_and_after_its_hours_are_added_up(store, since, until):
    worker = await a_worker_in(store)
    await flush(store, worker, *[a_cell(HOUR + 60 * n, n + 100) for n in range(-60, 120)], now=HOUR)
    before = await total(store, HOUR + since, HOUR + until)
    await roll(store, now=HOUR + 7_320)
    assert await total(store, HOUR + since, HOUR + until) == before
    assert sum(before.values()) == (until - since) // 60


async def test_an_hour_is_added_up_two_minutes_after_its_end(store):
    worker = await a_worker_in(store)
    await flush(store, worker, a_cell(HOUR, 5))
    await roll(store, now=HOUR + 3_719)
    assert [is_hour for _, is_hour, _ in await window(store, HOUR, HOUR + 3_600)] == [False]
    await roll(store, now=HOUR + 3_720)
    assert await window(store, HOUR, HOUR + 3_600) == [(HOUR, True, {5: 1})]


async def test_what_several_workers_counted_is_added_up(store):
    for source in (1, 2, 3):
        await flush(store, await a_worker_in(store), a_cell(HOUR + 60, source), source=source)
    await roll(store, now=HOUR + 3_720)
    assert await window(store, HOUR, HOUR + 3_600) == [(HOUR, True, {1: 1, 2: 1, 3: 1})]


async def test_hours_that_were_missed_are_added_up_later(store):
    worker = await a_worker_in(store)
    await flush(store, worker, *[a_cell(HOUR + 3_600 * n, n) for n in range(5)])
    await roll(store, now=HOUR + 5 * 3_600 + 120)
    parts = await window(store, HOUR, HOUR + 5 * 3_600)
    assert parts == [(HOUR + 3_600 * n, True, {n: 1}) for n in range(5)]


async def test_a_minute_that_is_written_after_its_hour_was_added_up_is_in_the_hour(store):
    """A batch waits for its database across the end of an hour."""
    worker = await a_worker_in(store)
    await flush(store, worker, a_cell(HOUR, 1))
    await roll(store, now=HOUR + 3_720)
    await flush(store, worker, a_cell(HOUR + 60, 2), now=HOUR + 3_800)
    assert await window(store, HOUR, HOUR + 3_600) == [(HOUR, True, {1: 1, 2: 1})]


async def test_a_minute_in_an_hour_that_had_none_is_in_the_hour_though_later_ones_were_added_up(store):
    worker = await a_worker_in(store)
    await flush(store, worker, a_cell(HOUR + 3_600, 1), now=HOUR + 3_700)
    await roll(store, now=HOUR + 7_320)
    await flush(store, worker, a_cell(HOUR, 2), now=HOUR + 7_400)
    assert await window(store, HOUR, HOUR + 7_200) == [(HOUR, True, {2: 1}), (HOUR + 3_600, True, {1: 1})]


async def fold(store, worker, *, now):
    assert await store.bury(worker, beat=0, now=now)
    while await store.fold_latencies(worker, math=LATENCY_COUNTS, now=now):
        pass


@pytest.mark.parametrize("later", [3_800, MINUTES_KEPT - 7_200, MINUTES_KEPT + 86_400])
async def test_a_dead_workers_log_is_added_to_an_hour_that_was_added_up_without_it(store, later):
    worker, lane = await an_owned_lane(store)
    id = lane.endpoint_id
    await flush(store, worker, a_cell(HOUR, 1, endpoint=id), a_cell(HOUR + 60, 2, endpoint=id))
    await settle(store, worker, await settlements_of(store, lane, 1), minute=HOUR + 120)
    await roll(store, now=HOUR + max(3_720, later - 60))
    await fold(store, worker, now=HOUR + later)
    [(at, is_hour, counts)] = await window(store, HOUR, HOUR + 3_600, endpoint=id)
    assert (at, is_hour, sum(counts.values())) == (HOUR, True, 3)


async def test_a_dead_workers_old_log_is_no_reason_to_pass_over_older_hours(store):
    """Nobody was there for three days: its minutes and its log are all still to be added up."""
    worker, lane = await an_owned_lane(store)
    id = lane.endpoint_id
    await flush(store, worker, a_cell(HOUR, 1, endpoint=id), a_cell(HOUR + 3_600, 2, endpoint=id))
    await settle(store, worker, await settlements_of(store, lane, 1), minute=HOUR + 3_600)
    now = HOUR + MINUTES_KEPT + 86_400
    await fold(store, worker, now=now)
    await roll(store, now=now)
    parts = await window(store, HOUR, HOUR + 7_200, endpoint=id)
    assert [(at, is_hour, sum(counts.values())) for at, is_hour, counts in parts] == [
        (HOUR, True, 1),
        (HOUR + 3_600, True, 2),
    ]


async def test_minutes_are_kept_for_two_days_and_hours_for_ninety(store):
    worker = await a_worker_in(store)
    await flush(store, worker, a_cell(HOUR, 1))
    await roll(store, now=HOUR + MINUTES_KEPT)
    minute = await window(store, HOUR, HOUR + 60)
    assert minute == [(HOUR, False, {1: 1})]
    await roll(store, now=HOUR + MINUTES_KEPT + 7_200)
    assert await window(store, HOUR, HOUR + 60) == []
    assert await window(store, HOUR, HOUR + 3_600) == [(HOUR, True, {1: 1})]
    await roll(store, now=HOUR + HOURS_KEPT)
    assert len(await window(store, HOUR, HOUR + 3_600)) == 1
    await roll(store, now=HOUR + HOURS_KEPT + 3_600)
    assert await window(store, HOUR, HOUR + 3_600) == []


async def test_hours_are_added_up_in_slices_of_endpoints(store):
    worker = await a_worker_in(store)
    ids = [EVERY_ENDPOINT, *[EndpointId(b"%016d" % n) for n in range(2 * ROLL_CHUNK)]]
    await flush(store, worker, *[a_cell(HOUR, 7, endpoint=id) for id in ids])
    assert await roll(store, now=HOUR + 3_720) == 3
    for id in ids:
        assert await window(store, HOUR, HOUR + 3_600, endpoint=id) == [(HOUR, True, {7: 1})]


async def test_a_task_is_done_once_and_again_when_it_is_due(store):
    worker = await a_worker_in(store)
    await flush(store, worker, a_cell(HOUR, 1))
    named = {"after": None, "math": LATENCY_COUNTS}
    assert await store.roll_latencies(**named, now=NOW, next_at=NOW + 60) is not None
    assert await store.roll_latencies(**named, now=NOW + 59, next_at=NOW + 119) is None
    assert await store.roll_latencies(**named, now=NOW + 60, next_at=NOW + 120) is not None


async def test_only_response_times_are_read_where_nothing_else_is_wanted(store):
    worker = await a_worker_in(store)
    await flush(store, worker, a_cell(HOUR, 1, 3_000))
    for is_only, rest in ((True, 0), (False, 1)):
        [part] = await store.latency_window([ENDPOINT], since=HOUR, until=HOUR + 60, is_response_only=is_only)
        assert len(decode(part.cell.rest)) == rest


# --- days ---


def a_day(endpoint, p95, *, as_of=NOW, attempts=100):
    return LatencyDay(
        endpoint_id=endpoint, as_of=as_of, attempts=attempts, accepted=90, p50=0.1, p95=p95, p99=p95
    )


async def test_days_are_read_as_they_were_written_and_the_newer_one_stays(store):
    day = a_day(ENDPOINT, 1.5)
    await store.write_latency_days([day])
    await store.write_latency_days([a_day(ENDPOINT, 9.0, as_of=NOW - 1)])
    assert await store.latency_days([ENDPOINT, EndpointId(b"x" * 16)]) == [day]
    await store.write_latency_days([a_day(ENDPOINT, None, as_of=NOW + 1, attempts=0)])
    assert await store.latency_days([ENDPOINT]) == []


async def test_the_slowest_come_first_and_page_by_page(store):
    ids = [EndpointId(b"%016d" % n) for n in range(6)]
    times = [3.0, 9.0, 3.0, 0.5, 7.0, None]
    await store.write_latency_days([a_day(id, p95) for id, p95 in zip(ids, times, strict=True)])
    found = []
    after = None
    while page := await store.slowest(after=after, above=2.0, limit=2):
        found += [day.endpoint_id for day in page]
        after = (page[-1].p95, page[-1].endpoint_id)
    assert found == [ids[1], ids[4], ids[2], ids[0]]


async def claimed(store, *, now, after=None, limit=10):
    step = await store.claim_latency_days(after=after, limit=limit, now=now, next_at=now)
    assert step is not None
    return list(step.endpoints)


async def test_a_day_is_reckoned_again_where_there_is_something_new_and_every_hour(store):
    worker = await a_worker_in(store)
    assert await claimed(store, now=NOW) == []
    minute = NOW // 60 * 60
    await flush(store, worker, a_cell(minute, 1))
    assert await claimed(store, now=NOW) == [ENDPOINT]
    await store.write_latency_days([a_day(ENDPOINT, 1.0, as_of=NOW + 300)])
    assert await claimed(store, now=NOW + 300) == []
    await flush(store, worker, a_cell(minute + 300, 1))
    assert await claimed(store, now=NOW + 310) == [ENDPOINT]
    await store.write_latency_days([a_day(ENDPOINT, 1.0, as_of=NOW + 600)])
    assert await claimed(store, now=NOW + 900) == []
    assert await claimed(store, now=NOW + 600 + 3_600) == [ENDPOINT]


async def test_days_are_claimed_in_slices(store):
    worker = await a_worker_in(store)
    ids = [EndpointId(b"%016d" % n) for n in range(5)]
    await flush(store, worker, *[a_cell(NOW // 60 * 60, 1, endpoint=id) for id in ids])
    found, after = [], None
    while True:
        step = await store.claim_latency_days(after=after, limit=2, now=NOW, next_at=NOW + 600)
        found.append(list(step.endpoints))
        after = step.after
        if after is None:
            break
    assert found == [ids[:2], ids[2:4], ids[4:]]
    assert await store.claim_latency_days(after=None, limit=2, now=NOW, next_at=NOW) is None
