"""Where does a test get its store from?

Every test that asks for `store` runs on each of them: neither is the reference.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from hookline.model import EndpointId
from hookline.store.contract import Store
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore

pytest_plugins = ["postgres_server"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with hookline's schema and no rows, to be copied."""
    path = tmp_path_factory.mktemp("template") / "hookline.db"
    asyncio.run(SqliteStore(str(path)).migrate())
    return path


@pytest.fixture
def sqlite_path(migrated_file: Path, tmp_path: Path) -> Path:
    """A fresh, migrated file."""
    return Path(shutil.copy(migrated_file, tmp_path / "hookline.db"))


@pytest.fixture(params=["sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest) -> Callable[[], Store]:
    """Makes stores, not yet opened, on one fresh, migrated database."""
    if request.param == "sqlite":
        path = request.getfixturevalue("sqlite_path")
        return lambda: SqliteStore(str(path))
    url = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url)


@pytest.fixture
async def store(new_store: Callable[[], Store]) -> AsyncIterator[Store]:
    """An open store with nothing in it."""
    store = new_store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def second_store(store: Store, new_store: Callable[[], Store]) -> AsyncIterator[Store]:
    """Another process's view of the same database, as far as connections can tell."""
    second = new_store()
    await second.open(serve=False)
    yield second
    await second.close()


@pytest.fixture
def hold_lane(store: Store, request: pytest.FixtureRequest) -> Callable[[EndpointId, float], None]:
    """Writes a lane's `hold_until`, which no verb of this contract does yet."""

    def in_sqlite(lane: EndpointId, until: float) -> None:
        path = request.getfixturevalue("sqlite_path")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE lanes SET hold_until = ? WHERE endpoint_id = ?", (until, lane))

    def in_postgres(lane: EndpointId, until: float) -> None:
        statement = "UPDATE hookline.lanes SET hold_until = to_timestamp(%s) WHERE endpoint_id = %s::uuid"
        with psycopg.connect(request.getfixturevalue("postgres_url")) as connection:
            connection.execute(statement, (until, lane.hex()))

    return in_sqlite if isinstance(store, SqliteStore) else in_postgres
