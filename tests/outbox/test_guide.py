"""The code in the guide commits an order and its event together."""

import ast
import asyncio
import inspect
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from django.db import connections
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from hookline import outbox
from outbox.applications import django_on_postgres, spelled
from outbox.database import Postgres

GUIDE = (Path(__file__).parents[2] / "docs" / "outbox.md").read_text()
BLOCKS = dict(re.findall(r"^### (.+?)\n+```python\n(.+?)^```", GUIDE, re.MULTILINE | re.DOTALL))
ON_SQLITE = ("sqlite3", "aiosqlite")


@pytest.fixture
def _django_default(postgres: Postgres) -> Iterator[None]:
    made = django_on_postgres(postgres.url)
    before = connections.settings["default"]
    connections.settings["default"] = connections.settings[made.alias]
    if hasattr(connections._connections, "default"):
        del connections["default"]
    yield
    connections["default"].close()
    del connections["default"]
    connections.settings["default"] = before


async def run(code: str, names: dict[str, Any]) -> None:
    """Run a block of the guide, which may await."""
    result = eval(compile(code, "outbox.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)  # noqa: S307
    if inspect.isawaitable(result):
        await result


@pytest.mark.usefixtures("_django_default")
@pytest.mark.parametrize("title", BLOCKS)
def test_an_order_is_committed_with_its_event(postgres, sqlite, title):
    names: dict[str, Any] = {
        "DATABASE": postgres.url,
        "FILE": str(sqlite.path),
        "order": {"id": 42},
        "outbox": outbox,
        "Session": Session,
        "AsyncSession": AsyncSession,
        "text": sqlalchemy.text,
        "psycopg": psycopg,
        "sqlite3": sqlite3,
        "aiosqlite": aiosqlite,
    }

    async def whole() -> None:
        engine = sqlalchemy.create_engine(spelled(postgres.url, "psycopg"))
        async_engine = create_async_engine(spelled(postgres.url, "asyncpg"))
        async with asyncpg.create_pool(postgres.url, min_size=1) as pool:
            names.update(engine=engine, async_engine=async_engine, pool=pool)
            await run(BLOCKS[title], names)
        await async_engine.dispose()
        engine.dispose()

    if title == "psycopg2":
        names["connection"] = psycopg2.connect(postgres.url)
    if title == "Django":  # refuses to work on an event loop
        exec(BLOCKS[title], names)  # noqa: S102
    else:
        asyncio.run(whole())
    if title in ("psycopg2", "sqlite3"):
        names["connection"].close()
    database = sqlite if title in ON_SQLITE else postgres
    assert database.orders() == [42]
    assert [(each.type, each.payload) for each in database.kept()] == [("order.paid", b'{"id":42}')]


def test_every_driver_has_its_lines():
    assert list(BLOCKS) == [
        "psycopg",
        "psycopg, asynchronous",
        "psycopg2",
        "asyncpg",
        "SQLAlchemy",
        "SQLAlchemy, asynchronous",
        "Django",
        "sqlite3",
        "aiosqlite",
    ]
    assert all(len(code.rstrip().splitlines()) <= 6 for code in BLOCKS.values())


def test_the_row_by_hand_is_an_event(postgres):
    [statement] = re.findall(r"^INSERT INTO hookline\.outbox .+;$", GUIDE, re.MULTILINE)
    postgres.run(statement)
    assert [(each.type, each.payload) for each in postgres.kept()] == [("order.paid", b'{"id": 42}')]


def test_every_error_is_in_the_guide():
    errors = [each for name in outbox.__all__ if inspect.isclass(each := getattr(outbox, name))]
    named = {each.__name__ for each in errors if issubclass(each, Exception)}
    assert named == {name for name in named if f"| `{name}` |" in GUIDE}
