"""What `hookline outbox` prints, does and ends with."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from refused_rows import add_refused_row, note_source
from server_process import ServerProcess, run

UNKNOWN = "evt_" + "0" * 26


class Shell:
    """A shell that knows where the server is, and its database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.database = f"sqlite:///{folder}/hookline.db"

    def __call__(self, *arguments: str, **env: str) -> Any:
        return run(*arguments, cwd=self.folder, env={"HOOKLINE_URL": self.url, **env})

    def json(self, *arguments: str) -> Any:
        result = self(*arguments, "--json")
        assert (result.returncode, result.stderr) == (0, ""), result
        return json.loads(result.stdout)

    def row(self, **fields: Any) -> str:
        return add_refused_row(self.database, **fields)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("outbox")
    with ServerProcess("--dev", cwd=folder) as server:
        yield Shell(server.url, folder)
        assert server.stop() == 0
        assert "Traceback" not in server.stderr


@pytest.fixture
def account() -> str:
    return f"cli{uuid4().hex[:8]}"


def assert_ends(result: Any, code: int, *words: str) -> None:
    assert (result.returncode, result.stdout) == (code, ""), result
    for word in words:
        assert word in result.stderr


def test_refused_rows_are_listed_and_shown(shell, account):
    id = shell.row(account=account, type="no type", code="invalid_type", detail="An event type is a name.")
    listed = shell("outbox", "list", "--account", account)
    assert listed.returncode == 0
    for word in ("no type", "invalid_type", account, "own", id[:15]):
        assert word in listed.stdout
    assert [each["id"] for each in shell.json("outbox", "list", "--account", account)] == [id]
    shown = shell("outbox", "show", id)
    assert "An event type is a name." in shown.stdout
    assert shell.json("outbox", "show", id)["payload"] == {"id": 42}


def test_an_id_may_be_a_prefix(shell, account):
    id = shell.row(account=account)
    assert shell.json("outbox", "show", id[:-2])["id"] == id
    assert_ends(shell("outbox", "show", id[:9]), 2, "at least 8 characters")
    assert_ends(shell("outbox", "show", UNKNOWN), 4, UNKNOWN)
    assert_ends(shell("outbox", "show", "evt_00000000"), 4)
    assert_ends(shell("outbox", "show", "dlv_00000000"), 4)


def test_a_row_is_retried_by_its_id(shell, account):
    id = shell.row(account=account)
    assert shell("outbox", "retry", id[:20]).stdout == f"{id} is published.\n"
    assert shell.json("events", "show", id)["account"] == account
    assert_ends(shell("outbox", "retry", id), 4)


def test_a_row_that_is_refused_again_ends_the_command_with_the_reason(shell, account):
    id = shell.row(account=account, type="no type")
    assert_ends(shell("outbox", "retry", id), 5, "An event type is")
    assert shell.json("outbox", "show", id)["code"] == "invalid_type"


def test_rows_are_retried_by_filter_the_oldest_first_and_the_bad_ones_stay(shell, account):
    ids = [shell.row(account=account, hops=0 if n != 1 else 99) for n in range(4)]
    dry = shell("outbox", "retry", "--account", account, "--dry-run")
    assert dry.stdout == "4 rows match; nothing is published in a dry run.\n"
    assert shell.json("outbox", "retry", "--account", account, "--dry-run") == {"matched": 4, "ids": ids}
    done = shell("outbox", "retry", "--account", account)
    assert (done.returncode, done.stdout) == (5, "3 rows published.\n")
    assert f"1 row not published: {ids[1]}: " in done.stderr
    assert [each["id"] for each in shell.json("outbox", "list", "--account", account)] == [ids[1]]
    again = shell("outbox", "retry", "--account", account, "--json")
    result = json.loads(again.stdout)
    assert (again.returncode, result["failed"], [each["id"] for each in result["errors"]]) == (5, 1, [ids[1]])
    assert_ends(shell("events", "show", ids[1]), 4, f"hookline outbox show {ids[1]}")
    published = [each["id"] for each in shell.json("events", "list", "--account", account)]
    assert sorted(published) == sorted([ids[0], *ids[2:]])


def test_a_reason_that_there_is_not_is_a_usage_error_with_the_nearest_one(shell):
    assert_ends(shell("outbox", "retry", "--code", "schema_mismatsh"), 2, "did you mean schema_mismatch?")
    assert_ends(shell("outbox", "list", "--code", "nonsense"), 2, "too_large")


def test_discarding_asks_first(shell, account):
    ids = [shell.row(account=account) for _ in range(3)]
    assert_ends(shell("outbox", "discard", ids[0]), 2, "--yes")
    assert shell("outbox", "discard", ids[0], "--yes").stdout == f"{ids[0]} is discarded.\n"
    many = shell("outbox", "discard", "--account", account, "--yes")
    assert (many.returncode, many.stdout) == (0, "2 rows discarded.\n")
    assert shell.json("outbox", "list", "--account", account) == []
    assert_ends(shell("outbox", "discard", ids[0], "--yes"), 4)


@pytest.mark.parametrize("verb", ["retry", "discard"])
@pytest.mark.parametrize("how", [[], [UNKNOWN, "--all"], ["--all", "--code", "too_large"]])
def test_rows_are_chosen_in_one_way(shell, verb, how):
    assert_ends(shell("outbox", verb, *how), 2, "in one way")


def test_health_and_status_tell_of_refused_rows(shell, account):
    shell.row(account=account)
    assert "1 outbox row" in shell("health", "--account", account).stdout
    assert shell.json("health", "--account", account)["outbox_refused"] == 1
    assert "1 outbox row was refused" in shell("status", "--account", account).stdout
    assert "outbox row" not in shell("health", "--account", f"{account}x").stdout


def test_doctor_tells_of_refused_rows_and_of_outboxes_that_are_not_configured(shell, account):
    shell.row(account=account)
    note_source(shell.database, account, looked_at=time.time() - 900)
    told = shell("doctor", "--database", shell.database).stdout
    assert "`hookline outbox list` says why" in told
    assert f"`hookline outbox forget {account}`" in told


def test_outboxes_are_listed_and_a_removed_one_is_forgotten(shell, account):
    now = time.time()
    name = f"postgresql://db.example/{account}"
    trouble = "There is no table hookline.outbox here: make it."
    note_source(shell.database, name, looked_at=now - 700, trouble=trouble)
    assert name in shell("outbox", "sources").stdout
    [found] = [each for each in shell.json("outbox", "sources")["data"] if each["name"] == name]
    assert (found["state"], found["detail"]) == ("missing", trouble)
    assert_ends(shell("outbox", "forget", name), 2, "--yes")
    still = shell(
        "outbox", "forget", name, "--yes", HOOKLINE_OUTBOX=f"postgresql://shop:secret@db.example/{account}"
    )
    assert_ends(still, 5, "HOOKLINE_OUTBOX")
    assert_ends(shell("outbox", "forget", "own", "--yes"), 5, "always read")
    assert shell("outbox", "forget", name, "--yes").stdout == f"The outbox {name} is forgotten.\n"
    assert_ends(shell("outbox", "forget", name, "--yes"), 4, name)
    assert all(each["name"] != name for each in shell.json("outbox", "sources")["data"])
    with closing(sqlite3.connect(shell.folder / "hookline.db")) as connection:
        told = "SELECT actor FROM audit WHERE action = 'outbox.forgotten' AND subject = ?"
        assert connection.execute(told, (name,)).fetchall() == [("command_line",)]


def test_an_outbox_that_a_server_reads_is_not_forgotten(shell, account):
    name = f"postgresql://db.example/{account}"
    note_source(shell.database, name, looked_at=time.time() - 6)
    assert_ends(shell("outbox", "forget", name, "--yes"), 5, "was read", " s ago", "HOOKLINE_OUTBOX")
    assert any(each["name"] == name for each in shell.json("outbox", "sources")["data"])
