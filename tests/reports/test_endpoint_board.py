"""The board shows every endpoint with its state, its figures and its place."""

from random import Random
from typing import Any

import pytest

from contract.test_board import a_day, measured
from factories import NOW, a_note
from hookline import ids
from hookline.crypto.sealing import Sealer
from hookline.errors import Invalid
from hookline.model import Circuit, CircuitState
from hookline.reports.endpoint_board import BoardCounts, EndpointBoard, HourOfAttempts
from hookline.reports.owners import LaneOwners
from hookline.rules.endpoint_state import BoardSort, EndpointState
from hookline.rules.status_sentence import FEWEST_ATTEMPTS
from hookline.testing.clock import ManualClock
from hookline.validate.stored_endpoint import EndpointJudge
from scenes import a_death, a_worker_in, an_endpoint_in, owned_by, published

pytestmark = pytest.mark.anyio

MINUTE, HOUR = 60.0, 3_600.0


class NobodyHere:
    """This process owns no lane."""

    def owns(self, endpoint):
        return False

    def circuit_of(self, endpoint):
        return None

    def in_flight(self, endpoint):
        return 0


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def board(store, clock):
    here: Any = NobodyHere()
    owners = LaneOwners(store, here, clock, heartbeat=2.0)
    return EndpointBoard(store, owners, EndpointJudge(Sealer()), clock)


async def a_scene(store):
    """An endpoint of each kind, of two accounts, by name."""
    worker = await a_worker_in(store)
    made = {}
    for name, account, fields in (
        ("healthy", "acme", {}),
        ("failing", "acme", {"events": ("order.*",)}),
        ("open", "default", {"description": "The Shop"}),
        ("slow", "acme", {}),
        ("paused", "acme", {"paused": True}),
        ("disabled", "acme", {"enabled": False, "disabled_reason": "gone"}),
        ("idle", "default", {"events": ("order.paid",)}),
    ):
        endpoint = await an_endpoint_in(store, account=account, url=f"https://{name}.example", **fields)
        made[name] = endpoint.id
    lane = await owned_by(store, worker, made["open"])
    circuit = Circuit(
        state=CircuitState.OPEN, opened_at=NOW - 60, probe_at=NOW + 60, last_failure_at=NOW - 61
    )
    await store.note(worker, [a_note(lane, circuit=circuit)], now=NOW)
    dead, *_ = [await published(store, made["open"]) for _ in range(3)]
    await store.settle(worker, [a_death(lane, dead)], now=NOW)
    await store.look(now=NOW)
    await store.write_latency_days(
        [a_day(made["slow"], attempts=30, p95=4.5), a_day(made["healthy"], attempts=30, p95=0.2)]
    )
    minute = NOW // MINUTE * MINUTE
    await measured(
        store,
        [
            (made["healthy"], minute - 2 * MINUTE, 10, 9),
            (made["failing"], minute - 2 * MINUTE, 10, 1),
            (made["paused"], minute - 2 * MINUTE, 10, 0),
            (made["slow"], minute - 5 * HOUR, 3, 2),
        ],
    )
    return made


def names(page):
    return [row.url.removeprefix("https://").removesuffix(".example") for row in page.rows]


async def test_the_worst_come_first_and_each_has_its_state(store, board):
    made = await a_scene(store)
    page = await board.page()
    assert names(page) == ["open", "failing", "slow", "disabled", "paused", "healthy", "idle"]
    assert [row.state for row in page.rows] == [
        EndpointState.FAILING,
        EndpointState.FAILING,
        EndpointState.SLOW,
        EndpointState.DISABLED,
        EndpointState.PAUSED,
        EndpointState.HEALTHY,
        EndpointState.IDLE,
    ]
    assert page.counts == BoardCounts(
        all=7, failing=2, slow=1, paused=1, disabled=1, idle=1, healthy=1, dead=1
    )
    assert (page.total, page.matching, page.as_of) == (7, 7, NOW)
    first = page.rows[0]
    assert first.id == ids.show("endpoint", made["open"])
    assert (first.circuit, first.opened_at, first.next_probe_at) == ("open", NOW - 60, NOW + 60)
    assert (first.waiting, first.dead, first.last_failure_at) == (2, 1, NOW - 61)
    assert (page.rows[2].p95_24h, page.rows[3].disabled_reason) == (4.5, "gone")
    assert (page.rows[1].attempts_1h, page.rows[1].accepted_1h) == (10, 1)
    assert not any(row.has_problems for row in page.rows)


async def test_the_same_endpoints_fail_as_in_the_status_sentence(store, board):
    made = await a_scene(store)
    for account in (None, "acme", "default"):
        failing = await store.failing_endpoints(
            since=(NOW - 900) // MINUTE * MINUTE, fewest=FEWEST_ATTEMPTS, limit=9, account=account
        )
        expected = {ids.show("endpoint", each.endpoint_id) for each in failing.endpoints}
        found = await board.page(account, state="failing")
        assert {row.id for row in found.rows} == expected
        assert found.counts.failing == failing.failing == len(expected)
    assert len(made) == 7


async def test_an_account_sees_and_counts_its_own_alone(store, board):
    await a_scene(store)
    page = await board.page("acme")
    assert names(page) == ["failing", "slow", "disabled", "paused", "healthy"]
    assert page.counts == BoardCounts(
        all=5, failing=1, slow=1, paused=1, disabled=1, idle=0, healthy=1, dead=0
    )
    assert (page.total, page.matching) == (5, 5)
    nobody = await board.page("nobody")
    assert (nobody.rows, nobody.total) == ((), 0)


async def test_filters_leave_what_matches_and_every_count_is_what_its_filter_lists(store, board):
    made = await a_scene(store)
    page = await board.page()
    for state in (*EndpointState, "dead"):
        found = await board.page(state=state)
        assert found.matching == len(found.rows) == getattr(page.counts, state)
        assert found.counts == page.counts

    async def asked(**filter):
        return names(await board.page(**filter))

    assert await asked(q="FAIL") == ["failing"]
    assert await asked(q=" the shop ") == ["open"]
    assert await asked(q="acme", state="slow") == ["slow"]
    assert await asked(q=ids.show("endpoint", made["idle"])) == ["idle"]
    assert await asked(q=ids.show("endpoint", made["idle"]).upper()) == ["idle"]
    assert len(await asked(q=ids.show("endpoint", made["idle"])[:9])) >= 1
    assert await asked(q="nothing like this") == []
    assert await asked(event_type="order.paid") == ["open", "failing", "slow", "paused", "healthy", "idle"]
    assert await asked(event_type="order.sent") == ["open", "failing", "slow", "paused", "healthy"]
    assert await asked(event_type="user.new") == ["open", "slow", "paused", "healthy"]


async def test_pages_follow_each_other_in_every_order(store, board):
    await a_scene(store)
    for sort in BoardSort:
        whole = names(await board.page(sort=sort))
        parts = [names(await board.page(sort=sort, offset=offset, limit=3)) for offset in (0, 3, 6, 9)]
        assert [name for part in parts for name in part] == whole
        assert len(whole) == 7
    assert names(await board.page(sort="slowest", limit=2)) == ["slow", "healthy"]
    assert names(await board.page(sort="accepted", limit=3)) == ["paused", "failing", "healthy"]
    assert names(await board.page(sort="url", limit=2)) == ["disabled", "failing"]


@pytest.mark.parametrize("asked", [{"state": "broken"}, {"sort": "best"}])
async def test_an_unknown_state_or_order_is_named(board, asked):
    with pytest.raises(Invalid) as raised:
        await board.page(**asked)
    assert raised.value.pointer == next(iter(asked))


async def test_bars_are_the_attempts_of_each_hour(store, board, clock):
    rng = Random(3)
    endpoint = await an_endpoint_in(store)
    hour = NOW // HOUR * HOUR
    minutes = {at: rng.randrange(1, 9) for at in {hour - rng.randrange(1_600) * MINUTE for _ in range(300)}}
    minutes |= {hour: 5, hour + MINUTE: 2}
    await measured(store, [(endpoint.id, at, number, number // 2) for at, number in minutes.items()])
    expected = [
        HourOfAttempts(
            sum(n for at, n in minutes.items() if at // HOUR * HOUR == hour - back * HOUR),
            sum(n // 2 for at, n in minutes.items() if at // HOUR * HOUR == hour - back * HOUR),
        )
        for back in range(23, -1, -1)
    ]
    page = await board.page()
    assert list(page.rows[0].spark) == expected
    assert page.spark_since == hour - 23 * HOUR


async def test_figures_are_used_for_two_seconds(store, board, clock):
    assert (await board.page()).total == 0
    await an_endpoint_in(store)
    clock.advance(1.9)
    assert (await board.page()).total == 0
    clock.advance(0.2)
    assert (await board.page()).total == 1


async def test_an_endpoint_with_an_invalid_field_is_marked(store, board):
    await an_endpoint_in(store, url="no url", headers={"bad name": "x"})
    [row] = (await board.page()).rows
    assert row.has_problems


async def test_a_thousand_endpoints_are_read_and_sorted_in_slices(store, board):
    for n in range(1_001):
        await an_endpoint_in(store, url=f"https://{9_999 - n}.example")
    page = await board.page(sort="url", offset=498)
    assert (page.total, names(page)) == (1_001, [str(8_999 + 498 + n) for n in range(25)])
