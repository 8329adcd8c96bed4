"""Environments that the tests of this folder share."""

from pathlib import Path

import pytest

from installing.environments import Environment, build


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def base(tmp_path_factory, wheel) -> Environment:
    """`pip install hookline`."""
    return Environment(tmp_path_factory.mktemp("base") / "venv", wheel)


@pytest.fixture(scope="session")
def server(tmp_path_factory, wheel, base) -> Environment:
    """`pip install 'hookline[server]'`."""
    return Environment(tmp_path_factory.mktemp("server") / "venv", wheel, "server", installer=base)
