"""A real server on each store, with a receiver, and visitors of its pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from postgres_server import PostgresServer
from server_process import ServerProcess
from tests.dashboard.site import Site, Target

KEY = "hlk_the_key_of_these_tests"


class Service:
    """A running server, its API and its database."""

    def __init__(self, url: str, target: Target, database: str) -> None:
        self.url = url
        self.database = database
        self.target = target
        self.client = httpx.Client(
            base_url=url, headers={"authorization": f"Bearer {KEY}"}, timeout=60, trust_env=False
        )

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the API; its answer, which must be a success."""
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def create(self, path: str = "/ok", **fields: Any) -> dict[str, Any]:
        """An endpoint at a path of the receiver; its events are of a type of their own if none is given."""
        fields = {"url": f"{self.target.url}{path}", "events": ["order.*"], **fields}
        created: dict[str, Any] = self.call("POST", "/v1/endpoints", fields)
        return created

    def publish(self, type: str = "order.paid", payload: Any = None, **fields: Any) -> dict[str, Any]:
        published: dict[str, Any] = self.call(
            "POST", "/v1/events", {"type": type, "payload": payload or {"id": 42}, **fields}
        )
        return published

    def new_key(self, *scopes: str, account: str | None = None) -> str:
        fields = {"name": "-".join(scopes), "scopes": list(scopes), "account": account}
        key: str = self.call("POST", "/v1/keys", fields)["key"]
        return key


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    target = Target()
    yield target
    target.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, target: Target
) -> Iterator[Service]:
    """A server on an empty database of its own."""
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        yield from _serve(f"sqlite:///{folder}/hooks.db", folder, target)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.fresh_database() as url:
        yield from _serve(url, folder, target)


def _serve(database: str, folder: Path, target: Target) -> Iterator[Service]:
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_DRAIN_S": "60"}
    with ServerProcess("--database", database, cwd=folder, env=env) as process:
        service = Service(process.url, target, database)
        with service.client:
            yield service
        assert process.stop() == 0
        assert "Traceback" not in process.stderr


@pytest.fixture(scope="module")
def site(service: Service) -> Iterator[Site]:
    """A visitor with all rights."""
    site = Site(service.url, key=KEY)
    yield site
    site.close()
