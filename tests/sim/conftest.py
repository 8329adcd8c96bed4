"""Runs are made in a folder of their own, on a memory disk where there is one."""

from collections.abc import Iterator

import pytest

from tests.sim.world import Worlds


@pytest.fixture(scope="session")
def worlds() -> Iterator[Worlds]:
    worlds = Worlds()
    yield worlds
    worlds.close()


@pytest.fixture
def sim_seed(request: pytest.FixtureRequest) -> int | None:
    """The one seed that was asked for with --sim-seed."""
    seed: int | None = request.config.getoption("--sim-seed")
    return seed
