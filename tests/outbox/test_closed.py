"""A connection that is closed, lost or at the end of its block is told, whatever the driver says of it."""

import asyncio
import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg2
import pytest
from django.db import transaction
from sqlalchemy.ext.asyncio import create_async_engine

from hookline.outbox import OutboxError, apublish, publish
from hookline.outbox.failures import CLOSED as CLOSED_CONNECTION
from hookline.outbox.failures import ENDED
from outbox.applications import (
    ON_POSTGRES,
    ON_SQLITE,
    Commit,
    Meanwhile,
    Order,
    Publish,
    Refused,
    django_on_postgres,
    spelled,
)
from outbox.test_refusals import engine_of

EVENT = Publish()


def closed_psycopg(database: Any) -> None:
    connection = psycopg.connect(database.url)
    connection.close()
    publish(connection, "order.paid", {})


def closed_psycopg_asynchronous(database: Any) -> None:
    async def attempt() -> None:
        connection = await psycopg.AsyncConnection.connect(database.url)
        await connection.close()
        await apublish(connection, "order.paid", {})

    asyncio.run(attempt())


def closed_psycopg2(database: Any) -> None:
    connection = psycopg2.connect(database.url)
    connection.close()
    publish(connection, "order.paid", {})


def closed_asyncpg(database: Any) -> None:
    async def attempt() -> None:
        connection = await asyncpg.connect(database.url)
        await connection.close()
        await apublish(connection, "order.paid", {})

    asyncio.run(attempt())


def released_asyncpg(database: Any) -> None:
    async def attempt() -> None:
        async with asyncpg.create_pool(database.url, min_size=1) as pool:
            async with pool.acquire() as connection:
                pass
            await apublish(connection, "order.paid", {})

    asyncio.run(attempt())


def closed_sqlalchemy(database: Any) -> None:
    with engine_of(spelled(database.url, "psycopg")) as engine:
        with engine.connect() as connection:
            pass
        publish(connection, "order.paid", {})


def closed_sqlalchemy_asynchronous(database: Any) -> None:
    async def attempt() -> None:
        engine = create_async_engine(spelled(database.url, "asyncpg"))
        async with engine.connect() as connection:
            pass
        try:
            await apublish(connection, "order.paid", {})
        finally:
            await engine.dispose()

    asyncio.run(attempt())


def closed_django(database: Any) -> None:
    made = django_on_postgres(database.url)
    with transaction.atomic(using=made.alias):
        made.connection.close()
        publish(made.connection, "order.paid", {})


CLOSED: dict[str, Callable[[Any], None]] = {
    "psycopg": closed_psycopg,
    "psycopg, asynchronous": closed_psycopg_asynchronous,
    "psycopg2": closed_psycopg2,
    "asyncpg": closed_asyncpg,
    "asyncpg's pool": released_asyncpg,
    "SQLAlchemy": closed_sqlalchemy,
    "SQLAlchemy, asyncpg": closed_sqlalchemy_asynchronous,
    "Django": closed_django,
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_connection_is_told(postgres, name):
    with pytest.raises(OutboxError, match=r"^This connection is closed"):
        CLOSED[name](postgres)
    assert postgres.kept() == []


def test_a_closed_file_is_told(sqlite):
    connection = sqlite3.connect(sqlite.path)
    connection.close()
    with pytest.raises(OutboxError, match=r"^This connection is closed"):
        publish(connection, "order.paid", {})

    async def attempt() -> None:
        async with aiosqlite.connect(sqlite.path) as closed:
            pass
        await apublish(closed, "order.paid", {})

    with pytest.raises(OutboxError, match=r"^This connection is closed"):
        asyncio.run(attempt())


END_THE_OTHERS = (
    "SELECT pg_terminate_backend(pid, 120_000) FROM pg_stat_activity "  # returns when they have ended
    "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


@pytest.mark.parametrize("name", ON_POSTGRES)
def test_a_connection_that_the_database_has_ended_is_told(postgres, name):
    end = Meanwhile(lambda: postgres.run(END_THE_OTHERS))
    errors: list[Exception] = []
    with suppress(Exception):  # the driver's own, at the end of the block
        ON_POSTGRES[name](postgres.url).play(Order(1), end, Refused(EVENT, errors))
    [error] = errors
    assert (type(error), str(error)) == (OutboxError, CLOSED_CONNECTION)
    assert (postgres.orders(), postgres.kept()) == ([], [])


@pytest.mark.parametrize("name", [each for each in ON_POSTGRES if re.match("SQLAlchemy|session", each)])
def test_a_block_of_sqlalchemy_that_has_ended_is_told_on_postgres(postgres, name):
    is_told_the_end(ON_POSTGRES[name](postgres.url))
    assert postgres.kept() == []


@pytest.mark.parametrize("name", [each for each in ON_SQLITE if re.match("SQLAlchemy|session", each)])
def test_a_block_of_sqlalchemy_that_has_ended_is_told_on_sqlite(sqlite, name):
    is_told_the_end(ON_SQLITE[name](sqlite.path))
    assert sqlite.kept() == []


def is_told_the_end(application: Any) -> None:
    errors: list[Exception] = []
    application.play(Order(1), Commit(), Refused(EVENT, errors))
    [error] = errors
    assert (type(error), str(error)) == (OutboxError, ENDED)
