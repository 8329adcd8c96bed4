"""A page of a list costs a page, on PostgreSQL and a table that is not small.

The test counts the rows of `deliveries` that the plan really touched, planned as the store's sessions plan it (for the
values at hand), with one endpoint that has most of the rows.
"""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from hookline.model import Reason, State
from hookline.store.contract import DeliveryFilter
from hookline.store.postgres.driver import session
from hookline.store.postgres.lists.deliveries import (
    dead_ahead,
    dead_count,
    dead_to_pick,
    delivery_list,
    events_ahead,
    look_ahead,
    takes_steps,
)
from hookline.store.postgres.measuring.deaths import death_counts
from postgres_server import PostgresServers, installations

DELIVERIES = 120_000
PAGE = 50
BIG = "00000000-0000-0000-0000-0000000000b1"
SMALL = "00000000-0000-0000-0000-0000000000a1"

# In the order of their ids: of the big endpoint (95 %) the oldest tenth is pending, then come delivered ones with a
# dead and a cancelled one here and there. Rows in rare states are far from the newest, where a scan begins.
FILL = f"""
CREATE TEMP TABLE numbered AS SELECT i, ('01900000-0000-7000-8000-' || lpad(to_hex(i::bigint << 20), 12, '0'))::uuid AS id
  FROM generate_series(1, {DELIVERIES}) i;
INSERT INTO events (id, created_at, account, type, payload)
  SELECT id, to_timestamp(i), CASE WHEN i BETWEEN 20000 AND 20500 THEN 'rare' WHEN i % 10 = 0 THEN 'few' ELSE 'most' END, 'a.b', '{{}}' FROM numbered;
INSERT INTO deliveries (id, endpoint_id, due_at, queue, state, done_at, death_at, death_reason, reason)
  SELECT id, (CASE WHEN i % 20 = 7 THEN '{SMALL}' ELSE '{BIG}' END)::uuid, to_timestamp(i),
    CASE WHEN i % 3 = 0 THEN 'timed' ELSE 'ready' END,
    CASE WHEN i < {DELIVERIES // 10} THEN 'pending' WHEN i > {DELIVERIES // 2} THEN 'delivered'
         WHEN i % 50 = 3 THEN 'dead' WHEN i % 500 = 4 THEN 'cancelled' ELSE 'delivered' END,
    to_timestamp(i), CASE WHEN i < 1000 AND i % 10 = 1 THEN to_timestamp(i) END, 'gone', 'gone'
  FROM numbered;
"""

# As ANALYZE leaves a table without rows.
FORGET = """
UPDATE pg_class SET relpages = 0, reltuples = 0 WHERE relnamespace = 'hookline'::regnamespace;
DELETE FROM pg_statistic s USING pg_class c WHERE c.oid = s.starelid AND c.relnamespace = 'hookline'::regnamespace;
"""
STATISTICS = {"now": f"{FILL}; ANALYZE", "while the tables were empty": FORGET}

BIG_ID = bytes.fromhex(BIG.replace("-", ""))
SMALL_ID = bytes.fromhex(SMALL.replace("-", ""))
PENDING = DELIVERIES // 10

# For each filter, how many rows of `deliveries` a page may touch; the page itself is read twice.
LISTS = {
    "all": (DeliveryFilter(), 3 * PAGE),
    "dead": (DeliveryFilter(state=State.DEAD), 3 * PAGE),
    "dead, by reason": (DeliveryFilter(state=State.DEAD, reason=Reason.GONE), 3 * PAGE),
    "cancelled": (DeliveryFilter(state=State.CANCELLED), 3 * PAGE),
    "delivered": (DeliveryFilter(state=State.DELIVERED), 3 * PAGE),
    "replayed": (DeliveryFilter(is_replayed=True), 3 * PAGE),
    "of an event": (DeliveryFilter(event_id=bytes(16)), 3 * PAGE),
    "an endpoint's": (DeliveryFilter(endpoint_id=SMALL_ID), PENDING // 20 + 6 * PAGE),
    "an endpoint's delivered": (DeliveryFilter(endpoint_id=SMALL_ID, state=State.DELIVERED), 3 * PAGE),
    "the big one's delivered": (DeliveryFilter(endpoint_id=BIG_ID, state=State.DELIVERED), 3 * PAGE),
    "the big one's dead": (DeliveryFilter(endpoint_id=BIG_ID, state=State.DEAD), 3 * PAGE),
    "the big one's cancelled": (DeliveryFilter(endpoint_id=BIG_ID, state=State.CANCELLED), 3 * PAGE),
    # All of the lane's pending rows and no others, sorted: an index for them would be written at every accept.
    "an endpoint's pending": (
        DeliveryFilter(endpoint_id=SMALL_ID, state=State.PENDING),
        PENDING // 20 + 3 * PAGE,
    ),
    "the big one's pending": (DeliveryFilter(endpoint_id=BIG_ID, state=State.PENDING), PENDING + 3 * PAGE),
    "a rare account's": (DeliveryFilter(account="rare"), 3 * PAGE),
    "a rare account's delivered": (DeliveryFilter(account="rare", state=State.DELIVERED), 3 * PAGE),
    "a large account's": (DeliveryFilter(account="most"), 3 * PAGE),
    # One in ten of the scanned rows is the account's.
    "an account's dead": (DeliveryFilter(account="few", state=State.DEAD), 30 * PAGE),
}
# A job's step runs among operators' writes, whose sessions may sort: only with statistics that are not too old is it
# certain to read no more than this.
JOBS = {
    "all dead letters": DeliveryFilter(),
    "an account's": DeliveryFilter(account="most"),
    "an endpoint's": DeliveryFilter(endpoint_id=BIG_ID),
}


# Filters that match nothing. For each, how many rows of `deliveries` a step of STEP rows may touch: they are read once
# to see how far the step goes, twice with their states' own indexes, and once for the list.
STEP = 1_000
NOTHING = {
    "all": (DeliveryFilter(event_type="none"), STEP),
    "delivered": (DeliveryFilter(state=State.DELIVERED, event_type="none"), STEP),
    "pending, where they are many": (DeliveryFilter(state=State.PENDING, event_type="none"), STEP),
    "dead": (DeliveryFilter(state=State.DEAD, event_type="none"), STEP),
    "dead, by reason": (DeliveryFilter(state=State.DEAD, reason=Reason.EXHAUSTED), STEP),
    "cancelled": (DeliveryFilter(state=State.CANCELLED, event_type="none"), STEP),
    "of the default account": (DeliveryFilter(account="default"), STEP),
    "of an account": (DeliveryFilter(account="most", event_type="none"), STEP),
    "of an account, dead": (DeliveryFilter(account="nobody", state=State.DEAD), STEP),
    "the big one's delivered": (
        DeliveryFilter(endpoint_id=BIG_ID, state=State.DELIVERED, event_type="none"),
        STEP,
    ),
    "the big one's": (DeliveryFilter(endpoint_id=BIG_ID, event_type="none"), 4 * STEP + PENDING),
    "the big one's pending": (
        DeliveryFilter(endpoint_id=BIG_ID, state=State.PENDING, event_type="none"),
        STEP + PENDING,
    ),
    "replayed": (DeliveryFilter(is_replayed=True, event_type="none"), STEP),
}

# What is asked about causes of death; none of the dead letters died since then.
DEATHS: dict[str, dict[str, Any]] = {
    "of all": {},
    "of a small account": {"account": "rare"},
    "of the big one": {"endpoint": BIG_ID},
    "of the big one, from the middle": {"after": (BIG_ID, bytes.fromhex("01900000000070008000000753000000"))},
}


def steps_of(connection: psycopg.Connection[Any], filter: DeliveryFilter) -> list[int]:
    """Rows read by each statement of the first step."""
    assert takes_steps(filter)
    costs, floor = [], None
    for statement in (events_ahead(filter, after=None, limit=STEP), None):
        statement = statement or look_ahead(filter, after=None, limit=STEP, floor=floor)
        costs.append(touched(connection, *statement))
        looked_at, lowest = answer(connection, *statement)
        floor = lowest.bytes if looked_at == STEP else floor
    costs.append(touched(connection, *delivery_list(filter, after=None, limit=PAGE, floor=floor)))
    return costs


def answer(connection: psycopg.Connection[Any], statement: str, values: list[Any]) -> Any:
    literals = [f"'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'" for value in values]
    connection.execute(f"PREPARE planned AS {statement}")
    row = connection.execute(f"EXECUTE planned({', '.join(literals)})").fetchone()
    connection.execute("DEALLOCATE planned")
    return row


def touched(connection: psycopg.Connection[Any], statement: str, values: list[Any]) -> int:
    """How many rows of `deliveries` were read, including those that a filter dropped."""
    literals = [f"'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'" for value in values]
    connection.execute(f"PREPARE planned AS {statement}")
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE planned({', '.join(literals)})"
    [[found]] = connection.execute(explain if values else re.sub(r"\(\)$", "", explain)).fetchall()
    connection.execute("DEALLOCATE planned")
    return round(sum(rows_read(node) for node in walk(found[0]["Plan"])))


def rows_read(node: dict[str, Any]) -> float:
    if node.get("Relation Name") != "deliveries" and not node.get("Index Name", "").startswith("deliveries"):
        return 0.0
    thrown_away = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    return float((node["Actual Rows"] + thrown_away) * node["Actual Loops"])


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)


def connected(url: str, settings: dict[str, str]) -> psycopg.Connection[Any]:
    settings = {"search_path": session.SCHEMA, "jit": "off"} | settings
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return psycopg.connect(url, autocommit=True, options=options)


@pytest.fixture(scope="module", params=[installation.major for installation in installations()])
def costs(request: pytest.FixtureRequest, postgres_servers: PostgresServers) -> dict[Any, int]:
    """Rows read, by when the statistics were taken and by the list's name."""
    found = {}
    with (
        postgres_servers[request.param].fresh_database() as url,
        connected(url, session.LISTS) as lister,
        connected(url, session.GENERAL) as general,
    ):
        for table in ("deliveries", "events"):  # only this test takes statistics
            general.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
        for taken, step in STATISTICS.items():
            for part in step.split(";"):
                if part.strip():
                    general.execute(part)
            for name, (filter, _) in LISTS.items():
                found[taken, name] = touched(lister, *delivery_list(filter, after=None, limit=PAGE))
            for name, (filter, _) in NOTHING.items():
                found[taken, "nothing", name] = max(steps_of(lister, filter))
            for name, asked in DEATHS.items():
                statement = death_counts(
                    **({"since": 1e9, "account": None, "endpoint": None, "after": None} | asked), limit=STEP
                )
                found[taken, "deaths", name] = touched(lister, *statement)
            for name, filter in JOBS.items():
                for verb, statement in job_statements(filter).items():
                    found[taken, name, verb] = touched(general, *statement)
    return found


def job_statements(filter: DeliveryFilter) -> dict[str, tuple[str, list[Any]]]:
    last = bytes.fromhex("01900000000070008000ffffffffffff")
    return {
        "count": dead_count(filter, before=1e9),
        "look": dead_ahead(filter, after=None, limit=PAGE),
        "pick": dead_to_pick(filter, before=1e9, after=None, last=last, limit=PAGE),
    }


@pytest.mark.parametrize("taken", STATISTICS)
@pytest.mark.parametrize("name", LISTS)
def test_a_page_costs_a_page(costs: dict[Any, int], name: str, taken: str) -> None:
    assert costs[taken, name] <= LISTS[name][1]


@pytest.mark.parametrize("taken", STATISTICS)
@pytest.mark.parametrize("name", NOTHING)
def test_a_list_that_matches_nothing_looks_at_some_rows_at_a_time(
    costs: dict[Any, int], name: str, taken: str
) -> None:
    assert costs[taken, "nothing", name] <= 2 * NOTHING[name][1]


@pytest.mark.parametrize("taken", STATISTICS)
@pytest.mark.parametrize("name", JOBS)
def test_a_job_reads_dead_letters_alone(costs: dict[Any, int], name: str, taken: str) -> None:
    dead = DELIVERIES // 50
    assert costs[taken, name, "count"] <= dead
    assert costs[taken, name, "look"] <= (PAGE if taken == "now" else dead)
    assert costs[taken, name, "pick"] <= (2 * PAGE if taken == "now" else dead)


@pytest.mark.parametrize("taken", STATISTICS)
@pytest.mark.parametrize("name", DEATHS)
def test_causes_of_death_are_counted_some_dead_letters_at_a_time(
    costs: dict[Any, int], name: str, taken: str
) -> None:
    assert 0 < costs[taken, "deaths", name] <= STEP
