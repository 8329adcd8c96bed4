"""A real server on each store, and both clients behind one interface."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest

from hookline import HooklineClient, SyncHooklineClient
from hookline.client.aio.listing import AsyncListing
from server_process import ServerProcess

KEY = "hlk_the_key_of_these_tests"


class Blocking:
    """The asynchronous client with the interface of the synchronous one, so that one test covers both."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, client: HooklineClient) -> None:
        self._portal = portal
        self._client = client

    def __repr__(self) -> str:
        return repr(self._client)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def called(*arguments: Any, **named: Any) -> Any:
            if inspect.iscoroutinefunction(method):
                return self._portal.call(lambda: method(*arguments, **named))
            return BlockingListing(self._portal, method(*arguments, **named))

        return called


class BlockingListing:
    def __init__(self, portal: anyio.from_thread.BlockingPortal, listing: AsyncListing[Any]) -> None:
        self._portal = portal
        self._listing = listing

    def page(self, **named: Any) -> Any:
        return self._portal.call(lambda: self._listing.page(**named))

    def __iter__(self) -> Iterator[Any]:
        async def all_of_it() -> list[Any]:
            return [each async for each in self._listing]

        return iter(self._portal.call(all_of_it))


Connect = Callable[..., Any]


@pytest.fixture(params=["async", "sync"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Makes clients of one kind, closed at the end."""
    with contextlib.ExitStack() as stack:
        if request.param == "sync":
            yield lambda url, key=KEY, **named: stack.enter_context(SyncHooklineClient(url, key, **named))
            return
        portal = stack.enter_context(anyio.from_thread.start_blocking_portal("asyncio"))

        def make(url: str, key: str | None = KEY, **named: Any) -> Blocking:
            client = HooklineClient(url, key, **named)
            stack.callback(portal.call, client.close)
            return Blocking(portal, client)

        yield make


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server on an empty database of its own."""
    folder = tmp_path_factory.mktemp("server")
    with contextlib.ExitStack() as stack:
        database = f"sqlite:///{folder}/hooks.db"
        if request.param == "postgres":
            database = stack.enter_context(request.getfixturevalue("postgres_server").fresh_database())
        yield stack.enter_context(serving(database, folder))


@contextlib.contextmanager
def serving(database: str, folder: Path) -> Iterator[ServerProcess]:
    env = {"HOOKLINE_API_KEY": KEY, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8", "HOOKLINE_DRAIN_S": "60"}
    with ServerProcess("--database", database, cwd=folder, env=env) as process:
        yield process
        assert process.stop() == 0
        assert "Traceback" not in process.stderr
