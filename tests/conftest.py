"""Gives tests a store.

Every test that asks for `store` runs on each store; neither is the reference.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import structlog

from hookline.store.contract import Store
from hookline.store.postgres.store import PostgresStore
from hookline.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from postgres_server import PostgresServer, PostgresServers

pytest_plugins = ["postgres_server"]

# The same examples in every run, however slow the machine is: what is found by chance is found in somebody else's change.
# HOOKLINE_FRESH tries others (tests/fresh.py).
hypothesis.settings.register_profile(
    "hookline",
    derandomize="HOOKLINE_FRESH" not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("hookline")

structlog.configure()  # as it is by itself: tests look at lines too that an embedded hookline does not show


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sim-seed", type=int, default=None, help="the one seed that tests/sim runs, byte for byte"
    )


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what asks for a store on SQLite and on every PostgreSQL here, or the one HOOKLINE_TEST_POSTGRES names."""
    from postgres_server import installations  # a plugin: not to be imported before pytest has rewritten it

    if "store_kind" in metafunc.fixturenames:
        chosen = os.environ.get("HOOKLINE_TEST_POSTGRES")
        servers = [f"postgres{chosen}"] if chosen else list(map(str, installations()))
        kinds = ["sqlite", *(servers or ["postgres"])]
        if "postgres_only" in metafunc.fixturenames:
            kinds.remove("sqlite")
        metafunc.parametrize("store_kind", kinds, indirect=True)


@pytest.fixture
def store_kind(request: pytest.FixtureRequest) -> str:
    """Which store the test runs on: "sqlite", "postgres18", …"""
    kind: str = request.param
    return kind


@pytest.fixture
def chosen_server(store_kind: str, postgres_servers: "PostgresServers") -> "PostgresServer":
    """The server of a kind that is a PostgreSQL."""
    from postgres_server import require_installations

    require_installations()
    return postgres_servers[int(store_kind.removeprefix("postgres"))]


@pytest.fixture
def new_store(store_kind: str, request: pytest.FixtureRequest) -> Iterator[Callable[[], Store]]:
    """Makes stores, not yet opened, on one fresh, migrated database."""
    if store_kind == "sqlite":
        path = request.getfixturevalue("sqlite_path")
        yield lambda: SqliteStore(str(path))
        return
    server: PostgresServer = request.getfixturevalue("chosen_server")
    with server.fresh_database() as url:
        yield lambda: PostgresStore(url)


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
