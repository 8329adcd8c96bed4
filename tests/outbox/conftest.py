"""Gives tests an application's own databases."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from outbox.database import ORDERS, Postgres, Sqlite, made_on_postgres, made_on_sqlite
from outbox.moved import Place, own_sqlite, receiving
from postgres_server import PostgresServer, require_installations
from receiver import Receiver


@pytest.fixture(scope="session")
def application_server() -> Iterator[PostgresServer]:
    """A server that knows two-phase commit: of the version HOOKLINE_TEST_POSTGRES names, else the newest."""
    installations = require_installations()
    chosen = os.environ.get("HOOKLINE_TEST_POSTGRES")
    found = [each for each in installations if not chosen or each.major == int(chosen)]
    server = PostgresServer(found[0], max_prepared_transactions="8")
    try:
        server.start()
        yield server
    finally:
        server.destroy()


@pytest.fixture(scope="session")
def application_database(application_server: PostgresServer) -> Postgres:
    """One database for all tests that only fill its tables."""
    return made_on_postgres(application_server.url(application_server.create_database()))


@pytest.fixture
def postgres(application_database: Postgres) -> Postgres:
    """A database whose tables are empty."""
    application_database.empty()
    return application_database


@pytest.fixture
def bare_url(application_server: PostgresServer) -> Iterator[str]:
    """A database with nothing in it."""
    name = application_server.create_database()
    yield application_server.url(name)
    application_server.drop_database(name)


@pytest.fixture
def sqlite(tmp_path: Path) -> Sqlite:
    return made_on_sqlite(tmp_path / "application.db")


@pytest.fixture
def place(
    request: pytest.FixtureRequest, tmp_path: Path, application_server: PostgresServer
) -> Iterator[Place]:
    """hookline on SQLite reads an application's PostgreSQL, and the other way round."""
    match request.param:
        case "own sqlite":
            yield own_sqlite(tmp_path)
        case "own postgres":
            with application_server.fresh_database() as url:
                application = Postgres(url)
                application.run(ORDERS)
                yield Place(url, application, False)
        case "foreign sqlite":
            with application_server.fresh_database() as url:
                yield Place(url, made_on_sqlite(tmp_path / "shop.db"), True)
        case _:
            name = application_server.create_database()
            shop = made_on_postgres(application_server.url(name))
            yield Place(f"sqlite:///{tmp_path / 'hookline.db'}", shop, True)
            application_server.drop_database(name)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver
