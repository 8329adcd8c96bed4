"""Keys are managed from a shell, and the first start says what to do about them."""

import json
import re
import socket
import sqlite3
import subprocess
import threading
from pathlib import Path

import httpx
import psycopg
import pytest

from answering import eventually
from server_process import CEILING_S, COMMAND, ServerProcess, environment, log_lines, run
from terminal import Terminal

DATABASE = ("--database", "sqlite:///x.db")
SHOWN = r"hlk_[A-Za-z0-9_-]{43}"
UNKNOWN = "key_" + "0" * 26
DRAINING = {"HOOKLINE_DRAIN_S": "60"}


def keys(*arguments: str, cwd: Path, database: tuple[str, ...] = DATABASE):
    return run("keys", *arguments, *database, cwd=cwd)


def status(process: ServerProcess, key: str, path: str = "/v1/keys") -> int:
    headers = {"authorization": f"Bearer {key}"}
    return httpx.get(process.url + path, headers=headers, trust_env=False, timeout=30).status_code


def test_the_first_start_makes_a_key_and_shows_it_once(tmp_path):
    with ServerProcess(*DATABASE, cwd=tmp_path, env=DRAINING) as process:
        key = process.stdout.strip()
        assert re.fullmatch(SHOWN, key)
        created, _ = process.lines
        assert (created["event"], "hlk_" in process.stderr) == ("key.created", False)
        assert status(process, key) == 200
        assert process.stop() == 0
    with ServerProcess(*DATABASE, cwd=tmp_path, env=DRAINING) as process:
        assert "hlk_" not in process.stderr + process.stdout
        assert status(process, key) == 200
        assert process.stop() == 0
    with sqlite3.connect(tmp_path / "x.db") as connection:
        assert connection.execute("SELECT count(*) FROM keys").fetchone() == (1,)
    connection.close()
    assert key.encode()[8:] not in b"".join(file.read_bytes() for file in tmp_path.glob("x.db*"))


def test_on_a_terminal_the_first_key_is_shown_with_what_to_do_about_it(tmp_path):
    with Terminal("serve", "--port", "0", *DATABASE, cwd=tmp_path, env=DRAINING) as terminal:
        terminal.wait_for("listening on")
        assert len(re.findall(SHOWN, terminal.seen)) == 1
        for words in ("shown only once", "Authorization: Bearer", "HOOKLINE_API_KEY"):
            assert words in terminal.seen
        assert "{" not in terminal.seen


@pytest.mark.parametrize("closed", [">/dev/full", ">&-"])
def test_a_first_key_that_cannot_be_printed_is_said_to_be_lost_and_the_server_goes_on(tmp_path, closed):
    log = tmp_path / "log"
    line = f'exec "$@" {closed} 2>{log}'
    command = ["sh", "-c", line, "sh", *COMMAND, "serve", "--port", "0", *DATABASE]
    server = subprocess.Popen(command, cwd=tmp_path, env=environment(DRAINING))
    try:
        eventually(lambda: (log.exists() and "server.started" in log.read_text()) or None)
        server.terminate()
        assert server.wait(CEILING_S) == 0
    finally:
        server.kill()
        server.wait(CEILING_S)
    created, *_, stopped = log_lines(log.read_text())
    assert (created["event"], stopped["event"]) == ("key.created", "process.stopped")
    assert "could not print it" in created["message"]


@pytest.mark.parametrize(
    ("arguments", "env"), [(["--dev"], {}), ([], {"HOOKLINE_API_KEY": "hlk_of_the_settings"})]
)
def test_where_none_is_needed_or_one_is_set_no_key_is_made(tmp_path, arguments, env):
    with ServerProcess(*arguments, *DATABASE, cwd=tmp_path, env={**DRAINING, **env}) as process:
        assert "hlk_" not in process.stderr + process.stdout
        assert process.stop() == 0
    assert json.loads(keys("list", "--json", cwd=tmp_path).stdout) == []


def test_of_servers_that_start_together_one_makes_the_first_key(postgres_server, tmp_path):
    with postgres_server.fresh_database() as url:
        said = []

        def serve() -> None:
            with ServerProcess("--database", url, cwd=tmp_path, env=DRAINING) as process:
                said.append(process.stdout)
                assert process.stop() == 0

        threads = [threading.Thread(target=serve) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(len(re.findall(SHOWN, each)) for each in said) == [0, 0, 1]
        with psycopg.connect(url) as session:
            assert session.execute("SELECT count(*) FROM hookline.keys").fetchone() == (1,)


def test_a_start_where_all_keys_are_revoked_says_so_and_makes_none(tmp_path):
    created = json.loads(keys("create", "--scope", "admin", "--json", cwd=tmp_path).stdout)
    assert keys("revoke", created["id"], "--yes", cwd=tmp_path).returncode == 0
    with ServerProcess(*DATABASE, cwd=tmp_path, env=DRAINING) as process:
        assert "all API keys of this database are revoked" in process.stderr
        assert not re.search(SHOWN, process.stderr)
        assert process.stop() == 0


def test_a_key_is_made_before_the_first_start_listed_shown_and_revoked(tmp_path):
    done = keys(
        "create", "the shop", "--scope", "read", "--scope", "publish", "--account", "acme", cwd=tmp_path
    )
    assert (done.returncode, bool(re.fullmatch(SHOWN + "\n", done.stdout))) == (0, True), done.stderr
    [id] = re.findall(r"key_[0-9a-v]{26}", done.stderr)
    assert "hlk_" not in done.stderr
    listed = keys("list", cwd=tmp_path)
    header, line = listed.stdout.splitlines()
    assert header.split() == ["ID", "NAME", "BEGINS", "SCOPES", "ACCOUNT", "CREATED", "STATE"]
    for word in (id[:14], "active", "the shop", done.stdout[:8], "publish", "read", "acme"):
        assert word in line
    assert done.stdout.strip() not in listed.stdout
    shown = json.loads(keys("show", id, "--json", cwd=tmp_path).stdout)
    assert (shown["scopes"], shown["account"], shown["revoked_at"]) == (["publish", "read"], "acme", None)
    assert json.loads(keys("list", "--json", cwd=tmp_path).stdout) == [shown]
    short = line.split()[0]
    assert json.loads(keys("show", short, "--json", cwd=tmp_path).stdout) == shown
    too_short = keys("show", id[:10], cwd=tmp_path)
    assert (too_short.returncode, "at least 8 characters" in too_short.stderr) == (2, True)
    asked = keys("revoke", id, cwd=tmp_path)
    assert (asked.returncode, "--yes" in asked.stderr) == (2, True)
    revoked = keys("revoke", id, "--yes", cwd=tmp_path)
    assert (revoked.returncode, revoked.stdout) == (0, f"{id} is revoked.\n")
    again = json.loads(keys("revoke", id, "--yes", "--json", cwd=tmp_path).stdout)
    assert again == json.loads(keys("show", id, "--json", cwd=tmp_path).stdout)
    assert again["revoked_at"] is not None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["create"], 2, "--scope"),
        (["create", "--scope", "write"], 2, "write"),
        (["create", "--scope", "read", "--account", "a b"], 2, "1 to 64"),
        (["create", "x" * 201, "--scope", "read"], 2, "200"),
        (["show", UNKNOWN], 4, UNKNOWN),
        (["revoke", UNKNOWN, "--yes"], 4, UNKNOWN),
        (["revoke", "nonsense", "--yes"], 4, "nonsense"),
        (["show"], 2, "KEY_ID"),
    ],
)
def test_what_will_not_do_is_refused_and_makes_nothing(tmp_path, arguments, code, words):
    run("migrate", *DATABASE, cwd=tmp_path)
    done = keys(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert words in done.stderr
    assert json.loads(keys("list", "--json", cwd=tmp_path).stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["show", UNKNOWN],
        ["show", "key_x"],
        ["revoke", UNKNOWN, "--yes"],
        ["revoke", "key_x", "--yes"],
    ],
)
def test_looking_makes_no_database(tmp_path, arguments):
    done = keys(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "There is no database" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_does_not_answer_is_unreachable(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"postgresql://me:canary@127.0.0.1:{closed.getsockname()[1]}/x"
        done = keys("create", "--scope", "read", cwd=tmp_path, database=("--database", url))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "canary" not in done.stderr


def test_keys_are_made_in_postgresql_too(postgres_server, tmp_path):
    name = postgres_server.create_database()
    database = ("--database", postgres_server.url(name))
    created = json.loads(keys("create", "--scope", "admin", "--json", cwd=tmp_path, database=database).stdout)
    listed = json.loads(keys("list", "--json", cwd=tmp_path, database=database).stdout)
    assert [key["id"] for key in listed] == [created["id"]]
    postgres_server.drop_database(name)
