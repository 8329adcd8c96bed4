"""Gives tests each shop, as its README starts it."""

from collections.abc import Iterator

import pytest

from examples.following import Following
from examples.shops import DjangoShop, FastapiShop, Shop
from postgres_server import PostgresServer


@pytest.fixture(scope="module", params=["django", "fastapi"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One for all tests of a file: starting its three processes takes longer than they do."""
    folder = tmp_path_factory.mktemp("shop")
    if request.param == "django":
        with Following("django_shop", folder) as following:
            yield DjangoShop(following)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database()
    with Following(
        "fastapi_shop", folder, replaced={"postgresql://localhost/shop": server.url(name)}
    ) as following:
        yield FastapiShop(following)
    server.drop_database(name)
