"""Gives tests an application's own databases."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox.database import Postgres, Sqlite, made_on_postgres, made_on_sqlite
from postgres_server import PostgresServer, require_installations


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
