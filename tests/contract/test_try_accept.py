"""A trial of accepting changes nothing, and fails as accepting would."""

import asyncio
import threading

import psycopg
import pytest

from factories import NOW, a_publication
from hookline.errors import StoreUnavailable
from hookline.store.contract import Store
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.driver.shared_commit import OnLoop
from hookline.store.sqlite.driver.writer import Threaded, commit_together
from hookline.store.sqlite.store import SqliteStore
from scenes import a_lane_in, accepted

pytestmark = pytest.mark.anyio


async def test_it_changes_nothing(store: Store):
    lane = await a_lane_in(store)
    await accepted(store, a_publication(lane))
    before = await store.conservation(), (await store.catalogue()).n
    for _ in range(3):
        await store.try_accept(now=NOW)
    assert (await store.conservation(), (await store.catalogue()).n) == before


async def test_it_fails_where_accepting_would(store: Store):
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.try_accept(now=NOW)
    await store.open()


@pytest.mark.parametrize("table", ["events", "deliveries", "idempotency"])
@pytest.mark.parametrize("mode", ["SHARE", "ACCESS EXCLUSIVE"])
async def test_a_locked_table_is_an_error_at_once_and_its_end_is_the_end(postgres_url, table, mode):
    store = PostgresStore(postgres_url)
    await store.open()
    try:
        with psycopg.connect(postgres_url) as session:
            session.execute(f"LOCK TABLE hookline.{table} IN {mode} MODE")  # type: ignore[arg-type]
            with pytest.raises(StoreUnavailable, match="could not obtain lock"):
                await store.try_accept(now=NOW)
            waiting = session.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
            assert waiting == (0,)
        await store.try_accept(now=NOW)
    finally:
        await store.close()


async def test_an_ordinary_user_may_try(postgres_server):
    with postgres_server.fresh_database() as url:
        name = url.rpartition("/")[2]
        user = f"ordinary_{name}"
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(f"CREATE ROLE {user} LOGIN")  # type: ignore[arg-type]
            session.execute(f"GRANT USAGE ON SCHEMA hookline TO {user}")  # type: ignore[arg-type]
            rights = "SELECT, INSERT, UPDATE, DELETE"
            session.execute(f"GRANT {rights} ON ALL TABLES IN SCHEMA hookline TO {user}")  # type: ignore[arg-type]
        store = PostgresStore(postgres_server.url(name, user=user))
        await store.open()
        try:
            await store.try_accept(now=NOW)
        finally:
            await store.close()
            with psycopg.connect(url, autocommit=True) as session:
                session.execute(f"DROP OWNED BY {user}")  # type: ignore[arg-type]
                session.execute(f"DROP ROLE {user}")  # type: ignore[arg-type]


async def test_a_disk_that_hangs_keeps_a_trial_waiting(sqlite_path):
    disk = threading.Event()
    disk.set()

    class Disk(OnLoop):
        def _wait_for(self, statement):
            disk.wait()
            return super()._wait_for(statement)

    def executor(connection, carry_out):
        return (Disk if carry_out is commit_together else Threaded)(connection, carry_out)

    store = SqliteStore(str(sqlite_path), executor=executor)
    await store.open()
    disk.clear()
    trial = asyncio.create_task(store.try_accept(now=NOW))
    await store.list_workers(after=None, limit=1)  # reading goes on
    assert not trial.done()
    disk.set()
    await trial
    await store.close()
