"""The hot statements find their rows by index, whatever the statistics say.

They are planned as the store's sessions plan them (once, for any values), on 100,000 deliveries in 20,000 lanes.
"""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from hookline.store.postgres import retention, sql
from hookline.store.postgres.driver import session
from postgres_server import PostgresServers, installations

LANES = 20_000
DELIVERIES = 100_000

FILL = f"""
INSERT INTO lanes (endpoint_id, wake_at)
  SELECT (left(md5(i::text), 31) || '0')::uuid, CASE WHEN i % 3 = 0 THEN to_timestamp(i) ELSE 'infinity' END
  FROM generate_series(1, {LANES}) i;
INSERT INTO endpoints (id, account, url, events, secret, created_at, updated_at, timeout, max_in_flight, enabled, signing,
    description, headers, metadata)
  SELECT (left(md5(i::text), 31) || '0')::uuid, 'default', 'https://a.example', '{{*}}', '', to_timestamp(i), to_timestamp(i),
    10, 5, true, 'standard', '', '{{}}', '{{}}'
  FROM generate_series(1, {LANES}) i;
INSERT INTO events (id, created_at, account, type, payload)
  SELECT (left(md5(i::text), 27) || '00000')::uuid, to_timestamp(i), 'default', 'a.b', '{{}}'
  FROM generate_series(1, {DELIVERIES}) i;
INSERT INTO deliveries (id, endpoint_id, due_at, queue, state)
  SELECT (left(md5(i::text), 27) || '00000')::uuid, (left(md5((i % {LANES} + 1)::text), 31) || '0')::uuid, to_timestamp(i),
    CASE WHEN i % 5 = 0 THEN 'timed' ELSE 'ready' END, 'delivered'
  FROM generate_series(1, {DELIVERIES}) i;
"""
MAKE_PENDING = "UPDATE deliveries SET state = 'pending' WHERE seq % 2 = 0"

# As ANALYZE leaves a table without rows.
FORGET = """
UPDATE pg_class SET relpages = 0, reltuples = 0 WHERE relnamespace = 'hookline'::regnamespace;
DELETE FROM pg_statistic s USING pg_class c WHERE c.oid = s.starelid AND c.relnamespace = 'hookline'::regnamespace;
"""

# When the statistics were taken, and the step that leads there from the one before.
STATISTICS = {
    "while nothing was pending": f"{FILL}; ANALYZE; {MAKE_PENDING}",
    "now": "ANALYZE",
    "while the tables were empty": FORGET,
}

FENCE = {"workers_pkey"}
PENDING = {"deliveries_ready", "deliveries_timed"}
RESETS = {"changes_reset"}
HOT = {
    "ACCEPT": {"idempotency_pkey", "events_pkey"},
    "READ_PRIORS": {"idempotency_pkey", "events_pkey", "deliveries_pkey"},
    "TAKE": FENCE | RESETS | {"lanes_free", "lanes_pkey"},
    "TAKE_THESE": FENCE | RESETS | {"lanes_pkey", "deliveries_pkey"},
    "LOAD": PENDING | {"events_pkey"},
    "READ_PAYLOAD": {"events_pkey"},
    "SETTLE": FENCE | {"lanes_pkey", "deliveries_pkey", "attempts_pkey", "latency_log_pkey"},
    "SETTLE_AND_ANNOUNCE": FENCE
    | {"lanes_pkey", "deliveries_pkey", "attempts_pkey", "latency_log_pkey", "events_pkey", "endpoints_pkey"},
    "SETTLE_WAS": {"attempts_pkey"},
    "NOTE": FENCE | {"lanes_pkey"},
    "NOTE_AND_ANNOUNCE": FENCE | {"lanes_pkey", "endpoints_pkey"},
    "MARK": FENCE | {"lanes_pkey", "deliveries_pkey"},
    "CONDEMN": FENCE | {"lanes_pkey", "deliveries_pkey"},
    "CONDEMN_AND_ANNOUNCE": FENCE | {"lanes_pkey", "deliveries_pkey", "events_pkey"},
    "RELEASE": FENCE | {"lanes_pkey"},
    "WAKE": PENDING | RESETS | {"lanes_pkey", "deliveries_pkey"},
    "OWNED": RESETS | {"lanes_owned"},
    "FREE": FENCE | {"lanes_owned", "lanes_pkey"},
    "SWEEP": PENDING | RESETS | {"lanes_pkey", "deliveries_pkey"},
    "PULSE_CHANGES": {"changes_pkey"},
    "PULSE_WAKES": {"lanes_free"},
    "PRUNE_LOOK": {"events_pkey", "deliveries_pkey"},
    "PRUNE_DELIVERIES": {"deliveries_pkey"},
    "PRUNE_ATTEMPTS": {"attempts_pkey"},
    "PRUNE_EVENTS": {"events_pkey", "deliveries_pkey"},
    "PRUNE_KEYS": {"idempotency_pkey"},
}


OTHERS = {
    "CANCEL_DELETED": sql.CANCEL_DELETED,
    "LOAD with the state bound": sql.LOAD.replace("d.state = 'pending'", "d.state = $9"),
}

Nodes = list[dict[str, Any]]
Plans = dict[str, dict[str, Nodes]]


def plan(connection: psycopg.Connection[Any], statement: str) -> Nodes:
    """Every node of the statement's generic plan."""
    numbers = [int(number) for number in re.findall(r"\$(\d+)", statement)]
    nulls = f"({', '.join(['NULL'] * max(numbers))})" if numbers else ""
    connection.execute(f"PREPARE planned AS {statement}")
    [[found]] = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE planned{nulls}").fetchall()
    connection.execute("DEALLOCATE planned")
    return list(walk(found[0]["Plan"]))


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)


def indexes(nodes: Nodes) -> set[str]:
    """The indexes that are used, also those that detect conflicts."""
    found = {node["Index Name"] for node in nodes if "Index Name" in node}
    return found.union(*(node.get("Conflict Arbiter Indexes", ()) for node in nodes))


@pytest.fixture(scope="module", params=[installation.major for installation in installations()])
def plans(request: pytest.FixtureRequest, postgres_servers: PostgresServers) -> Iterator[Plans]:
    """By when the statistics were taken and by the statement's name."""
    settings = {"search_path": session.SCHEMA, "jit": "off"} | session.HOT
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    statements = {name: getattr(sql, name, None) or getattr(retention, name) for name in HOT} | OTHERS
    with (
        postgres_servers[request.param].fresh_database() as url,
        psycopg.connect(url, autocommit=True, options=options) as connection,
    ):
        for table in ("lanes", "endpoints", "deliveries", "events"):  # only this test takes statistics
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
        found = {}
        for taken, step in STATISTICS.items():
            for part in step.split(";"):
                if part.strip():
                    connection.execute(part)
            found[taken] = {name: plan(connection, statement) for name, statement in statements.items()}
        yield found


@pytest.mark.parametrize("taken", STATISTICS)
@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_uses_the_indexes_made_for_it_and_reads_no_table_whole(
    plans: Plans, name: str, taken: str
) -> None:
    nodes = plans[taken][name]
    whole = {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}

    assert indexes(nodes) == HOT[name]
    assert whole <= {"change_counter", "outbox_sources"}  # which have a row, and a few


@pytest.mark.parametrize("taken", STATISTICS)
def test_cancelling_the_rows_of_deleted_endpoints_reads_only_those(plans: Plans, taken: str) -> None:
    assert indexes(plans[taken]["CANCEL_DELETED"]) == PENDING | {"lanes_deleted", "deliveries_pkey"}


@pytest.mark.parametrize("taken", STATISTICS)
def test_a_value_that_is_bound_where_it_should_be_a_literal_would_be_noticed(
    plans: Plans, taken: str
) -> None:
    assert not PENDING & indexes(plans[taken]["LOAD with the state bound"])
