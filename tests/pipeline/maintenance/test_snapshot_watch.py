"""The log says which session keeps the database from cleaning up."""

from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from hookline.pipeline.maintenance.snapshot_watch import SAY_EVERY, SnapshotWatch
from hookline.store.postgres.store import PostgresStore
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(postgres_url: str) -> Any:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def forgotten(postgres_url: str) -> Any:
    """A session in a transaction that still sees the rows from its beginning."""
    connection = await asyncpg.connect(postgres_url, server_settings={"application_name": "a report"})
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await connection.execute("SELECT count(*) FROM hookline.lanes")
    yield connection
    await connection.close()


async def said(watch: SnapshotWatch) -> list[Any]:
    with capture_logs() as lines:
        await watch.look()
    return [line for line in lines if line["event"] == "store.old_snapshot"]


async def test_a_forgotten_transaction_is_named_once_a_minute_until_it_ends(
    store: PostgresStore, forgotten: Any
) -> None:
    clock = ManualClock()
    watch = SnapshotWatch(store, clock, old_s=0.0)
    [line] = await said(watch)
    assert (line["log_level"], line["held_by"], line["name"], line["pid"]) == (
        "warning",
        "session",
        "a report",
        forgotten.get_server_pid(),
    )
    assert "pg_terminate_backend" in line["remedy"]
    assert "lanes" not in str(line), "what it asked is its own affair"
    clock.advance(SAY_EVERY - 1)
    assert await said(watch) == []
    clock.advance(1)
    assert len(await said(watch)) == 1
    await forgotten.execute("COMMIT")
    clock.advance(SAY_EVERY)
    assert await said(watch) == []


async def test_a_transaction_that_is_young_is_nobodys_concern(store: PostgresStore, forgotten: Any) -> None:
    assert await said(SnapshotWatch(store, ManualClock(), old_s=600.0)) == []


async def test_a_database_that_does_not_answer_is_looked_at_again_later(
    store: PostgresStore, forgotten: Any
) -> None:
    watch = SnapshotWatch(store, ManualClock(), old_s=0.0)
    await store.close()
    assert await said(watch) == []
    await store.open()
    assert len(await said(watch)) == 1
