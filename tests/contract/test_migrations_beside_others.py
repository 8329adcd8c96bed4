"""PostgreSQL can be migrated while processes work with it, and again after an interrupted migration."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from factories import a_publication
from hookline.errors import StoreUnavailable
from hookline.store.migrations import Migration
from hookline.store.postgres.driver import session
from hookline.store.postgres.migrations import schema
from hookline.store.postgres.store import PostgresStore
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio

CEILING = 60.0
ADDS_A_COLUMN = "ALTER TABLE deliveries ADD COLUMN later text;"
READS = "SELECT count(*) FROM deliveries"
WRITES = "DELETE FROM deliveries WHERE false"
BY_ITSELF = """-- each statement by itself
DROP INDEX CONCURRENTLY IF EXISTS deliveries_later;
CREATE INDEX CONCURRENTLY deliveries_later ON deliveries (due_at);
"""


def later(sql: str, *, serves: int = 0, is_stepwise: bool = False) -> list[Migration]:
    """What the next version would have."""
    known = schema.known()
    number = len(known) + 1
    return [*known, Migration(number, f"{number:04}_later", "sum", sql, serves, is_stepwise)]


@asynccontextmanager
async def migrating(url: str) -> AsyncIterator[Any]:
    connection = await session.connect(url, role="migrate", settings=session.SLOW, unsafe=False)
    try:
        yield connection
    finally:
        connection.terminate()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@asynccontextmanager
async def somebody_in(url: str, statement: str) -> AsyncIterator[None]:
    """A transaction that has used the hot table and stays open, like a report or a forgotten terminal."""
    connection = await asyncpg.connect(url, server_settings={"search_path": session.SCHEMA})
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(statement)
    try:
        yield
    finally:
        connection.terminate()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(CEILING):
        while not await condition():  # noqa: ASYNC110 - the database has no event to wait for
            await asyncio.sleep(0.01)


async def test_nobody_waits_for_long_behind_a_migration_that_has_to_wait_itself(store, postgres_url):
    lane = await a_lane_in(store)
    watcher = await asyncpg.connect(postgres_url)
    waits = 0

    async def waited_again() -> bool:
        nonlocal waits
        waits += await watcher.fetchval(
            "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE NOT l.granted AND a.application_name = 'hookline migrate'"
        )
        return waits >= 3

    async with migrating(postgres_url) as connection:
        async with somebody_in(postgres_url, READS):
            work = asyncio.create_task(schema.bring_up_to_date(connection, migrations=later(ADDS_A_COLUMN)))
            await until(waited_again)
            # Behind a migration that waits for the reader, this would end in an error after 4 s.
            for _ in range(20):
                await accepted(store, a_publication(lane))
            assert not work.done()
        assert await asyncio.wait_for(work, CEILING) == [later("")[-1].name]
    await accepted(store, a_publication(lane))
    await watcher.close()


async def test_a_migration_that_never_gets_its_locks_says_what_to_do(store, postgres_url):
    async with migrating(postgres_url) as connection, somebody_in(postgres_url, READS):
        with pytest.raises(StoreUnavailable, match=r"transaction that stays open.*`hookline migrate` again"):
            await schema.bring_up_to_date(connection, migrations=later(ADDS_A_COLUMN), tries=2)
    async with migrating(postgres_url) as connection:
        assert await schema.bring_up_to_date(connection, migrations=later(ADDS_A_COLUMN))


async def test_statements_by_themselves_build_an_index_beside_writers(store, postgres_url):
    lane = await a_lane_in(store)
    async with migrating(postgres_url) as connection:
        [name] = await schema.bring_up_to_date(connection, migrations=later(BY_ITSELF, is_stepwise=True))
    assert name.endswith("_later")
    await accepted(store, a_publication(lane))


async def test_an_index_that_was_begun_and_not_finished_is_built_anew(store, postgres_url):
    async with migrating(postgres_url) as connection, somebody_in(postgres_url, WRITES):
        work = asyncio.create_task(
            schema.bring_up_to_date(connection, migrations=later(BY_ITSELF, is_stepwise=True))
        )
        watcher = await asyncpg.connect(postgres_url, server_settings={"search_path": session.SCHEMA})
        invalid = "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('deliveries_later') AND NOT indisvalid"

        async def is_begun() -> bool:
            return bool(await watcher.fetchval(invalid))

        await until(is_begun)
        await watcher.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hookline migrate' "
            "AND datname = current_database()"
        )
        with pytest.raises(asyncpg.PostgresError):
            await asyncio.wait_for(work, CEILING)
        assert await is_begun()
    async with migrating(postgres_url) as connection:
        assert await schema.bring_up_to_date(connection, migrations=later(BY_ITSELF, is_stepwise=True))
    assert not await is_begun()
    await watcher.close()


async def test_whom_a_migration_serves_is_written_down_and_never_lowered(store, postgres_url):
    async with migrating(postgres_url) as connection:
        for serves, expected in ((9, 9), (8, 9)):
            await connection.execute("DELETE FROM schema_migrations WHERE name LIKE '%later'")
            await schema.bring_up_to_date(connection, migrations=later("SELECT 1;", serves=serves))
            assert await connection.fetchval("SELECT level FROM schema_serves") == expected
    await store.pulse(seen=0)
