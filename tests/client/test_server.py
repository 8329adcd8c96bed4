"""Which server a client calls, and what a client costs."""

import subprocess
import sys

import pytest

import hookline
from hookline import HooklineClient, SyncHooklineClient
from hookline.errors import ConfigError
from server_process import environment

BOTH = pytest.mark.parametrize("kind", [HooklineClient, SyncHooklineClient])


@BOTH
def test_url_and_key_come_from_the_arguments_else_from_the_environment(kind, monkeypatch):
    monkeypatch.delenv("HOOKLINE_URL", raising=False)
    monkeypatch.delenv("HOOKLINE_API_KEY", raising=False)
    assert repr(kind()) == f"{kind.__name__}('http://127.0.0.1:8080')"
    monkeypatch.setenv("HOOKLINE_URL", "https://hooks.example.com/base/")
    monkeypatch.setenv("HOOKLINE_API_KEY", "hlk_of_the_environment")
    monkeypatch.setenv("HOOKLINE_SOMETHING_ELSE", "that no client needs to understand")
    from_environment, from_arguments = kind()._server, kind("http://here:1", "hlk_of_the_arguments")._server
    assert (from_environment.url, from_environment.key) == (
        "https://hooks.example.com/base",
        "hlk_of_the_environment",
    )
    assert (from_arguments.url, from_arguments.key) == ("http://here:1", "hlk_of_the_arguments")


@BOTH
@pytest.mark.parametrize(
    "given",
    [
        {"url": "here"},
        {"url": "ftp://here"},
        {"url": "https://here/?a=b"},
        {"url": "https://user:hlk_secret@here"},
        {"api_key": "hlk_secret\r\nx: y"},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"retry_for": -1},
        {"retry_for": float("inf")},
    ],
)
def test_what_will_not_do_is_refused_at_once(kind, given):
    with pytest.raises(ConfigError) as raised:
        kind(**given)
    if "api_key" in given:
        assert "hlk_secret" not in str(raised.value)


@BOTH
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": 8080}, "url is a str or None, not int."),
        ({"api_key": b"hlk_secret"}, "api_key is a str or None, not bytes."),
        ({"timeout": "30"}, "timeout is a number of seconds, not str."),
        ({"retry_for": None}, "retry_for is a number of seconds, not NoneType."),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_is_accepted(kind, given, says):
    with pytest.raises(TypeError) as raised:
        kind(**given)
    assert str(raised.value) == says


@BOTH
def test_a_key_is_shown_nowhere(kind):
    client = kind("http://here:1", "hlk_secret")
    assert "hlk_secret" not in f"{client!r} {client} {client._server!r} {client._server}"


def loaded_by(program: str) -> set[str]:
    program += "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_client_loads_neither_the_server_nor_what_it_does_not_use():
    loaded = loaded_by("from hookline import SyncHooklineClient\nSyncHooklineClient()")
    assert not loaded & {"aiohttp", "asyncpg", "starlette", "uvicorn", "click", "httptools"}
    loaded = loaded_by("from hookline import HooklineClient\nHooklineClient()")
    assert not loaded & {"aiohttp", "asyncpg", "starlette", "uvicorn", "click", "httptools"}


def test_the_server_loads_no_client():
    loaded = loaded_by("import hookline.cli.server.serve, hookline.api.app, hookline.app")
    assert not loaded & {"aiohttp", "httpx", "requests", "hookline.client"}


WITHOUT_AIOHTTP = """
import sys
sys.modules["aiohttp"] = None  # as if it were not installed
from hookline import HooklineClient
from hookline.errors import MissingExtra
try:
    HooklineClient()
except MissingExtra as error:
    print(error)
"""


def test_without_aiohttp_the_asynchronous_client_says_what_to_install_when_it_is_made():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_AIOHTTP], env=environment(), capture_output=True, text=True, check=True
    )
    assert "pip install 'hookline[client]'" in done.stdout


def test_the_public_names_are_there():
    assert {getattr(hookline, name) is not None for name in hookline.__all__} == {True}
