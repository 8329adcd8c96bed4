"""What a dashboard asks again and again is found along indexes, on tables that are not small."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from factories import NOW, ids
from hookline.ids import first_at
from hookline.store.postgres.driver import session
from hookline.store.postgres.measuring import board as postgres_board
from hookline.store.postgres.measuring import flow as postgres_flow
from hookline.store.sqlite.measuring import board as sqlite_board
from hookline.store.sqlite.measuring import flow as sqlite_flow
from postgres_server import PostgresServers, installations
from tests.contract.test_event_list_plans import EVENTS as ALL_EVENTS
from tests.contract.test_event_list_plans import FILL, SECONDS, rows_read
from tests.contract.test_list_plans_postgres import FORGET, connected
from tests.contract.test_plans import plan

EVENTS, ENDPOINTS, MINUTES = 20_000, 500, 60

# Endpoint 1 of 500 is of the account `few`; each has 60 minutes and as many hours.
MORE = f"""
CREATE TEMP TABLE numbers AS
  SELECT i, ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid AS id FROM generate_series(1, {ENDPOINTS}) i;
INSERT INTO endpoints (id, account, url, events, secret, created_at, updated_at, timeout, max_in_flight, enabled, signing,
    description, headers, metadata)
  SELECT id, CASE WHEN i = 1 THEN 'few' ELSE 'most' END, 'https://a.example', '{{*}}', '', to_timestamp(i), to_timestamp(i),
    10, 5, true, 'standard', '', '{{}}', '{{}}' FROM numbers;
INSERT INTO lanes (endpoint_id) SELECT id FROM numbers;
INSERT INTO latency_minutes SELECT n.id, to_timestamp({NOW} + 60 * m), 1, 1, 1, 1, '', ''
  FROM numbers n CROSS JOIN generate_series(1, {MINUTES}) m;
INSERT INTO latency_hours SELECT n.id, to_timestamp({NOW} - 3600 * m), 1, 1, 1, '', ''
  FROM numbers n CROSS JOIN generate_series(1, {MINUTES}) m;
"""
TABLES = (
    "events",
    "endpoints",
    "lanes",
    "latency_minutes",
    "latency_hours",
    "latency_days",
    "endpoint_counts",
)
STATISTICS = {"now": f"{FILL}; {MORE}; ANALYZE", "while the tables were empty": FORGET}

END = NOW + ALL_EVENTS * SECONDS
LAST_HUNDRED = (first_at(END - 100 * SECONDS), first_at(END + 1))
ONE = bytes.fromhex("00000000000070008000000000000001")
# The statement, its values, and how many rows of stored tables it may read.
ASKED: dict[str, tuple[str, list[Any], int]] = {
    "events": (postgres_flow.COUNT_EVENTS, [*LAST_HUNDRED, 20_001, None], 110),
    "events, too many": (postgres_flow.COUNT_EVENTS, [first_at(NOW), LAST_HUNDRED[1], 51, None], 60),
    "events of the default account": (postgres_flow.COUNT_EVENTS, [*LAST_HUNDRED, 20_001, "default"], 110),
    "events of an account": (postgres_flow.COUNT_EVENTS_OF_ACCOUNT, [*LAST_HUNDRED, 20_001, "most"], 110),
    "events of a silent account": (postgres_flow.COUNT_EVENTS_OF_ACCOUNT, [*LAST_HUNDRED, 20_001, "few"], 1),
    "minutes": (postgres_flow.MINUTES, [NOW, NOW + 3_600, bytes(16)], 0),
    "minutes of an account": (postgres_flow.MINUTES_OF_ACCOUNT, [NOW, NOW + 3_660, "few"], 1 + MINUTES),
    "busiest": (postgres_flow.BUSIEST, ["few", 10], 1),
    # Each with its lane, its minutes and the newest of them.
    "board": (postgres_board.BOARD_OF_ALL, [bytes(16), 50, NOW, NOW], 50 * (3 + MINUTES)),
    "board of an account": (postgres_board.BOARD_OF_ACCOUNT, [bytes(16), 50, NOW, NOW, "few"], 3 + MINUTES),
    # Its hours, the last of them again, and the minutes.
    "hours of endpoints": (
        postgres_board.HOURLY,
        [[ONE], NOW - 86_400, NOW + 3_660, NOW + 3_600],
        2 * MINUTES + 1,
    ),
}


@pytest.fixture(scope="module", params=[installation.major for installation in installations()])
def costs(request: pytest.FixtureRequest, postgres_servers: PostgresServers) -> dict[Any, int]:
    """Rows read, by when the statistics were taken and by what was asked."""
    found = {}
    with (
        postgres_servers[request.param].fresh_database() as url,
        connected(url, session.LISTS) as connection,
    ):
        for table in TABLES:  # only this test takes statistics
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
        for taken, step in STATISTICS.items():
            for part in step.split(";"):
                if part.strip():
                    connection.execute(part)
            for name, (statement, values, _) in ASKED.items():
                found[taken, name] = rows_read(connection, statement, values)
    return found


@pytest.mark.parametrize("taken", STATISTICS)
@pytest.mark.parametrize("name", ASKED)
def test_it_reads_the_rows_that_it_counts_on_postgres(costs: dict[Any, int], name: str, taken: str) -> None:
    assert costs[taken, name] <= ASKED[name][2]


@pytest.fixture(scope="module")
def crowded(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = shutil.copy(migrated_file, tmp_path_factory.mktemp("crowded") / "hookline.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO events (id, account, type, payload, created_at) VALUES (?, ?, 't', x'00', 1.0)",
            [(ids.event(), "few" if n % 100 == 0 else "most") for n in range(EVENTS)],
        )
        connection.executemany(
            "INSERT INTO latency_minutes VALUES (?, ?, 1, 1.0, 1, 1, x'', x'')",
            [(ids.endpoint(), NOW) for _ in range(5_000)],
        )
        connection.commit()
        yield connection


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def connection(crowded: sqlite3.Connection, request: pytest.FixtureRequest) -> sqlite3.Connection:
    if request.param == "with statistics":
        crowded.execute("ANALYZE")
    return crowded


MINUTES_FOUND = r"SEARCH m USING PRIMARY KEY \(endpoint_id=\? AND at>\?( AND at<\?)?\)"
SQLITE = {
    "events": (
        sqlite_flow.COUNT_EVENTS,
        [r"SEARCH e USING COVERING INDEX sqlite_autoindex_events_1 \(id>\? AND id<\?\)"],
    ),
    "events of an account": (
        sqlite_flow.COUNT_EVENTS_OF_ACCOUNT,
        [r"SEARCH e USING COVERING INDEX events_account \(account=\? AND id>\? AND id<\?\)"],
    ),
    "minutes": (sqlite_flow.MINUTES, [MINUTES_FOUND]),
    "minutes of an account": (
        sqlite_flow.MINUTES_OF_ACCOUNT,
        [r"SEARCH e USING (COVERING )?INDEX endpoints_account \(account=\?\)", MINUTES_FOUND],
    ),
    "busiest": (
        sqlite_flow.BUSIEST,
        [
            r"SEARCH e USING (COVERING )?INDEX endpoints_account \(account=\?\)",
            r"SEARCH d USING PRIMARY KEY .*",
        ],
    ),
    "board": (
        sqlite_board.BOARD_OF_ALL,
        [
            r"SEARCH endpoints USING PRIMARY KEY \(id>\?\)",
            MINUTES_FOUND,
            r"SEARCH [lcd] USING PRIMARY KEY \(endpoint_id=\?\).*",
            r"SEARCH t USING AUTOMATIC .*INDEX \(id=\?\).*",
        ],
    ),
    "board of an account": (
        sqlite_board.BOARD_OF_ACCOUNT,
        [r"SEARCH endpoints USING INDEX endpoints_account \(account=\? AND id>\?\)", MINUTES_FOUND],
    ),
    "hours of an endpoint": (
        sqlite_board.HOURLY,
        [
            r"SEARCH latency_hours USING INDEX \S+ \(endpoint_id=\? AND at>\? AND at<\?\)",
            r"SEARCH latency_minutes USING PRIMARY KEY \(endpoint_id=\? AND at>\? AND at<\?\)",
        ],
    ),
}


@pytest.mark.parametrize("name", SQLITE)
def test_it_searches_along_its_indexes_on_sqlite(connection: sqlite3.Connection, name: str) -> None:
    statement, wanted = SQLITE[name]
    steps = plan(connection, statement)
    for each in wanted:
        assert any(re.fullmatch(each, step) for step in steps), (each, steps)
    stored = [
        step for step in steps if step.startswith("SCAN") and not re.match(r"SCAN (p|t|looked|\()", step)
    ]
    assert stored == [], steps
