"""Health reads open circuits and the sums of attempts, of one account or of all."""

import sqlite3

import msgspec
import psycopg
import pytest

from factories import NOW, a_note
from hookline.model import Circuit, CircuitState
from hookline.store.contract.measuring.health import AttemptTotals
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.postgres.store import PostgresStore
from scenes import a_lane_in, a_worker_in, owned_by

pytestmark = pytest.mark.anyio


async def test_the_circuits_that_are_not_closed_are_counted(store):
    worker = await a_worker_in(store)
    for account, state, has_circuit in (
        ("acme", CircuitState.OPEN, True),
        ("acme", CircuitState.HALF_OPEN, True),
        ("acme", CircuitState.CLOSED, True),
        ("default", CircuitState.OPEN, True),
        ("default", CircuitState.OPEN, False),
    ):
        lane = await a_lane_in(store, account=account, **({} if has_circuit else {"circuit": None}))
        owned = await owned_by(store, worker, lane)
        await store.note(worker, [a_note(owned, circuit=Circuit(state=state))], now=NOW)
    assert await store.open_circuits() == 3
    assert await store.open_circuits(account="acme") == 2
    assert await store.open_circuits(account="nobody") == 0


def write_minutes(store, rows):
    """Rows of `latency_minutes`, as another part of hookline writes them; the histograms may be left out."""
    rows = [(*row, b"")[:6] for row in rows]
    if isinstance(store, PostgresStore):
        with psycopg.connect(store._url, options="-c search_path=hookline") as connection:
            connection.cursor().executemany(
                "INSERT INTO latency_minutes VALUES (encode(%s, 'hex')::uuid, to_timestamp(%s), 1, %s, %s, %s, '', %s)",
                rows,
            )
        return
    with sqlite3.connect(store._path) as connection:
        connection.executemany("INSERT INTO latency_minutes VALUES (?, ?, 1, ?, ?, ?, x'', ?)", rows)


def in_order(totals):
    """The totals; their minutes come in any order."""
    return msgspec.structs.replace(totals, rest=tuple(sorted(totals.rest)))


async def test_attempts_are_summed_from_a_time_on(store):
    mine, also_mine, other = [await a_lane_in(store, account=name) for name in ("acme", "acme", "default")]
    assert await store.attempt_totals(since=NOW) == AttemptTotals()
    assert await store.attempt_totals(since=NOW, account="acme") == AttemptTotals()
    write_minutes(
        store,
        [
            (NO_ENDPOINT, NOW, 4.0, 8, 7, b"all"),
            (NO_ENDPOINT, NOW + 60, 1.0, 2, 2, b"more"),
            (NO_ENDPOINT, NOW - 60, 100.0, 100, 100, b"old"),
            (mine, NOW, 1.5, 3, 2, b"mine"),
            (also_mine, NOW + 60, 0.5, 1, 1, b"also mine"),
            (also_mine, NOW - 60, 50.0, 50, 50, b"old"),
            (other, NOW, 3.0, 6, 6, b"other"),
        ],
    )
    assert in_order(await store.attempt_totals(since=NOW)) == AttemptTotals(10, 9, 5.0, (b"all", b"more"))
    assert in_order(await store.attempt_totals(since=NOW, account="acme")) == AttemptTotals(
        4, 3, 2.0, (b"also mine", b"mine")
    )
    assert await store.attempt_totals(since=NOW, account="nobody") == AttemptTotals()
