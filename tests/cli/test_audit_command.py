"""`hookline audit` shows who changed what, and commands that work on the database itself are in it."""

import json
import os
import pwd
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from server_process import ServerProcess, run

DATABASE = ("--database", "sqlite:///x.db")
SEALING = {"HOOKLINE_SECRET_KEY": "f" * 40}
ME = pwd.getpwuid(os.getuid()).pw_name
DAY = 86_400.0


def trail(folder: Path) -> list[dict[str, Any]]:
    """The entries in the database, oldest first."""
    with closing(sqlite3.connect(folder / "x.db")) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT * FROM audit ORDER BY id").fetchall()
    return [dict(row) | {"changes": json.loads(row["changes"])} for row in rows]


def done(*arguments: str, cwd: Path, **env: str) -> Any:
    result = run(*arguments, *DATABASE, cwd=cwd, env=env)
    assert result.returncode == 0, result.stderr
    return result


def test_what_is_done_to_keys_on_the_command_line_is_told_with_the_user_who_did_it(tmp_path):
    made = json.loads(
        done("keys", "create", "shop", "--scope", "read", "--account", "acme", "--json", cwd=tmp_path).stdout
    )
    done("keys", "list", cwd=tmp_path)
    done("keys", "revoke", made["id"], "--yes", cwd=tmp_path, LOGNAME="somebody", USER="somebody")
    done("keys", "revoke", made["id"], "--yes", cwd=tmp_path)  # changes nothing
    created, revoked = trail(tmp_path)
    assert (created["action"], revoked["action"]) == ("key.created", "key.revoked")
    for entry in (created, revoked):
        assert (entry["subject"], entry["account"]) == (made["id"], "acme")
        assert (entry["actor"], entry["actor_name"]) == ("command_line", ME)
        assert (entry["via"], entry["address"]) == ("cli", socket.gethostname())
    assert created["changes"]["scopes"] == [None, ["read"]]
    assert made["key"] not in str(trail(tmp_path))


def test_the_key_of_the_first_start_is_told(tmp_path):
    with ServerProcess(*DATABASE, cwd=tmp_path) as server:
        assert server.stop() == 0
    [entry] = trail(tmp_path)
    assert (entry["action"], entry["actor"], entry["via"]) == ("key.created", "command_line", "cli")


def test_sealing_and_unsealing_are_told_once_each_and_a_wrong_key_not_at_all(tmp_path):
    done("migrate", cwd=tmp_path)
    done("secrets", "seal", cwd=tmp_path, **SEALING)
    wrong = run("secrets", "unseal", "--yes", *DATABASE, cwd=tmp_path, env={"HOOKLINE_SECRET_KEY": "w" * 40})
    assert wrong.returncode == 2
    done("secrets", "unseal", "--yes", cwd=tmp_path, **SEALING)
    assert [entry["action"] for entry in trail(tmp_path)] == ["secrets.sealed", "secrets.unsealed"]
    assert {entry["actor_name"] for entry in trail(tmp_path)} == {ME}


def aged(folder: Path, days: int) -> None:
    with closing(sqlite3.connect(folder / "x.db")) as connection, connection:
        connection.execute("UPDATE audit SET at = at - ?", [days * DAY])


def test_pruning_by_hand_is_told_deletes_old_entries_and_asked_for_an_age_leaves_them(tmp_path):
    done("keys", "create", "old", "--scope", "read", cwd=tmp_path)
    aged(tmp_path, 400)
    done("prune", "--dry-run", cwd=tmp_path)
    done("prune", "--yes", "--older-than", "1h", cwd=tmp_path)
    done("prune", "--yes", cwd=tmp_path, HOOKLINE_KEEP_AUDIT_DAYS="never")
    kept = trail(tmp_path)
    assert [entry["action"] for entry in kept] == ["key.created", "events.pruned", "events.pruned"]
    assert kept[1]["changes"] == {"delivered_days": [None, 0.042], "dead_days": [None, 0.042]}
    done("prune", "--yes", cwd=tmp_path)
    left = trail(tmp_path)
    assert [entry["action"] for entry in left] == ["events.pruned"] * 3
    assert left[2]["changes"]["audit_days"] == [None, 365.0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("--dev", cwd=tmp_path_factory.mktemp("audit")) as server:
        yield server
        assert server.stop() == 0


def call(server: ServerProcess, method: str, path: str, body: Any = None) -> Any:
    answer = httpx.request(method, server.url + path, json=body, trust_env=False, timeout=30)
    assert answer.is_success, answer.text
    return answer.json()


def shown(server: ServerProcess, *arguments: str, cwd: Path) -> Any:
    return run("audit", *arguments, cwd=cwd, env={"HOOKLINE_URL": server.url})


def test_the_trail_is_a_table_for_people_and_json_for_programs(server, tmp_path):
    fields = {"url": "https://a.example/", "events": ["no.such"], "account": "acme"}
    id = call(server, "POST", "/v1/endpoints", fields)["id"]
    call(server, "PATCH", f"/v1/endpoints/{id}", {"url": "https://b.example/"})
    call(server, "PUT", "/v1/accounts/birch", {"notify": {"email": "a@b.example"}})
    everything = json.loads(shown(server, "--json", cwd=tmp_path).stdout)
    assert [entry["action"] for entry in everything] == [
        "account.updated",
        "endpoint.updated",
        "endpoint.created",
    ]
    [changed] = json.loads(
        shown(server, "--action", "endpoint.updated", "--account", "acme", "--json", cwd=tmp_path).stdout
    )
    assert changed["changes"] == {"url": ["https://a.example/", "https://b.example/"]}
    assert changed["actor"]["kind"] == "development"
    table = shown(server, "--subject", id[:13], "--since", "1h", cwd=tmp_path)
    assert table.returncode == 0, table.stderr
    head, first, second = table.stdout.splitlines()
    assert head.split() == ["WHEN", "ACTION", "SUBJECT", "WHO", "VIA", "FROM", "CHANGES"]
    assert "endpoint.updated" in first
    assert "127.0.0.1" in first
    assert "development" in first
    assert "endpoint.created" in second
    by_name = shown(server, "--subject", "birch", cwd=tmp_path).stdout
    assert "account.updated" in by_name
    assert "endpoint" not in by_name
    assert json.loads(shown(server, "--until", "1h", "--json", cwd=tmp_path).stdout) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--action", "endpoint.eaten"], 5, "action is one of"),
        (["--actor", "night"], 5, "is the id of a key"),
        (["--account", "no account"], 2, "account"),
        (["--since", "yesterday"], 2, "yesterday"),
        (["--subject", "ep_00000000"], 4, "ep_00000000"),
    ],
)
def test_a_bad_filter_is_refused_in_one_line(server, tmp_path, arguments, code, words):
    result = shown(server, *arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (code, "")
    assert words in result.stderr
