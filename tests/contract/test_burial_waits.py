"""On PostgreSQL a burial waits for the settles under way, and so does who folds: nothing is missing or counted twice."""

import asyncio
from collections import Counter
from uuid import UUID

import asyncpg
import pytest

from factories import NOW
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS
from hookline.pipeline.measuring.latency_meter import MeasuredBatch
from hookline.rules.latency_buckets import decode
from hookline.store.postgres import sql
from hookline.store.postgres.driver import session
from hookline.store.postgres.measuring import latency
from hookline.store.postgres.store import PostgresStore
from scenes import an_owned_lane
from tests.contract.test_latency_log import MINUTE, buckets, settle, settlements_of

pytestmark = pytest.mark.anyio

CEILING = 120.0  # nothing waits this long; a test that does has failed

UNDER_WAY = "SELECT id FROM workers WHERE id = $1 AND buried_at IS NULL FOR KEY SHARE"
LOG = "INSERT INTO latency_log (worker, n, minute, samples) VALUES ($1, 1, to_timestamp($2), $3)"
FOLD = "SELECT id FROM workers WHERE id = $1 AND buried_at IS NOT NULL FOR UPDATE"
UNLOG = "DELETE FROM latency_log WHERE worker = $1"
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


@pytest.fixture
async def store(postgres_url):
    store = PostgresStore(postgres_url)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


async def survivors(store, worker):
    """What those do who find a worker dead."""
    assert await store.bury(worker, beat=0, now=NOW)
    await store.free(worker, now=NOW)
    while await store.fold_latencies(worker, math=LATENCY_COUNTS, now=NOW):
        pass


@pytest.fixture
async def other(postgres_url):
    """Another process's session, in a transaction that goes on until the test ends it."""
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": session.SCHEMA})
    try:
        await connection.execute("BEGIN")
        yield connection
    finally:
        await connection.close()


async def committed_amid(other, work):
    """Begin the work, and commit the other session's transaction when the work waits for it, or is done."""
    task = asyncio.create_task(work)
    async with asyncio.timeout(CEILING):
        while not task.done() and not await other.fetchval(WAITING):  # noqa: ASYNC110 - nothing signals it here
            await asyncio.sleep(0.005)
        await other.execute("COMMIT")
        await task


async def counted(store, endpoint):
    found = Counter()
    for part in await store.latency_window([endpoint], since=MINUTE - 600, until=MINUTE + 600):
        found.update(decode(part.cell.response))
    return found


async def bury_amid_a_settle(store, other):
    """What is counted if a worker is buried while its settle has begun and is not committed."""
    worker, lane = await an_owned_lane(store)
    batch = MeasuredBatch(await settlements_of(store, lane, 3), n=1, minute=MINUTE)
    assert await other.fetchval(UNDER_WAY, UUID(bytes=worker)) is not None
    await other.execute(LOG, UUID(bytes=worker), MINUTE, batch.log.samples)
    await committed_amid(other, survivors(store, worker))
    return await counted(store, lane.endpoint_id)


async def fold_amid_a_fold(store, other):
    """What is counted if another process folds the same log, and has not committed yet."""
    worker, lane = await an_owned_lane(store)
    await settle(store, worker, await settlements_of(store, lane, 3))
    assert await store.bury(worker, beat=0, now=NOW)
    assert await other.fetchval(FOLD, UUID(bytes=worker)) is not None
    await other.execute(UNLOG, UUID(bytes=worker))
    await committed_amid(other, survivors(store, worker))
    return await counted(store, lane.endpoint_id)


async def test_what_is_being_settled_is_folded_too(store, other):
    assert await bury_amid_a_settle(store, other) == buckets(1, 2, 3)


async def test_what_another_folds_is_not_folded_again(store, other):
    assert await fold_amid_a_fold(store, other) == buckets()


def plant_b1(monkeypatch):
    """B1: an UPDATE, or a mere look, does not wait for those who hold FOR KEY SHARE."""
    for module, name in ((sql, "BURY"), (latency, "LOCK_BURIED")):
        right = getattr(module, name)
        assert " FOR UPDATE" in right, "the statement has changed: plant the bug anew"
        monkeypatch.setattr(module, name, right.replace(" FOR UPDATE", ""))


async def test_it_is_noticed_when_a_burial_does_not_wait_for_a_settle(store, other, monkeypatch):
    plant_b1(monkeypatch)
    assert await bury_amid_a_settle(store, other) == buckets(), "what was settled is in no minute"


async def test_it_is_noticed_when_a_burial_does_not_wait_for_another(store, other, monkeypatch):
    plant_b1(monkeypatch)
    assert await fold_amid_a_fold(store, other) == buckets(1, 2, 3), "what another folded is counted twice"
