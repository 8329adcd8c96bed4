"""What `hookline accounts` and `hookline alerts test` print, do, and end with."""

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from server_process import ServerProcess, run

NOBODY = "http://127.0.0.1:1"  # a request would end with 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--dev", cwd=tmp_path_factory.mktemp("accounts")) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.stderr


class Shell:
    """A shell that knows where the server is."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    def __call__(self, *arguments: str) -> Any:
        return run(*arguments, cwd=self.folder, env={"HOOKLINE_URL": self.url})

    def json(self, *arguments: str) -> Any:
        result = self(*arguments, "--json")
        assert (result.returncode, result.stderr) == (0, "")
        return json.loads(result.stdout)


@pytest.fixture
def shell(server: ServerProcess, tmp_path: Path) -> Shell:
    return Shell(server.url, tmp_path)


def assert_ends(result: Any, code: int, *words: str) -> None:
    assert (result.returncode, result.stdout) == (code, ""), result
    for word in words:
        assert word in result.stderr


def test_settings_are_shown_and_set_one_by_one(shell):
    hook, chat = "https://acme.example/s3cret", "https://chat.example.com/hooks/s3cret"
    assert shell.json("accounts", "show", "acme") == {
        "id": "acme",
        "notify": {"email": None, "webhook": None, "slack": None},
        "endpoints": 0,
        "updated_at": None,
    }
    shell.json("accounts", "set", "acme", "--email", "ops@acme.example", "--webhook", hook)
    both = shell.json("accounts", "set", "acme", "--slack", chat)
    assert both["notify"] == {
        "email": "ops@acme.example",
        "webhook": "https://acme.example/***",
        "slack": "https://chat.example.com/***",
    }
    assert shell.json("accounts", "show", "acme") == both
    removed = shell.json("accounts", "set", "acme", "--webhook", "", "--email", "")
    assert removed["notify"] == {"email": None, "webhook": None, "slack": "https://chat.example.com/***"}


def test_people_see_a_line_for_each_setting(shell):
    changed = shell("accounts", "set", "lines", "--email", "ops@lines.example")
    shown = shell("accounts", "show", "lines")
    assert (changed.returncode, shown.returncode) == (0, 0)
    for result in (changed, shown):
        lines = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
        assert lines[:5] == [
            ["id", "lines"],
            ["email", "ops@lines.example"],
            ["webhook"],
            ["slack"],
            ["endpoints", "0"],
        ]
        assert lines[5][0] == "updated_at"


def test_what_is_invalid_is_refused_and_changes_nothing(shell):
    before = shell.json("accounts", "set", "kept", "--email", "kept@acme.example")
    assert_ends(shell("accounts", "set", "kept"), 2, "--email, --webhook or --slack")
    assert_ends(shell("accounts", "set", "kept", "--email", "nobody"), 5, "one address")
    assert_ends(shell("accounts", "set", "kept", "--slack", "chat"), 5, "https://")
    assert_ends(shell("accounts", "set", "kept", "--webhook", "https://a.example/***"), 5, "whole URL")
    assert shell.json("accounts", "show", "kept") == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("accounts", "show", "to/ld"),
        ("accounts", "set", "to/ld", "--email", "a@b.example"),
        ("alerts", "test", "to/ld"),
        ("accounts", "portal-link", "to/ld"),
    ],
)
def test_what_is_no_account_s_name_is_a_usage_error_before_anything_is_asked(tmp_path, arguments):
    assert_ends(Shell(NOBODY, tmp_path)(*arguments), 2, "An account is 1 to 64")


def test_a_portal_link_is_printed_alone_for_people_and_whole_for_programs(shell):
    printed = shell("accounts", "portal-link", "acme")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert re.fullmatch(re.escape(shell.url) + r"/portal/enter\?token=[\w-]{43}\n", printed.stdout)
    whole = shell.json(
        "accounts", "portal-link", "acme", "--expires-in", "1m", "--visit", "8h", "--read-only"
    )
    assert whole == {
        "url": shell.url + whole["path"],
        "path": whole["path"],
        "account": "acme",
        "expires_at": whole["expires_at"],
        "visit_s": 28_800,
    }


@pytest.mark.parametrize(
    ("option", "code", "words"),
    [
        (("--expires-in", "2h"), 5, "expires_in_s is a whole number from 10 to 3,600"),
        (("--visit", "2d"), 5, "visit_s is a whole number from 60 to 86,400"),
        (("--visit", "long"), 2, "'long' is not a duration"),
    ],
)
def test_a_portal_link_that_lasts_too_long_is_refused(shell, option, code, words):
    assert_ends(shell("accounts", "portal-link", "acme", *option), code, words)


def test_options_of_a_portal_link_are_asked_for_and_nothing_else(tmp_path):
    link = {"url": "https://h.example/p", "path": "/p", "account": "a", "expires_at": "", "visit_s": 60}
    bodies: list[Any] = []
    with answering(answer=link, bodies=bodies) as (url, asked):
        shell = Shell(url, tmp_path)
        shell("accounts", "portal-link", "acme")
        shell("accounts", "portal-link", "acme", "--expires-in", "90s", "--visit", "1h", "--read-only")
    assert asked == ["POST /v1/accounts/acme/portal-link HTTP/1.1"] * 2
    assert bodies == [{}, {"expires_in_s": 90, "visit_s": 3_600, "may_act": False}]


def test_a_test_without_a_channel_fails_and_says_how_to_set_one(shell):
    result = shell("alerts", "test", "untold")
    assert_ends(result, 1, "hookline accounts set untold --email")
    assert result.stderr.count("\n") == 1
    result = shell("alerts", "test", "untold", "--json")
    assert result.returncode == 1
    assert json.loads(result.stdout) == {"account": "untold", "results": []}
    assert "hookline accounts set untold" in result.stderr


@contextmanager
def answering(
    *results: dict[str, Any], answer: Any = None, bodies: list[Any] | None = None
) -> Iterator[tuple[str, list[str]]]:
    """A server whose channels answer like this; with the requests that it got."""
    body = json.dumps(answer or {"account": "acme", "results": results}).encode()
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.requestline)
            given = self.rfile.read(int(self.headers.get("content-length", "0")))
            if bodies is not None:
                bodies.append(json.loads(given))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("request-id", "req_1")  # hookline's answers have one
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


MAIL = {"channel": "email", "recipient": "ops@acme.example", "ok": True, "detail": "250 queued as 17"}
CHAT = {"channel": "slack", "recipient": "https://chat.example/***", "ok": True, "detail": "200 ok"}
GONE = {**CHAT, "ok": False, "detail": "404 no_\x1b[31mservice"}


@pytest.mark.parametrize(("results", "code"), [([MAIL, CHAT], 0), ([MAIL, GONE], 1), ([GONE], 1)])
def test_a_test_ends_with_0_only_if_every_channel_worked(tmp_path, results, code):
    with answering(*results) as (url, asked):
        shell = Shell(url, tmp_path)
        lines = shell("alerts", "test", "acme")
        whole = shell("alerts", "test", "acme", "--json")
    assert (lines.returncode, whole.returncode) == (code, code)
    assert json.loads(whole.stdout) == {"account": "acme", "results": results}
    assert asked == ["POST /v1/accounts/acme/test-alert HTTP/1.1"] * 2


def test_a_test_prints_a_line_for_each_channel_and_moves_no_cursor(tmp_path):
    with answering(MAIL, GONE) as (url, _):
        result = Shell(url, tmp_path)("alerts", "test", "acme")
    assert result.stdout == (
        "email  ok      ops@acme.example          250 queued as 17\n"
        "slack  failed  https://chat.example/***  404 no_\\x1b[31mservice\n"
    )
    assert result.stderr == ""


@pytest.mark.parametrize("option", [("--url", NOBODY), ("--json",), ("--account", "acme"), ("--limit", "50")])
def test_an_option_of_the_list_before_test_is_refused_and_not_ignored(tmp_path, option):
    with answering(MAIL) as (url, asked):
        result = Shell(url, tmp_path)("alerts", *option, "test", "acme")
    assert_ends(result, 2, f"Give {option[0]} after test")
    assert asked == []


def test_alerts_alone_still_lists_them(shell):
    assert shell.json("alerts") == []
    assert shell.json("alerts", "--all", "--kind", "circuit_open", "--account", "acme") == []
    assert_ends(shell("alerts", "tset", "acme"), 2, "'tset'")
