"""The status reads which endpoints fail, which are worst, and what is worth a word, from stored counts."""

import msgspec
import pytest

from contract.test_health_reads import write_minutes
from factories import NOW, a_note, an_endpoint
from hookline.model import Circuit, CircuitState
from hookline.store.contract.measuring.latency import LatencyDay
from hookline.store.contract.measuring.status import FailingCounts, StatusCounts
from hookline.store.contract.workers import NO_ENDPOINT
from scenes import a_death, a_lane_in, a_worker_in, owned_by, published

pytestmark = pytest.mark.anyio

MINUTE = 60.0


async def opened(store, worker, **fields):
    """The lane of an endpoint whose circuit is open."""
    owned = await owned_by(store, worker, await a_lane_in(store, **fields))
    await store.note(worker, [a_note(owned, circuit=Circuit(state=CircuitState.OPEN))], now=NOW)
    return owned


async def failing(store, **asked):
    return await store.failing_endpoints(**{"since": NOW, "fewest": 5, "limit": 10, **asked})


async def test_nothing_fails_where_nothing_was_sent(store):
    found = await failing(store)
    assert (found.active, found.failing, list(found.endpoints)) == (0, 0, [])


async def test_an_endpoint_fails_by_its_circuit_or_by_its_last_attempts(store):
    worker = await a_worker_in(store)
    good, bad, few, past = [await a_lane_in(store) for _ in range(4)]
    shut = await opened(store, worker)
    await opened(store, worker, circuit=None)
    write_minutes(
        store,
        [
            (NO_ENDPOINT, NOW, 9.0, 99, 9),
            (good, NOW, 1.0, 8, 4),
            (bad, NOW, 1.0, 4, 2),
            (bad, NOW + MINUTE, 1.0, 1, 0),
            (few, NOW, 1.0, 4, 0),
            (past, NOW - MINUTE, 1.0, 50, 0),
        ],
    )
    found = await failing(store)
    assert (found.active, found.failing) == (4, 2)
    assert {each.endpoint_id: (each.attempts, each.accepted) for each in found.endpoints} == {
        bad: (5, 2),
        shut.endpoint_id: (0, 0),
    }


async def test_who_accepted_and_failed_nothing_for_a_minute_is_back_even_if_both_share_a_minute(store):
    worker = await a_worker_in(store)
    lanes = [await owned_by(store, worker, await a_lane_in(store)) for _ in range(3)]
    since = NOW  # a quarter of an hour ago
    a_minute_ago = since + 840
    for lane, failed_at in zip(lanes, (a_minute_ago - 1, a_minute_ago + 1, a_minute_ago - 1), strict=True):
        await store.note(worker, [a_note(lane, circuit=Circuit(last_failure_at=failed_at))], now=NOW)
    back, fails, accepts_nothing = (lane.endpoint_id for lane in lanes)
    write_minutes(store, [(back, NOW, 1.0, 9, 3), (fails, NOW, 1.0, 9, 3), (accepts_nothing, NOW, 1.0, 9, 0)])
    found = await failing(store)
    assert {each.endpoint_id for each in found.endpoints} == {fails, accepts_nothing}
    figures = await store.board_figures(after=None, limit=10, hour=NOW, quarter=since)
    assert {each.endpoint_id for each in figures if each.is_back} == {back}


async def test_an_endpoint_that_accepts_again_or_is_paused_does_not_fail(store):
    worker = await a_worker_in(store)
    back, still = await a_lane_in(store), await a_lane_in(store)
    paused = await a_lane_in(store, paused=True)
    shut = await opened(store, worker)
    [before] = await store.endpoints_by_id([shut.endpoint_id])
    after = msgspec.structs.replace(before, paused=True, updated_at=before.updated_at + 1)
    await store.update_endpoint(after, was=before.updated_at, now=NOW)
    write_minutes(
        store,
        [
            *((each, NOW, 1.0, 50, 0) for each in (back, still, paused)),
            (back, NOW + MINUTE, 1.0, 3, 3),
            (still, NOW + MINUTE, 1.0, 3, 2),
        ],
    )
    found = await failing(store)
    assert [each.endpoint_id for each in found.endpoints] == [still]
    assert (found.active, found.failing) == (2, 1)


async def test_it_fails_since_the_first_attempt_not_accepted_after_the_last_one_that_was(store):
    stopped, never, mixed = [await a_lane_in(store) for _ in range(3)]
    write_minutes(
        store,
        [
            (stopped, NOW - 9 * MINUTE, 1.0, 2, 0),
            (stopped, NOW - 5 * MINUTE, 1.0, 2, 2),
            (stopped, NOW - 3 * MINUTE, 1.0, 2, 0),
            (stopped, NOW, 1.0, 6, 0),
            (never, NOW - 7 * MINUTE, 1.0, 1, 0),
            (never, NOW, 1.0, 6, 0),
            (mixed, NOW - 7 * MINUTE, 1.0, 1, 0),
            (mixed, NOW, 1.0, 6, 1),
        ],
    )
    found = {each.endpoint_id: each.since for each in (await failing(store)).endpoints}
    assert found == {stopped: NOW - 3 * MINUTE, never: NOW - 7 * MINUTE, mixed: NOW}


async def test_a_disabled_endpoint_does_not_fail(store):
    worker = await a_worker_in(store)
    lane = await opened(store, worker)
    assert (await failing(store)).failing == 1
    [endpoint] = await store.endpoints_by_id([lane.endpoint_id])
    disabled = msgspec.structs.replace(endpoint, enabled=False, updated_at=NOW + 1)
    assert await store.update_endpoint(disabled, was=endpoint.updated_at, now=NOW)
    assert (await failing(store)).failing == 0


async def test_the_worst_come_first_and_all_are_counted(store):
    worker = await a_worker_in(store)
    lanes = [await opened(store, worker, account=name) for name in ("acme", "acme", "default")]
    mine, worst, other = [lane.endpoint_id for lane in lanes]
    for lane, number in ((mine, 1), (worst, 2), (other, 3)):
        for _ in range(number):
            await published(store, lane)
    dead = await published(store, worst)
    await store.settle(worker, [a_death(lanes[1], dead)], now=NOW)
    await store.look(now=NOW)
    found = await failing(store, limit=2)
    assert (found.active, found.failing) == (3, 3)
    assert [each.endpoint_id for each in found.endpoints] == [min(worst, other), max(worst, other)]
    of_acme = await failing(store, account="acme")
    assert (of_acme.active, of_acme.failing) == (2, 2)
    assert of_acme.endpoints[0] == FailingCounts(
        endpoint_id=worst, attempts=0, accepted=0, since=None, waiting=2, dead=1
    )
    assert [each.endpoint_id for each in await store.worst_endpoints(limit=2)] == [worst, other]
    assert [each.endpoint_id for each in await store.worst_endpoints(limit=9, account="acme")] == [
        worst,
        mine,
    ]
    [first] = await store.worst_endpoints(limit=1)
    assert (first.dead, first.pending) == (1, 2)


async def test_slow_and_disabled_endpoints_are_counted_and_whether_there_was_an_event(store):
    async def counts(account=None):
        return await store.status_counts(slow_above=2.0, slow_attempts=20, account=account)

    assert await counts() == StatusCounts(slow=0, disabled=0, has_events=False)
    lanes = [await a_lane_in(store, account=name) for name in ("acme", "acme", "acme", "default")]
    await a_lane_in(store, account="acme", enabled=False)
    day = LatencyDay(endpoint_id=lanes[0], as_of=NOW, attempts=20, accepted=20, p50=1.0, p95=2.1, p99=3.0)
    await store.write_latency_days(
        [
            day,
            msgspec.structs.replace(day, endpoint_id=lanes[1], p95=2.0),
            msgspec.structs.replace(day, endpoint_id=lanes[2], attempts=19),
            msgspec.structs.replace(day, endpoint_id=lanes[3]),
            msgspec.structs.replace(day, endpoint_id=an_endpoint().id),  # deleted since
        ]
    )
    await published(store, lanes[0], account="acme")
    assert await counts() == StatusCounts(slow=2, disabled=1, has_events=True)
    assert await counts("acme") == StatusCounts(slow=1, disabled=1, has_events=True)
    assert await counts("nobody") == StatusCounts(slow=0, disabled=0, has_events=False)
