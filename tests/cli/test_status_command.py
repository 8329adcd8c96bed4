"""`hookline status` says how it is, `hookline top` shows it live, and `hookline endpoints recover` mends it."""

import json
import sqlite3
from contextlib import closing

import pytest

from answering import eventually, receiving
from hookline.cli.printing.status_screen import status_lines
from server_process import ServerProcess, run
from terminal import Terminal

NOW = 1_794_957_600.0  # 2026-11-17, 23:20 UTC


@pytest.fixture
def world(tmp_path):
    """A server, a receiver and the command line."""
    with receiving() as receiver, ServerProcess("--dev", cwd=tmp_path) as server:

        class World:
            url, folder = receiver.url, tmp_path
            env = {"HOOKLINE_URL": server.url}  # noqa: RUF012

            def run(self, *arguments):
                return run(*arguments, cwd=tmp_path, env=self.env)

            def ok(self, *arguments):
                result = self.run(*arguments)
                assert result.returncode == 0, result.stderr
                return result.stdout

            def status(self):
                return json.loads(self.run("status", "--json").stdout)

            def broken(self):
                """An endpoint with an open circuit, one delivery that waits and one dead letter."""
                circuit = json.dumps({"consecutive_failures": 2, "min_attempts": 1_000})
                made = self.ok(
                    *("endpoints", "create", f"{receiver.url}/500", "--event", "*", "--retry", "[0, 0]"),
                    *("--field", f"circuit={circuit}", "--json"),
                )
                id = json.loads(made)["id"]
                self.ok("send", "order.paid", "{}")
                eventually(lambda: self.status()["troubles"] or None)
                self.ok("send", "order.paid", "{}")
                eventually(
                    lambda: {(1, 1)} == {(e["dead"], e["pending"]) for e in self.status()["worst"]} or None
                )
                return id

        yield World()
        assert server.stop() == 0


def test_a_new_server_is_healthy(world):
    eventually(lambda: world.status()["healthy"] or None)
    result = world.run("status")
    assert (result.returncode, result.stdout.splitlines()[0]) == (0, "Nothing was published yet.")
    assert world.ok("top").splitlines()[0] == "Nothing was published yet."


def test_an_endpoint_that_fails_is_named_and_brought_back(world):
    id = world.broken()
    result = world.run("status")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "1 endpoint is failing. Everything else flows."
    assert any(line.startswith("    hookline endpoints recover ep_") for line in lines)
    assert max(map(len, lines)) <= 80

    refused = world.run("endpoints", "recover", id, "--yes")
    assert refused.returncode == 1
    assert "it does not accept yet" in refused.stderr

    world.ok("endpoints", "update", id, "--to", f"{world.url}/200")
    found = json.loads(world.ok("endpoints", "recover", id, "--yes", "--json"))
    assert found["attempt"]["status"] == 200
    assert found["replay"]["done"] == found["replay"]["matched"] >= 1

    eventually(lambda: not world.status()["worst"] or None)
    shown = json.loads(world.ok("endpoints", "show", id, "--json"))
    assert shown["circuit_state"]["state"] == "closed"


def test_dead_letters_are_left_where_nobody_asked_for_a_replay(world):
    id = world.broken()
    world.ok("endpoints", "update", id, "--to", f"{world.url}/200")
    result = world.run("endpoints", "recover", id)
    assert result.returncode == 0, result.stderr
    assert f"hookline dead replay --endpoint {id} --since " in result.stderr
    assert json.loads(world.ok("dead", "list", "--json"))


def test_an_endpoint_that_is_paused_or_unknown_is_not_recovered(world):
    made = json.loads(world.ok("endpoints", "create", f"{world.url}/200", "--event", "*", "--json"))
    world.ok("endpoints", "pause", made["id"])
    assert world.run("endpoints", "recover", made["id"]).returncode == 5
    assert world.run("endpoints", "recover", "ep_" + "0" * 26).returncode == 4


def test_top_runs_until_q(world):
    with Terminal("top", cwd=world.folder, env=world.env) as terminal:
        terminal.wait_for("q ends")
        terminal.type(b"q")
        assert terminal.process.wait(60) == 0


def test_top_ends_with_ctrl_c(world):
    with Terminal("top", cwd=world.folder, env=world.env) as terminal:
        terminal.wait_for("q ends")
        terminal.type(b"\x03")
        assert terminal.process.wait(60) == 0


def test_a_database_that_takes_no_writes_is_said(world):
    with closing(sqlite3.connect(world.folder / "hookline.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = world.run("status")
        assert result.returncode == 1, result.stderr
        assert result.stdout.startswith("Nothing is accepted: the database does not take writes.\n")
        other.execute("ROLLBACK")


def test_a_server_that_cannot_be_reached_ends_it_with_3(tmp_path):
    result = run("status", cwd=tmp_path, env={"HOOKLINE_URL": "http://127.0.0.1:9"})
    assert result.returncode == 3
    assert "hookline doctor" in result.stderr


def shown(**fields):
    return {
        "headline": "Nothing is known: the database does not answer.",
        "troubles": [],
        "more_troubles": 0,
        "alerts": [],
        "worst": [],
        "rates": None,
        "health": None,
        "workers": None,
        "database": {"latency_ms": None, "not_ready": "a commit has been waiting for 0.8 s"},
        **fields,
    }


def test_a_database_that_does_not_answer_leaves_a_short_screen():
    assert list(status_lines(shown(), width=80, now=NOW)) == [
        "Nothing is known: the database does not answer.",
        "",
        "database    does not answer; takes no publishes: a commit has been waiting for",
        "            0.8 s",
    ]


def test_alerts_and_hostile_texts_fit_the_screen():
    alert = {"kind": "stuck", "message": "\x1b[2J" + "many words " * 20, "since": "2026-11-17T23:00:00Z"}
    url = "https://receiver.example/" + "long/" * 60
    worst = {
        "endpoint_id": "ep_" + "0" * 26,
        "url": url,
        "account": "acme",
        "pending": 1,
        "awaiting_retry": 2,
        "dead": 3,
    }
    lines = list(status_lines(shown(alerts=[alert], worst=[worst]), width=80, now=NOW))
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert "(stuck, since 20m ago)" in " ".join(" ".join(lines).split())
