"""SQLite's hot queries use their indexes, on a table that is not small."""

import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from factories import ids
from hookline.ids import delivery_of
from hookline.model import Reason, State
from hookline.store.contract import DeliveryFilter
from hookline.store.sqlite import retention, sql
from hookline.store.sqlite.driver.bulk import spread
from hookline.store.sqlite.lists.deliveries import (
    dead_ahead,
    dead_count,
    dead_to_pick,
    delivery_list,
    look_ahead,
)
from hookline.store.sqlite.measuring.deaths import death_counts

ROWS = 120_000
LANES = 500


@pytest.fixture(scope="module")
def crowded(migrated_file, tmp_path_factory):
    """A file with many deliveries: of five, one is ready, one timed, one dead and two are delivered."""
    path = shutil.copy(migrated_file, tmp_path_factory.mktemp("crowded") / "hookline.db")
    with closing(sqlite3.connect(path)) as connection:
        lanes = [ids.endpoint() for _ in range(LANES)]
        events = [ids.event() for _ in range(ROWS)]
        connection.executemany("INSERT INTO lanes (endpoint_id) VALUES (?)", [(lane,) for lane in lanes])
        connection.executemany(
            "INSERT INTO events (id, account, type, payload, created_at) VALUES (?, 'a', 't', x'00', 1.0)",
            [(event,) for event in events],
        )
        states = [
            ("pending", "ready"),
            ("pending", "timed"),
            ("dead", "ready"),
            ("delivered", "ready"),
            ("delivered", "timed"),
        ]
        connection.executemany(
            "INSERT INTO deliveries (id, endpoint_id, due_at, state, queue) VALUES (?, ?, ?, ?, ?)",
            [
                (delivery_of(event, 0), lanes[n % LANES], float(n), *states[n % 5])
                for n, event in enumerate(events)
            ],
        )
        connection.commit()
        yield connection


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def connection(crowded, request):
    if request.param == "with statistics":
        crowded.execute("ANALYZE")
    return crowded


def plan(connection, statement):
    """The steps of the plan; the values do not matter to it."""
    names = {name: None for name in re.findall(r":(\w+)", statement)}
    values = names or [None] * statement.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def searches(steps, table_or_index):
    return [step for step in steps if step.startswith("SEARCH") and f"INDEX {table_or_index} " in step]


def scans(steps):
    """Steps that read a whole stored table or index; lists of values are meant to be read whole."""
    own = r"SCAN (\(subquery-\d+\)|CONSTANT ROW|\d+ CONSTANT ROWS|u|w|r|t|a|p|me|packed|places|asked|asks|known|ready|timed|found|page|looked)( |$)"
    return [step for step in steps if step.startswith("SCAN") and not re.match(own, step)]


SPREAD = {
    "LOAD": spread(sql.LOAD, width=6, rows=16),
    "SETTLE_DELIVERIES": spread(sql.SETTLE_DELIVERIES, width=11, rows=16),
    "NOTE": spread(sql.NOTE, width=15, rows=16),
    "MARK": spread(sql.MARK, width=5, rows=16),
    "CONDEMN": spread(sql.CONDEMN, width=5, rows=16),
    "SUSPECTS_PENDING": spread(sql.SUSPECTS_PENDING, width=5, rows=16),
    "ANNOUNCE_DEATHS": spread(sql.ANNOUNCE_DEATHS, width=3, rows=16),
    "ANNOUNCE_CIRCUITS": spread(sql.ANNOUNCE_CIRCUITS, width=5, rows=16),
    "RELEASE": spread(sql.RELEASE, width=6, rows=16),
    "READ_PRIORS": spread(sql.READ_PRIORS, width=2, rows=16),
}

HOT = [
    ("READ_PRIORS", SPREAD["READ_PRIORS"], []),
    ("READ_PRIOR_ENDPOINTS", sql.READ_PRIOR_ENDPOINTS, ["sqlite_autoindex_deliveries_1"]),
    ("ACCEPT_LAST", sql.ACCEPT_LAST, []),
    ("ACCEPT_WAS", sql.ACCEPT_WAS, ["sqlite_autoindex_events_1"]),
    ("TAKE", sql.TAKE, ["lanes_free", "changes_reset"]),
    ("TAKE_THESE", sql.TAKE_THESE, ["changes_reset"]),
    ("COUNT_COPIES", sql.COUNT_COPIES, ["sqlite_autoindex_deliveries_1"]),
    ("LOAD", SPREAD["LOAD"], ["deliveries_ready", "deliveries_timed"]),
    ("SETTLE_DELIVERIES", SPREAD["SETTLE_DELIVERIES"], ["sqlite_autoindex_deliveries_1"]),
    ("NOTE", SPREAD["NOTE"], []),
    ("MARK", SPREAD["MARK"], ["sqlite_autoindex_deliveries_1"]),
    ("CONDEMN", SPREAD["CONDEMN"], ["sqlite_autoindex_deliveries_1"]),
    ("SUSPECTS_PENDING", SPREAD["SUSPECTS_PENDING"], ["sqlite_autoindex_deliveries_1"]),
    ("ANNOUNCE_DEATHS", SPREAD["ANNOUNCE_DEATHS"], ["sqlite_autoindex_events_1"]),
    ("ANNOUNCE_CIRCUITS", SPREAD["ANNOUNCE_CIRCUITS"], []),
    ("RELEASE", SPREAD["RELEASE"], []),
    ("WAKE", sql.WAKE, ["deliveries_ready", "deliveries_timed", "changes_reset"]),
    ("BEAT", sql.BEAT, []),
    ("PULSE_CHANGES", sql.PULSE_CHANGES, []),
    ("PULSE_WAKES", sql.PULSE_WAKES, ["lanes_free"]),
    ("OWNED", sql.OWNED, ["lanes_owned"]),
    ("FREE", sql.FREE, ["lanes_owned"]),
    ("SWEEP_RANGE", sql.SWEEP_RANGE, []),
    ("SWEEP", sql.SWEEP, ["deliveries_ready", "deliveries_timed"]),
    ("RETIRE", sql.RETIRE, ["lanes_owned"]),
    ("CANCEL_DELETED", sql.CANCEL_DELETED, ["deliveries_ready", "deliveries_timed"]),
    ("REDRIVE_EVENT", sql.REDRIVE_EVENT, ["sqlite_autoindex_deliveries_1"]),
    ("REDRIVE_THESE", sql.REDRIVE_THESE, ["sqlite_autoindex_deliveries_1"]),
    ("DISCARD_THESE", sql.DISCARD_THESE, ["sqlite_autoindex_deliveries_1"]),
    ("READ_LANES", sql.READ_LANES, []),
    ("LIST_JOBS", sql.LIST_JOBS, ["jobs_kind"]),
    ("READ_DELIVERY", sql.READ_DELIVERY, ["sqlite_autoindex_deliveries_1"]),
    ("READ_ATTEMPTS", sql.READ_ATTEMPTS, []),
    ("PRUNE_LOOK", retention.PRUNE_LOOK, ["sqlite_autoindex_events_1", "sqlite_autoindex_deliveries_1"]),
    ("PRUNE_DELIVERIES", retention.PRUNE_DELIVERIES, ["sqlite_autoindex_deliveries_1"]),
    ("PRUNE_ATTEMPTS", retention.PRUNE_ATTEMPTS, []),
    ("PRUNE_EVENTS", retention.PRUNE_EVENTS, ["sqlite_autoindex_events_1", "sqlite_autoindex_deliveries_1"]),
    ("PRUNE_KEY", retention.PRUNE_KEY, []),
]


@pytest.mark.parametrize(("statement", "indexes"), [case[1:] for case in HOT], ids=[case[0] for case in HOT])
def test_a_hot_statement_searches_and_never_scans(connection, statement, indexes):
    steps = plan(connection, statement)
    allowed = ["SCAN l USING INDEX lanes_deleted"] if statement is sql.CANCEL_DELETED else []
    found = [step for step in scans(steps) if not any(step.startswith(start) for start in allowed)]
    assert found == [], steps
    for index in indexes:
        assert searches(steps, index), steps


LISTS = [
    (DeliveryFilter(endpoint_id=bytes(16)), "deliveries_endpoint"),
    (DeliveryFilter(endpoint_id=bytes(16), state=State.DEAD), "deliveries_dead"),
    (DeliveryFilter(endpoint_id=bytes(16), state=State.DELIVERED), "deliveries_endpoint"),
    (DeliveryFilter(endpoint_id=bytes(16), state=State.CANCELLED), "deliveries_cancelled"),
    (DeliveryFilter(is_replayed=True), "deliveries_replayed"),
    (DeliveryFilter(is_replayed=True, endpoint_id=bytes(16)), "deliveries_replayed"),
    (DeliveryFilter(state=State.DEAD, account="a", reason=Reason.GONE, died_since=1.0), "deliveries_ended"),
    (DeliveryFilter(state=State.DEAD), "deliveries_ended"),
    (DeliveryFilter(state=State.CANCELLED), "deliveries_ended"),
    (DeliveryFilter(event_id=bytes(16)), "sqlite_autoindex_deliveries_1"),
    (DeliveryFilter(account="a"), "events_account"),
]


@pytest.mark.parametrize(("filter", "index"), LISTS)
def test_a_list_reads_along_an_index_and_sorts_nothing_but_the_page(connection, filter, index):
    statement, _ = delivery_list(filter, after=bytes(16), limit=50)
    steps = plan(connection, statement)
    assert any(f"INDEX {index} " in step and not step.startswith("SCAN") for step in steps), steps
    sorts = [step for step in steps if step == "USE TEMP B-TREE FOR ORDER BY"]
    # The page, and the attempts of each delivery on it for its last one, twice.
    assert len(sorts) <= 3, steps


def test_what_is_pending_is_walked_by_id_where_it_is_much(connection):
    for filter, index in (
        (DeliveryFilter(state=State.PENDING), "sqlite_autoindex_deliveries_1"),
        (DeliveryFilter(state=State.PENDING, endpoint_id=bytes(16)), "deliveries_endpoint"),
    ):
        for statement, _ in (
            delivery_list(filter, after=bytes(16), limit=50),
            look_ahead(filter, after=bytes(16)),
        ):
            assert searches(plan(connection, statement), index)


DEAD = [
    (DeliveryFilter(), "deliveries_ended"),
    (DeliveryFilter(account="a", event_type="t"), "deliveries_ended"),
    (DeliveryFilter(endpoint_id=bytes(16)), "deliveries_dead"),
    (DeliveryFilter(event_id=bytes(16)), "deliveries_ended"),
]


@pytest.mark.parametrize(("filter", "index"), DEAD)
def test_a_job_finds_its_dead_letters_along_an_index(connection, filter, index):
    for statement, _ in (
        dead_count(filter, before=1.0),
        dead_ahead(filter, after=bytes(16), limit=50),
        dead_to_pick(filter, before=1.0, after=bytes(16), last=bytes(16), limit=50),
    ):
        steps = plan(connection, statement)
        assert searches(steps, index) or any(f"COVERING INDEX {index}" in step for step in steps), steps
        assert "USE TEMP B-TREE FOR ORDER BY" not in steps, steps


@pytest.mark.parametrize("endpoint", [None, bytes(16)])
@pytest.mark.parametrize("account", [None, "a"])
def test_causes_of_death_are_counted_along_the_index_of_dead_letters(connection, account, endpoint):
    statement, _ = death_counts(since=1.0, account=account, endpoint=endpoint, after=None, limit=50)
    steps = plan(connection, statement)
    assert searches(steps, "deliveries_dead"), steps
    assert [step for step in scans(steps) if step != "SCAN l"] == [], steps


def test_an_endpoints_pending_deliveries_are_gathered_from_their_own_indexes(connection):
    filter = DeliveryFilter(state=State.PENDING, endpoint_id=bytes(16))
    steps = plan(connection, delivery_list(filter, after=None, limit=50, gathers=True)[0])
    assert searches(steps, "deliveries_ready"), steps
    assert searches(steps, "deliveries_timed"), steps
    assert not searches(steps, "deliveries_endpoint"), steps


def test_pending_deliveries_are_listed_from_their_own_indexes(connection):
    statement, _ = delivery_list(DeliveryFilter(state=State.PENDING), after=None, limit=50, gathers=True)
    steps = plan(connection, statement)
    assert any("deliveries_ready" in step for step in steps), steps
    assert any("deliveries_timed" in step for step in steps), steps
