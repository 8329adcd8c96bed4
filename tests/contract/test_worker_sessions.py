"""A worker's death shows by its session, and by nothing else.

PostgreSQL only: the session of a worker's pulse holds a lock on its id.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from factories import NOW
from hookline.errors import StoreUnavailable
from hookline.model import WorkerId
from hookline.store.contract import Load
from hookline.store.postgres import sql
from hookline.store.postgres.driver import session
from hookline.store.postgres.store import PostgresStore
from scenes import a_worker_in
from tests.deaf_proxy import pooled

pytestmark = pytest.mark.anyio

CEILING = 60.0
END_PULSES = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hookline pulse' AND datname = current_database()
"""


@pytest.fixture
async def observer(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def observed(observer: PostgresStore, postgres_url: str) -> AsyncIterator[PostgresStore]:
    """Another process's store; when it is closed, its sessions end as with a process that was killed."""
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def outsider(postgres_url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": session.SCHEMA})
    yield connection
    await connection.close()


async def gone(store: PostgresStore) -> set[WorkerId]:
    return set((await store.pulse(seen=0)).gone)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(CEILING):
        while not await condition():  # noqa: ASYNC110 - what happens in the server signals nothing here
            await asyncio.sleep(0.005)


async def until_gone(observer: PostgresStore, *workers: WorkerId) -> None:
    async def are_gone() -> bool:
        return await gone(observer) == set(workers)

    await until(are_gone)


async def test_a_worker_is_there_for_as_long_as_its_session(observer: PostgresStore, observed: PostgresStore):
    worker = await a_worker_in(observed)
    assert await gone(observer) == set()
    await observed.close()
    await until_gone(observer, worker)


async def test_a_worker_that_does_nothing_is_there(observer: PostgresStore, observed: PostgresStore):
    """Like one that is stopped: its session stays."""
    await a_worker_in(observed)
    for _ in range(10):
        assert await gone(observer) == set()


async def test_after_a_reconnect_it_is_there_again_with_its_next_pulse(
    observer: PostgresStore, observed: PostgresStore, outsider: Any
):
    worker = await a_worker_in(observed)
    before = (await observer.pulse(seen=0)).session
    await outsider.execute(END_PULSES)
    await until_gone_by(outsider)
    assert await gone_after_reconnect(observer) == {worker}
    assert (await observer.pulse(seen=0)).session != before, "the observer's own session is another too"
    assert await still_beats(observed, worker)
    assert await gone(observer) == {worker}, "a beat does not show that it is there"
    await observed.pulse(seen=0)
    assert await gone(observer) == {worker}, "nor does a pulse that is not the worker's"
    assert (await observed.pulse(seen=0, worker=worker)).was_absent, "it learns that its lock was free"
    assert await gone(observer) == set()
    assert not (await observed.pulse(seen=0, worker=worker)).was_absent
    await observed.close()
    await until_gone(observer, worker)


async def until_gone_by(outsider: Any) -> None:
    async def are_ended() -> bool:
        count = await outsider.fetchval(
            "SELECT count(*) FROM pg_locks WHERE classid = $1", sql.SESSIONS_SPACE
        )
        return bool(count == 0)

    await until(are_ended)


async def gone_after_reconnect(observer: PostgresStore) -> set[WorkerId]:
    """The first call may meet the session that was ended."""
    try:
        return await gone(observer)
    except StoreUnavailable:
        return await gone(observer)


async def still_beats(observed: PostgresStore, worker: WorkerId) -> bool:
    try:
        return await observed.beat(worker, Load(), now=NOW)
    except StoreUnavailable:
        return await observed.beat(worker, Load(), now=NOW)


async def test_a_worker_whose_registration_was_answered_to_nobody_is_there_with_its_first_pulse(
    observer: PostgresStore, observed: PostgresStore, postgres_url: str
):
    """Its row says that it has a session, which ended before anybody was told."""
    lost = PostgresStore(postgres_url)
    await lost.open()
    worker = await a_worker_in(lost)
    await lost.close()
    await until_gone(observer, worker)
    await observed.pulse(seen=0, worker=worker)
    assert await gone(observer) == set()


async def test_a_lock_that_the_observers_own_session_holds_is_not_free(observer: PostgresStore):
    """PostgreSQL would give it to the session again."""
    for _ in range(2):
        await a_worker_in(observer)
    assert await gone(observer) == set()


async def test_who_looks_is_not_taken_for_the_worker_by_another(
    observer: PostgresStore, observed: PostgresStore, outsider: Any
):
    worker = await a_worker_in(observed)
    await observed.close()
    await until_gone(observer, worker)
    async with outsider.transaction():  # another process in the middle of a check
        lock = "SELECT pg_try_advisory_xact_lock_shared($1, uuid_hash($2))"
        assert await outsider.fetchval(lock, sql.SESSIONS_SPACE, worker.hex())
        assert await gone(observer) == {worker}


async def test_a_worker_of_an_older_version_is_not_missed(observer: PostgresStore, outsider: Any):
    await outsider.execute(
        "INSERT INTO workers (id, kind, host, pid, version, started_at, seen_at) "
        "VALUES (gen_random_uuid(), 'serve', 'h', 1, '0.1', now(), now())"
    )
    assert await gone(observer) == set()


async def test_behind_a_pooler_nobody_is_missed(observer: PostgresStore, postgres_url: str):
    async with pooled(postgres_url) as url:
        store = PostgresStore(url)
        await store.open()
        worker = await a_worker_in(store)
        pulse = await store.pulse(seen=0, worker=worker)
        await store.close()
    assert pulse.session is None, (
        "nor does it see others gone: a restart of the database could be hidden from it"
    )
    for _ in range(10):
        assert await gone(observer) == set()


async def test_whose_sessions_come_from_a_pooler_later_is_not_missed_any_more(
    observer: PostgresStore, postgres_url: str, outsider: Any
):
    is_pooled = False
    async with pooled(postgres_url, pools=lambda: is_pooled) as url:
        store = PostgresStore(url)
        await store.open()
        worker = await a_worker_in(store)
        assert (await store.pulse(seen=0, worker=worker)).session is not None
        is_pooled = True
        await outsider.execute(END_PULSES)
        await until_gone_by(outsider)
        assert await gone_after_reconnect(observer) == {worker}
        await still_beats(store, worker)
        assert (await store.pulse(seen=0, worker=worker)).session is None
        await store.close()
    assert await gone(observer) == set()
