"""A database from before circuits, limits and jobs keeps its data."""

import pytest

from factories import NOW, a_job
from hookline.model import CLOSED, LONG_AGO, CircuitPolicy, Ordering, State
from hookline.store.contract import DeliveryFilter, LaneRow
from hookline.store.migrations import read_migrations
from hookline.store.postgres import sql as postgres_sql
from hookline.store.sqlite import sql as sqlite_sql
from hookline.store.sqlite.migrations import schema

pytestmark = pytest.mark.anyio

ENDPOINT, WORKER, EVENT = bytes([1] * 16), bytes([2] * 16), bytes([3] * 13 + [0] * 3)
PENDING, DEAD = EVENT, bytes([3] * 13 + [0, 0, 1])

# As the first version's statements left them; `{…}` is written by each dialect in its own way.
ROWS = """
INSERT INTO endpoints (id, account, url, events, secret, signing, description, enabled, headers, metadata,
                       timeout, max_in_flight, created_at, updated_at)
  VALUES ({endpoint}, 'acme', 'https://a.example', {events}, 'whsec_x', 'standard', 'd', {yes}, '{{}}', '{{}}', 10, 5, {now}, {now});
INSERT INTO workers (id, kind, host, pid, version, started_at, seen_at) VALUES ({worker}, 'serve', 'h', 1, '0', {now}, {now});
INSERT INTO lanes (endpoint_id, owner, epoch, suspect, tokens, tokens_at) VALUES ({endpoint}, {worker}, 7, {yes}, 0, {now});
INSERT INTO events (id, account, type, payload, created_at) VALUES ({event}, 'acme', 't', {payload}, {now});
INSERT INTO deliveries (id, endpoint_id, due_at, queue) VALUES ({pending}, {endpoint}, {now}, 'ready');
INSERT INTO deliveries (id, endpoint_id, due_at, queue, state, attempts, done_at, reason)
  VALUES ({dead}, {endpoint}, {now}, 'ready', 'dead', 1, {now}, 'rejected');
INSERT INTO changes (n, endpoint_id, kind, at) VALUES (1, {endpoint}, 'endpoint', {now});
UPDATE change_counter SET n = 1, catalogue = 1;
"""


def sqlite_rows():
    blobs = {"endpoint": ENDPOINT, "worker": WORKER, "event": EVENT, "pending": PENDING, "dead": DEAD}
    values = {name: f"x'{value.hex()}'" for name, value in blobs.items()}
    return ROWS.format(**values, events="'[\"*\"]'", payload="x'7b7d'", yes="1", now=repr(NOW))


def postgres_rows():
    uuids = {"endpoint": ENDPOINT, "worker": WORKER, "event": EVENT, "pending": PENDING, "dead": DEAD}
    values = {name: f"'{value.hex()}'::uuid" for name, value in uuids.items()}
    return ROWS.format(
        **values, events="'{*}'", payload="'{}'::bytea", yes="true", now=f"to_timestamp({NOW!r})"
    )


@pytest.fixture
async def old_store(bare):
    """A database with only the first migration, and rows in it."""
    name = "sqlite" if "sqlite" in bare.code else "postgres"
    [first, *_] = read_migrations(f"hookline.store.{name}.migrations")
    record = "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (1, '{}', '{}', {})"
    if name == "sqlite":
        bare.execute(sqlite_sql.MIGRATIONS_CREATE)
        statements = [*schema._statements(first.sql), record.format(first.name, first.checksum, "0")]
        statements += sqlite_rows().split(";\n")
    else:
        bare.execute("CREATE SCHEMA hookline")
        bare.execute(postgres_sql.MIGRATIONS_CREATE)
        statements = [first.sql, record.format(first.name, first.checksum, "now()"), postgres_rows()]
    for statement in statements:
        if statement.strip():
            bare.execute(statement)
    store = bare.new_store()
    applied = await store.migrate()
    assert applied[0].startswith("0002_")
    await store.open()
    yield store
    await store.close()


async def test_endpoints_behave_as_they_did(old_store):
    [endpoint] = (await old_store.catalogue()).endpoints
    assert (endpoint.id, endpoint.account, endpoint.events, endpoint.updated_at) == (
        ENDPOINT,
        "acme",
        ("*",),
        NOW,
    )
    assert (endpoint.max_redirects, endpoint.rate_limit, endpoint.paused) == (0, None, False)
    assert (endpoint.ordering, endpoint.retry) == (Ordering.PARALLEL, None)
    assert endpoint.retry_statuses == ("5xx", 408, 425, 429)
    assert endpoint.circuit == CircuitPolicy()
    assert await old_store.update_endpoint(endpoint, was=NOW, now=NOW)


async def test_lanes_keep_their_owner_and_are_closed(old_store):
    assert await old_store.lanes([ENDPOINT]) == [LaneRow(ENDPOINT, WORKER, LONG_AGO, None, CLOSED)]
    [owned] = await old_store.owned(WORKER)
    assert (owned.epoch, owned.suspect, owned.applied, owned.is_reset) == (7, True, 0, False)


async def test_deliveries_are_listed_and_dead_ones_replayed(old_store):
    found = await old_store.list_deliveries(DeliveryFilter(endpoint_id=ENDPOINT), after=None, limit=9)
    assert [(delivery.id, delivery.state) for delivery in found] == [
        (DEAD, State.DEAD),
        (PENDING, State.PENDING),
    ]
    job = await old_store.create_job(a_job(), now=NOW)
    step = await old_store.advance_job(job.id, limit=9, now=NOW)
    assert (step.job.done, step.lanes) == (1, (ENDPOINT,))
    assert [change.n for change in (await old_store.pulse(seen=0)).changes] == [1, 2]
