"""The store shows which session keeps the database from cleaning up, until that session ends."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg
import pytest

from factories import NOW, a_publication
from hookline.store.contract import Snapshot, Store
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.driver.connection import LOG_BYTES
from hookline.store.sqlite.store import SqliteStore
from postgres_server import GUARDED, GUARDED_PASSWORD, PostgresServer
from scenes import a_lane_in

pytestmark = pytest.mark.anyio

CEILING = 60.0
TRANSACTIONS = 5


@asynccontextmanager
async def a_session(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url, server_settings={"application_name": "a report"})
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def a_store(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def held_by(store: PostgresStore, pid: int) -> Snapshot | None:
    found = await store.bloat()
    return next((each for each in found.snapshots if each.pid == pid), None)


async def test_a_database_that_nobody_else_uses_is_kept_from_nothing(store: Store) -> None:
    await a_lane_in(store)
    found = await store.bloat()
    assert (found.oldest_seconds, found.snapshots) == (0.0, ())
    assert (found.log_bytes is None) == bool(found.dead_rows)


async def test_a_transaction_that_holds_a_snapshot_is_named_with_its_age_until_it_ends(
    postgres_url: str,
) -> None:
    async with a_store(postgres_url) as store, a_session(postgres_url) as outsider:
        pid = outsider.get_server_pid()
        await outsider.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await outsider.execute("SELECT count(*) FROM hookline.lanes")
        first = await held_by(store, pid)
        assert first is not None
        assert first.seconds is not None
        assert (first.held_by, first.name) == ("session", "a report")
        for _ in range(TRANSACTIONS):
            await a_lane_in(store)
        later = await held_by(store, pid)
        assert later is not None
        assert later.seconds is not None
        assert later.seconds > first.seconds
        assert later.transactions >= first.transactions + TRANSACTIONS
        found = await store.bloat()
        assert found.oldest_seconds >= later.seconds
        assert found.oldest_transactions >= later.transactions
        assert found.dead_rows.keys() == {"attempts", "deliveries", "events", "lanes", "workers"}
        await outsider.execute("COMMIT")
        assert await held_by(store, pid) is None


async def test_a_session_that_only_waits_in_its_transaction_keeps_nobody_from_anything(
    postgres_url: str,
) -> None:
    async with a_store(postgres_url) as store, a_session(postgres_url) as outsider:
        await outsider.execute("BEGIN")
        await outsider.execute("SELECT count(*) FROM hookline.lanes")
        assert await held_by(store, outsider.get_server_pid()) is None
        await outsider.execute("COMMIT")


async def test_a_session_of_another_database_keeps_nobody_from_anything(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    with postgres_server.fresh_database() as elsewhere:
        async with a_store(postgres_url) as store, a_session(elsewhere) as outsider:
            await outsider.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            await outsider.execute("SELECT count(*) FROM hookline.lanes")
            assert await held_by(store, outsider.get_server_pid()) is None
            await outsider.execute("COMMIT")


async def test_a_user_who_may_not_look_at_others_gets_an_answer_without_their_age(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    async with a_session(postgres_url) as outsider:
        await outsider.execute(f"GRANT USAGE ON SCHEMA hookline TO {GUARDED}")
        await outsider.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA hookline TO {GUARDED}")
        name = await outsider.fetchval("SELECT current_database()")
        url = postgres_server.url(name, user=GUARDED, password=GUARDED_PASSWORD.replace(" ", "%20"))
        async with a_store(url) as store:
            await outsider.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            await outsider.execute("SELECT count(*) FROM hookline.lanes")
            found = await held_by(store, outsider.get_server_pid())
            assert found is not None
            assert (found.held_by, found.seconds) == ("session", None)
            assert (await store.bloat()).oldest_seconds == 0.0
            await outsider.execute("COMMIT")


async def test_a_reader_that_stays_lets_the_log_of_a_file_grow_until_it_goes(sqlite_path: Any) -> None:
    store = SqliteStore(str(sqlite_path))
    await store.open()
    try:
        lane = await a_lane_in(store)
        filling = b'"' + b"x" * 4_000_000 + b'"'

        async def write() -> int:
            await store.accept([a_publication(lane, payload=filling)], catalogue=1, now=NOW)
            found = (await store.bloat()).log_bytes
            assert found is not None
            return found

        with closing(sqlite3.connect(sqlite_path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM lanes").fetchone()
            while await write() <= LOG_BYTES:
                pass
            reader.execute("COMMIT")
        async with asyncio.timeout(CEILING):
            while await write() > LOG_BYTES:
                pass
    finally:
        await store.close()
