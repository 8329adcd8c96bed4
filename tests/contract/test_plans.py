"""Do SQLite's hot queries use their indexes, on a table that is not small?"""

import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from factories import ids
from hookline.ids import delivery_of
from hookline.model import State
from hookline.store.contract import DeliveryFilter
from hookline.store.sqlite import sql
from hookline.store.sqlite.bulk import spread
from hookline.store.sqlite.reading import delivery_list

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
    """The steps of the plan; values do not matter to it."""
    names = {name: None for name in re.findall(r":(\w+)", statement)}
    values = names or [None] * statement.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def searches(steps, table_or_index):
    return [step for step in steps if step.startswith("SEARCH") and f"INDEX {table_or_index} " in step]


def scans(steps):
    """Steps that read a whole stored table or index; lists of values are meant to be read whole."""
    own = r"SCAN (\(subquery-\d+\)|CONSTANT ROW|\d+ CONSTANT ROWS|u|w|r|t|a|p|me|packed|places|asked|asks|known|ready|timed|found)( |$)"
    return [step for step in steps if step.startswith("SCAN") and not re.match(own, step)]


SPREAD = {
    "LOAD": spread(sql.LOAD, width=6, rows=16),
    "SETTLE_DELIVERIES": spread(sql.SETTLE_DELIVERIES, width=11, rows=16),
    "RELEASE": spread(sql.RELEASE, width=3, rows=16),
    "READ_PRIORS": spread(sql.READ_PRIORS, width=2, rows=16),
}

HOT = [
    ("READ_PRIORS", SPREAD["READ_PRIORS"], []),
    ("READ_PRIOR_ENDPOINTS", sql.READ_PRIOR_ENDPOINTS, ["sqlite_autoindex_deliveries_1"]),
    ("ACCEPT_LAST", sql.ACCEPT_LAST, []),
    ("ACCEPT_WAS", sql.ACCEPT_WAS, ["sqlite_autoindex_events_1"]),
    ("TAKE", sql.TAKE, ["lanes_free"]),
    ("TAKE_THESE", sql.TAKE_THESE, []),
    ("LOAD", SPREAD["LOAD"], ["deliveries_ready", "deliveries_timed"]),
    ("SETTLE_DELIVERIES", SPREAD["SETTLE_DELIVERIES"], ["sqlite_autoindex_deliveries_1"]),
    ("RELEASE", SPREAD["RELEASE"], []),
    ("WAKE", sql.WAKE, ["deliveries_ready", "deliveries_timed"]),
    ("BEAT", sql.BEAT, []),
    ("PULSE_CHANGES", sql.PULSE_CHANGES, []),
    ("OWNED", sql.OWNED, ["lanes_owned"]),
    ("FREE", sql.FREE, ["lanes_owned"]),
    ("SWEEP_RANGE", sql.SWEEP_RANGE, []),
    ("SWEEP", sql.SWEEP, ["deliveries_ready", "deliveries_timed"]),
    ("RETIRE", sql.RETIRE, ["lanes_owned"]),
    ("CANCEL_DELETED", sql.CANCEL_DELETED, ["deliveries_ready", "deliveries_timed"]),
    ("READ_DELIVERY", sql.READ_DELIVERY, ["sqlite_autoindex_deliveries_1"]),
    ("READ_ATTEMPTS", sql.READ_ATTEMPTS, []),
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
    (DeliveryFilter(state=State.DEAD), "deliveries_ended"),
    (DeliveryFilter(state=State.CANCELLED), "deliveries_ended"),
    (DeliveryFilter(event_id=bytes(16)), "sqlite_autoindex_deliveries_1"),
    (DeliveryFilter(account="a"), "events_account"),
]


@pytest.mark.parametrize(("filter", "index"), LISTS)
def test_a_list_reads_along_an_index_and_does_not_sort(connection, filter, index):
    statement, _ = delivery_list(filter, after=bytes(16), limit=50)
    steps = plan(connection, statement)
    assert any(f"INDEX {index} " in step and not step.startswith("SCAN") for step in steps), steps
    outer = [step for step in steps if step == "USE TEMP B-TREE FOR ORDER BY"]
    # Only the attempts of one delivery are sorted, for its last one.
    assert len(outer) <= 2, steps


def test_pending_deliveries_are_listed_from_their_own_indexes(connection):
    statement, _ = delivery_list(DeliveryFilter(state=State.PENDING), after=None, limit=50)
    steps = plan(connection, statement)
    assert any("deliveries_ready" in step for step in steps), steps
    assert any("deliveries_timed" in step for step in steps), steps
