"""Pipeline tests run on both stores, on a clock that the test moves, against a real receiver."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.receiver import Receiver
from tests.world import World


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hooks.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.start()
    yield receiver
    await receiver.stop()


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    world = World(database)
    yield world
    await world.close()


@pytest.fixture
async def shared_world(postgres_url: str) -> AsyncIterator[World]:
    """Several processes on one database: PostgreSQL only."""
    world = World(postgres_url)
    yield world
    await world.close()
