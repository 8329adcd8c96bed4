"""Gives tests a browser, pages that are watched, and a real server to look at.

Playwright occupies the thread's event loop as long as it runs. Tests here are plain functions, and what they need may
not call `asyncio.run`.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from server_process import ServerProcess
from tests.browser.guard import Guard
from tests.browser.scenes import Api, Scene
from tests.browser.switched_receiver import SwitchedReceiver

CEILING_MS = int(os.environ.get("HOOKLINE_BROWSER_CEILING_MS", "120000"))  # the machine may be busy
# Chromium asks nobody anything: no name but our own resolves, whatever it wants to know at its start.
ALONE = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-first-run",
    "--no-proxy-server",
)
KEY = "hlk_the_key_of_the_browsers_tests"
SHOTS = pytest.StashKey[Path]()
Scheme = Literal["light", "dark"]


class NewPage(Protocol):
    """Opens a page in a context of its own; paths are relative to the server."""

    def __call__(
        self,
        server: str,
        *,
        width: int = 1440,
        height: int = 900,
        scheme: Scheme = "light",
        javascript: bool = True,
    ) -> Page: ...


class Shots(Protocol):
    """Stores a picture of the whole page as NAME-WIDTH-SCHEME.png."""

    def __call__(self, page: Page, name: str) -> Path: ...


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Of the module and not of the session, so that the event loop is free after it."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed (Debian package chromium)")
        pytest.skip("chromium is not installed: the dashboard was not tested in it")
    expect.set_options(timeout=CEILING_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ALONE, timeout=CEILING_MS)
        yield browser
        browser.close()


@pytest.fixture
def guard() -> Guard:
    """What the test's pages did and must not do; `guard.take()` accepts it."""
    return Guard()


@pytest.fixture
def new_page(browser: Browser, guard: Guard) -> Iterator[NewPage]:
    """Opens pages; the test fails if one breaks its policy, has an error or asks another server."""
    contexts: list[BrowserContext] = []

    def new_page(
        server: str,
        *,
        width: int = 1440,
        height: int = 900,
        scheme: Scheme = "light",
        javascript: bool = True,
    ) -> Page:
        context = browser.new_context(
            base_url=server,
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=javascript,
            reduced_motion="reduce",  # colours change at once: none is judged on its way
            locale="en-GB",
            timezone_id="UTC",
        )
        contexts.append(context)
        context.set_default_timeout(CEILING_MS)
        guard.watch(context, origin=server)
        return context.new_page()

    try:
        yield new_page
        guard.check()
    finally:
        for context in contexts:
            context.close()


@pytest.fixture
def shots(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shots:
    """Stores pictures where HOOKLINE_SHOTS says, else in a temporary folder; the summary names it."""
    stash = request.config.stash
    if SHOTS not in stash:
        chosen = os.environ.get("HOOKLINE_SHOTS")
        stash[SHOTS] = Path(chosen) if chosen else tmp_path_factory.mktemp("shots")
        stash[SHOTS].mkdir(parents=True, exist_ok=True)

    def shoot(page: Page, name: str) -> Path:
        is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        assert page.viewport_size is not None
        width, scheme = page.viewport_size["width"], "dark" if is_dark else "light"
        path = stash[SHOTS] / f"{name}-{width}-{scheme}.png"
        page.screenshot(path=path, full_page=True, caret="initial")  # hiding it would add a style to the page
        return path

    return shoot


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if SHOTS in config.stash:
        terminalreporter.write_line(f"pictures of pages: {config.stash[SHOTS]}")


@contextlib.contextmanager
def serving(
    database: str,
    request: pytest.FixtureRequest,
    folder: Path,
    *,
    key: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[ServerProcess]:
    """`hookline serve` on a fresh database of this kind, which makes its schema itself; without a key `--dev`."""
    mode = [] if key else ["--dev"]
    env = dict(settings or {}) | (
        {"HOOKLINE_API_KEY": key, "HOOKLINE_ALLOW_NETWORKS": "127.0.0.0/8"} if key else {}
    )
    if database == "sqlite":
        with ServerProcess(
            *mode, "--database", f"sqlite:///{folder}/hookline.db", cwd=folder, env=env
        ) as server:
            yield server
        return
    postgres = request.getfixturevalue("postgres_server")
    name = postgres.create_database()
    try:
        with ServerProcess(*mode, "--database", postgres.url(name), cwd=folder, env=env) as server:
            yield server
    finally:
        postgres.drop_database(name)


def database_of(server: ServerProcess) -> str:
    """The URL of its database."""
    command = server._command
    return command[command.index("--database") + 1]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """Which database the server is on: "sqlite" or "postgres", the newest one."""
    kind: str = request.param
    return kind


@pytest.fixture
def server(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    """A fresh server of the test's own, on each database."""
    with serving(database, request, tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def shared_server(
    database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """One server for all tests of a module that only look, on each database."""
    with serving(database, request, tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def watched_server(
    database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The same, but it looks for alerts every second."""
    folder = tmp_path_factory.mktemp("watched")
    with serving(database, request, folder, settings={"HOOKLINE_ALERT_EVERY_S": "1"}) as server:
        yield server


@pytest.fixture(scope="module")
def scene(watched_server: ServerProcess) -> Iterator[Scene]:
    """The server of the module, with a day's trouble."""
    with SwitchedReceiver() as receiver:
        api = Api(watched_server.url)
        yield Scene(api, receiver, database_of(watched_server))
        api.close()


@pytest.fixture(scope="module")
def keyed_server(
    database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """One server for all tests of a module that wants KEY, on each database."""
    with serving(database, request, tmp_path_factory.mktemp("keyed"), key=KEY) as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[SwitchedReceiver]:
    """A running receiver with a path for each way to answer."""
    with SwitchedReceiver() as receiver:
        yield receiver
