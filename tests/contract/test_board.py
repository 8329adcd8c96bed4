"""A board reads how all endpoints do, a slice at a time, from stored counts."""

import sqlite3
from contextlib import closing

import pytest

from contract.test_health_reads import write_minutes
from factories import NOW, a_note
from hookline.model import Circuit, CircuitState
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.rules.latency_buckets import FIRST_ANSWER
from hookline.store.contract import EVERY_ENDPOINT
from hookline.store.contract.measuring.board import BoardFigures
from hookline.store.contract.measuring.latency import LatencyDay
from hookline.store.sqlite.store import SqliteStore
from scenes import a_death, a_lane_in, a_worker_in, an_endpoint_in, owned_by, published

pytestmark = pytest.mark.anyio

MINUTE, HOUR = 60.0, 3_600.0
QUARTER = NOW - 15 * MINUTE


async def figures(store, **asked):
    asked = {"after": None, "limit": 100, "hour": NOW - HOUR, "quarter": QUARTER} | asked
    return await store.board_figures(**asked)


def a_day(endpoint, **fields):
    usual = {"as_of": NOW, "attempts": 9, "accepted": 9, "p50": 1.0, "p95": 2.0, "p99": 3.0}
    return LatencyDay(endpoint_id=endpoint, **(usual | fields))


async def measured(store, rows):
    """Write minutes as a worker does: the endpoint, when, how many attempts, and how many of them were accepted."""
    cells = [
        cell_of(id, at, {10: attempts, FIRST_ANSWER + 200: accepted, FIRST_ANSWER + 503: attempts - accepted})
        for id, at, attempts, accepted in rows
    ]
    worker, source = await a_worker_in(store), await store.new_latency_source()
    assert await store.flush_latencies(
        worker, cells, source=source, n=0, math=LATENCY_COUNTS, now=min(cell.at for cell in cells)
    )


async def test_an_endpoint_has_its_fields_and_the_figures_of_every_table(store):
    worker = await a_worker_in(store)
    endpoint = await an_endpoint_in(
        store, account="acme", url="https://a.example", description="Shop", events=("a.b", "c.*")
    )
    lane = await owned_by(store, worker, endpoint.id)
    dead, _ = [await published(store, endpoint.id) for _ in range(2)]
    await store.settle(worker, [a_death(lane, dead)], now=NOW)
    circuit = Circuit(state=CircuitState.OPEN, opened_at=NOW - 9, probe_at=NOW + 9)
    await store.note(worker, [a_note(lane, circuit=circuit)], now=NOW)
    await store.look(now=NOW)
    await store.write_latency_days([a_day(endpoint.id, attempts=12, p95=0.5)])
    write_minutes(
        store,
        [
            (EVERY_ENDPOINT, NOW, 1.0, 900, 900),
            (endpoint.id, NOW - HOUR - MINUTE, 1.0, 100, 100),
            (endpoint.id, NOW - HOUR, 1.0, 8, 6),
            (endpoint.id, QUARTER, 1.0, 4, 3),
            (endpoint.id, NOW, 1.0, 2, 2),
        ],
    )
    assert await figures(store) == [
        BoardFigures(
            endpoint_id=endpoint.id,
            account="acme",
            url="https://a.example",
            description="Shop",
            events=("a.b", "c.*"),
            enabled=True,
            paused=False,
            disabled_reason=None,
            circuit=CircuitState.OPEN,
            opened_at=NOW - 9,
            probe_at=NOW + 9,
            waiting=1,
            dead=1,
            attempts_24h=12,
            p95_24h=0.5,
            attempts_1h=14,
            accepted_1h=11,
            attempts_15m=6,
            accepted_15m=5,
            is_back=True,
        )
    ]


async def test_an_endpoint_that_was_never_sent_to_has_zeros(store):
    endpoint = await an_endpoint_in(store, paused=True, enabled=False, disabled_reason="gone")
    [found] = await figures(store)
    assert (found.enabled, found.paused, found.disabled_reason) == (False, True, "gone")
    assert (found.circuit, found.opened_at, found.probe_at) == (CircuitState.CLOSED, None, None)
    assert found.endpoint_id == endpoint.id
    assert (found.waiting, found.dead, found.attempts_24h, found.p95_24h) == (0, 0, 0, None)
    assert (found.attempts_1h, found.accepted_1h, found.attempts_15m, found.accepted_15m) == (0, 0, 0, 0)
    assert not found.is_back


async def test_only_the_newest_minute_of_the_quarter_says_that_it_is_back(store):
    back, fails, old = [await a_lane_in(store) for _ in range(3)]
    write_minutes(
        store,
        [
            (back, NOW - MINUTE, 1.0, 5, 0),
            (back, NOW, 1.0, 1, 1),
            (fails, NOW - MINUTE, 1.0, 5, 5),
            (fails, NOW, 1.0, 2, 1),
            (old, QUARTER - MINUTE, 1.0, 5, 5),
        ],
    )
    assert {each.endpoint_id: each.is_back for each in await figures(store)} == {
        back: True,
        fails: False,
        old: False,
    }


async def test_an_endpoint_without_a_circuit_breaker_has_a_closed_one(store):
    worker = await a_worker_in(store)
    lane = await owned_by(store, worker, await a_lane_in(store, circuit=None))
    circuit = Circuit(state=CircuitState.OPEN, opened_at=NOW, probe_at=NOW)
    await store.note(worker, [a_note(lane, circuit=circuit)], now=NOW)
    [found] = await figures(store)
    assert (found.circuit, found.opened_at, found.probe_at) == (CircuitState.CLOSED, None, None)


async def test_slices_follow_each_other_by_id_and_an_account_sees_only_its_own(store):
    names = ("acme", "default", "acme", "other", "acme")
    made = [(await a_lane_in(store, account=name), name) for name in names]
    for account in (None, "acme", "nobody"):
        own = sorted(id for id, name in made if account in (None, name))
        found, after = [], None
        while some := await figures(store, after=after, limit=2, account=account):
            assert len(some) <= 2
            found += [each.endpoint_id for each in some]
            after = found[-1]
        assert found == own


async def test_hours_come_from_hours_where_they_were_added_up_and_else_from_minutes(store):
    hour = NOW // HOUR * HOUR
    mine, other = [await a_lane_in(store) for _ in range(2)]
    minutes = [
        (mine, hour - 3 * HOUR, 50, 50),  # before what is asked for
        (mine, hour - 2 * HOUR, 1, 1),
        (mine, hour - HOUR - MINUTE, 2, 1),
        (mine, hour - HOUR, 4, 4),
        (mine, hour, 8, 0),
        (mine, hour + MINUTE, 16, 16),
        (mine, hour + 2 * MINUTE, 99, 99),  # after it
        (other, hour, 7, 7),
    ]
    await measured(store, minutes)
    expected = [(hour - 2 * HOUR, 3, 2), (hour - HOUR, 4, 4), (hour, 24, 16)]

    async def hours(*endpoints):
        found = await store.hourly_attempts(endpoints, since=hour - 2 * HOUR, until=hour + 2 * MINUTE)
        return [(each.endpoint_id, each.at, each.attempts, each.accepted) for each in found]

    assert await hours(mine) == [(mine, *each) for each in expected]
    await store.roll_latencies(after=None, math=LATENCY_COUNTS, now=hour + 130, next_at=hour + 999)
    assert await hours(mine) == [(mine, *each) for each in expected], "the same, now from two hours"
    assert await hours(mine, other) == sorted([*((mine, *each) for each in expected), (other, hour, 7, 7)])
    assert await hours() == []


async def test_a_row_that_cannot_be_read_has_stand_ins_and_does_not_hide_the_others(sqlite_path):
    """On SQLite alone: on PostgreSQL columns have types."""
    store = SqliteStore(str(sqlite_path))
    await store.open()
    broken, whole = [await an_endpoint_in(store) for _ in range(2)]
    with closing(sqlite3.connect(sqlite_path)) as connection, connection:
        connection.execute(
            "UPDATE endpoints SET url = x'ff', description = CAST(x'ff' AS TEXT), events = 'no', enabled = 7 WHERE id = ?",
            (broken.id,),
        )
    first, second = await figures(store)
    await store.close()
    assert (first.url, first.events, first.enabled) == ("", (), True)
    assert (second.endpoint_id, second.url) == (whole.id, whole.url)
