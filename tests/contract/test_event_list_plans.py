"""A page of events costs a page, on tables that are not small.

On PostgreSQL the rows are counted that the plan really touched, with statistics of now and with those of the day the
tables were empty. On SQLite the plan must search along the index that has the list's order.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from factories import NOW
from hookline.ids import Ids, delivery_of, first_at
from hookline.store.contract.events import EventFilter
from hookline.store.postgres import events as postgres_events
from hookline.store.postgres.driver import session
from hookline.store.postgres.lists import events as postgres_lists
from hookline.store.sqlite import events as sqlite_events
from hookline.store.sqlite.lists import events as sqlite_lists
from hookline.testing.clock import ManualClock
from postgres_server import PostgresServers, installations
from tests.contract.test_list_plans_postgres import FORGET, connected, walk
from tests.contract.test_plans import plan

EVENTS = 100_000
PAGE = 50
SECONDS = 60  # between two events: the table goes back 70 days

# The oldest hundredth is the account `few`, a tenth of the rest `default`; every event has a key.
FILL = f"""
CREATE TEMP TABLE numbered AS SELECT i, {NOW} + i * {SECONDS} AS at,
    (lpad(to_hex((({NOW} + i * {SECONDS}) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(i::bigint << 20), 12, '0'))::uuid AS id
  FROM generate_series(1, {EVENTS}) i;
INSERT INTO events (id, created_at, account, type, payload, idempotency_key)
  SELECT id, to_timestamp(at), CASE WHEN i <= {EVENTS // 100} THEN 'few' WHEN i % 10 = 0 THEN 'default' ELSE 'most' END,
    'a.b', '{{}}', 'key-' || i FROM numbered;
INSERT INTO idempotency (account, key, event_id, digest)
  SELECT account, idempotency_key, id, '' FROM events;
INSERT INTO deliveries (id, endpoint_id, due_at, queue) SELECT id, id, to_timestamp(at), 'ready' FROM numbered;
INSERT INTO attempts (delivery_id, id, at, duration, replays, number, late, response_truncated, outcome)
  SELECT id, id, to_timestamp(at), 1, 0, 1, false, false, 'accepted' FROM numbered;
"""
STATISTICS = {"now": f"{FILL}; ANALYZE", "while the tables were empty": FORGET}

DAY = 86_400 // SECONDS  # a day's events: an id and its event's creation may be this far apart
END = NOW + EVENTS * SECONDS
LISTS = {
    "all": (EventFilter(), 2 * PAGE),
    "of an account": (EventFilter(account="few"), 2 * PAGE),
    "of a large account": (EventFilter(account="most"), 2 * PAGE),
    "of the default account": (EventFilter(account="default"), 20 * PAGE),
    "of an account and a type": (EventFilter(account="few", type="a.b"), 2 * PAGE),
    "of nobody": (EventFilter(account="nobody"), PAGE),
    "by key": (EventFilter(idempotency_key="key-5"), 10),
    "by key of an account": (EventFilter(account="few", idempotency_key="key-5"), 10),
    "since a moment ago": (EventFilter(since=END - 10 * SECONDS), DAY + 2 * PAGE),
    "in an hour long ago": (EventFilter(since=NOW + 90_000, until=NOW + 93_600), 3 * DAY),
    "of an account in an hour long ago": (
        EventFilter(account="few", since=NOW + 3_600, until=NOW + 7_200),
        2 * DAY,
    ),
}


@pytest.fixture(scope="module", params=[installation.major for installation in installations()])
def costs(request: pytest.FixtureRequest, postgres_servers: PostgresServers) -> dict[Any, int]:
    """Rows read, by when the statistics were taken and by the list's name."""
    found = {}
    with (
        postgres_servers[request.param].fresh_database() as url,
        connected(url, session.LISTS) as lister,
        connected(url, session.GENERAL) as general,
    ):
        for table in ("deliveries", "events", "idempotency", "attempts"):  # only this test takes statistics
            general.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
        for taken, step in STATISTICS.items():
            for part in step.split(";"):
                if part.strip():
                    general.execute(part)
            for name, (filter, _) in LISTS.items():
                statement, values = postgres_lists.event_list(filter, after=None, limit=PAGE)
                found[taken, name] = rows_read(lister, statement, values)
            [[event]] = general.execute("SELECT id FROM events OFFSET 5000 LIMIT 1").fetchall()
            counted = postgres_events.COUNT_BY_STATE.replace("$1", f"'{{{event}}}'")
            found[taken, "counted"] = rows_read(lister, counted, [])
            attempts = postgres_events.LIST_ATTEMPTS.replace("$1", f"'{event}'::uuid")
            attempts = attempts.replace("$2", "NULL").replace("$3", str(PAGE))
            found[taken, "attempts"] = rows_read(general, attempts, [])
    return found


def rows_read(connection: Any, statement: str, values: list[Any]) -> int:
    """How many rows of stored tables were read, including those that a filter dropped."""
    literals = map(literal, values)
    connection.execute(f"PREPARE planned AS {statement}")
    arguments = f"({', '.join(literals)})" if values else ""
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE planned{arguments}"
    [[found]] = connection.execute(explain).fetchall()
    connection.execute("DEALLOCATE planned")
    return round(sum(_rows(node) for node in walk(found[0]["Plan"])))


def literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"'{value.hex()}'"
        case list():
            return f"'{{{','.join(each.hex() for each in value)}}}'"
        case _:
            return f"'{value}'"


def _rows(node: dict[str, Any]) -> float:
    if "Relation Name" not in node and "Index Name" not in node:
        return 0.0
    thrown_away = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    return float((node["Actual Rows"] + thrown_away) * node["Actual Loops"])


@pytest.mark.parametrize("taken", STATISTICS)
@pytest.mark.parametrize("name", LISTS)
def test_a_page_costs_a_page_on_postgres(costs: dict[Any, int], name: str, taken: str) -> None:
    assert costs[taken, name] <= LISTS[name][1]


@pytest.mark.parametrize("taken", STATISTICS)
def test_counts_and_attempts_read_the_event_s_own_rows_on_postgres(costs: dict[Any, int], taken: str) -> None:
    assert costs[taken, "counted"] == 1
    assert costs[taken, "attempts"] <= 3


@pytest.fixture(scope="module")
def crowded(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = shutil.copy(migrated_file, tmp_path_factory.mktemp("crowded") / "hookline.db")
    clock = ManualClock(NOW)
    ids = Ids(clock, Random(0))
    rows = []
    for i in range(EVENTS):
        clock.advance(SECONDS)
        account = "few" if i <= EVENTS // 100 else "most"
        rows.append((ids.event(), account, f"key-{i}", clock.now()))
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO events (id, account, type, payload, idempotency_key, created_at) VALUES (?, ?, 'a', x'00', ?, ?)",
            rows,
        )
        connection.executemany(
            "INSERT INTO idempotency (account, key, event_id, digest) VALUES (?, ?, ?, x'')",
            [(account, key, id) for id, account, key, _ in rows],
        )
        connection.executemany(
            "INSERT INTO deliveries (id, endpoint_id, due_at) VALUES (?, ?, 0)",
            [(delivery_of(id, 0), id) for id, *_ in rows],
        )
        connection.commit()
        yield connection


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def connection(crowded: sqlite3.Connection, request: pytest.FixtureRequest) -> sqlite3.Connection:
    if request.param == "with statistics":
        crowded.execute("ANALYZE")
    return crowded


SQLITE = {
    "all": "SCAN e USING INDEX sqlite_autoindex_events_1",
    "of an account": "SEARCH e USING INDEX events_account (account=?)",
    "of nobody": "SEARCH e USING INDEX events_account (account=?)",
    "by key": "SEARCH i USING PRIMARY KEY (account=? AND key=?)",
    "by key of an account": "SEARCH i USING PRIMARY KEY (account=? AND key=?)",
    "since a moment ago": "SEARCH e USING INDEX sqlite_autoindex_events_1 (id>?)",
    "in an hour long ago": "SEARCH e USING INDEX sqlite_autoindex_events_1 (id>? AND id<?)",
    "of an account in an hour long ago": "SEARCH e USING INDEX events_account (account=? AND id>? AND id<?)",
}


@pytest.mark.parametrize("name", SQLITE)
def test_a_page_reads_along_an_index_on_sqlite(connection: sqlite3.Connection, name: str) -> None:
    statement, _ = sqlite_lists.event_list(LISTS[name][0], after=None, limit=PAGE)
    steps = plan(connection, statement)
    assert SQLITE[name] in steps, steps
    assert name == "all" or not any(step.startswith("SCAN e") for step in steps), steps
    assert name.startswith("by key") or not any("ORDER BY" in step for step in steps), steps


def test_counts_and_attempts_read_the_event_s_own_rows_on_sqlite(connection: sqlite3.Connection) -> None:
    for statement in (sqlite_events.COUNT_BY_STATE, sqlite_events.LIST_ATTEMPTS):
        steps = plan(connection, statement)
        assert not any(step.startswith("SCAN") for step in steps), steps


def test_the_first_id_of_a_moment_is_below_all_made_then_and_above_all_made_before() -> None:
    clock = ManualClock(NOW)
    ids = Ids(clock, Random(0))
    before = ids.event()
    clock.advance(1.0)
    assert before < first_at(NOW + 1.0) <= ids.event()
    assert first_at(-5.0) == bytes(16)
    assert first_at(1e30) > ids.event()
