"""A periodic task is done by one process at a time, and by another when that one is gone."""

import asyncio

import psycopg
import pytest

from factories import NOW
from hookline.errors import StoreUnavailable
from hookline.store.postgres.measuring import periodic_tasks as of_postgres
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.measuring import periodic_tasks as of_sqlite

pytestmark = pytest.mark.anyio

NAME = "look"


async def done(store, *, now, next_at):
    """Whether this store did the task: it was due and nobody else had it."""
    if isinstance(store, PostgresStore):
        return await store._tasks.transaction(lambda connection: in_turn(connection, now, next_at))

    def work(connection):
        had = of_sqlite.claim(connection, NAME, now=now)
        if had:
            of_sqlite.move_on(connection, NAME, next_at=next_at)
        return had

    return await store._write(work)


async def in_turn(connection, now, next_at):
    had = await of_postgres.claim(connection, NAME, now=now)
    if had:
        await of_postgres.move_on(connection, NAME, next_at=next_at)
    return had


async def test_a_task_is_due_at_first_and_again_when_its_time_has_come(store, second_store):
    assert await done(store, now=NOW, next_at=NOW + 5)
    assert not await done(second_store, now=NOW + 4.9, next_at=NOW + 10)
    assert not await done(store, now=NOW + 4.9, next_at=NOW + 10)
    assert await done(second_store, now=NOW + 5, next_at=NOW + 10)
    assert not await done(store, now=NOW + 9, next_at=NOW + 20)


async def test_of_many_who_ask_at_once_one_has_the_task(store, second_store):
    asked = [done(each, now=NOW, next_at=NOW + 5) for each in (store, second_store) * 5]
    assert sum(await asyncio.gather(*asked)) == 1


class Holder:
    """A store that has claimed the task and does not finish it."""

    def __init__(self, store):
        self.has_it = asyncio.Event()
        self.may_end = asyncio.Event()
        self.backend = 0
        self.task = asyncio.create_task(store._tasks.transaction(self._hold))

    async def _hold(self, connection):
        self.backend = connection.get_server_pid()
        assert await of_postgres.claim(connection, NAME, now=NOW)
        self.has_it.set()
        await self.may_end.wait()
        await of_postgres.move_on(connection, NAME, next_at=NOW + 5)


@pytest.fixture
def postgres_only(store_kind):
    """Not on SQLite, where a write transaction has the whole file (see `pytest_generate_tests`)."""


async def test_nobody_waits_for_the_one_who_has_it(postgres_only, store, second_store):
    assert await done(store, now=NOW - 5, next_at=NOW)  # the row exists: otherwise others wait for its insert
    holder = Holder(store)
    await holder.has_it.wait()
    assert not await done(second_store, now=NOW, next_at=NOW + 5)
    holder.may_end.set()
    await holder.task
    assert not await done(second_store, now=NOW, next_at=NOW + 5)
    assert await done(second_store, now=NOW + 5, next_at=NOW + 10)


async def test_a_holder_that_is_cut_off_frees_it_undone(postgres_only, store, second_store):
    assert await done(store, now=NOW - 5, next_at=NOW)
    holder = Holder(store)
    await holder.has_it.wait()
    with psycopg.connect(store._url, autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(%s, 60000)", (holder.backend,))
    assert await done(second_store, now=NOW, next_at=NOW + 5)
    holder.may_end.set()
    with pytest.raises(StoreUnavailable):
        await holder.task
    assert not await done(second_store, now=NOW, next_at=NOW + 5)


async def test_a_holder_that_stops_answering_is_cut_off_by_the_server(postgres_only, store):
    async def limit(connection):
        return await connection.fetchval("SHOW idle_in_transaction_session_timeout")

    assert await store._tasks.run(limit) == "5s"
