"""`hookline status` says how it is, `hookline top` shows it live, and `hookline endpoints recover` mends it."""

import json

import pytest

from answering import eventually, receiving
from file_holder import holding
from hookline.cli.exits import UNREACHABLE
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

            def shown(self, *arguments, until):
                """What a command shows, when it is what is waited for.

                A busy machine keeps the server from an answer, or the database from what is known, for some seconds.
                """

                def look():
                    result = self.run(*arguments)
                    assert result.returncode in (0, 1, UNREACHABLE), result.stderr
                    return result if result.returncode != UNREACHABLE and until(result) else None

                return eventually(look)

            def status(self, until):
                """The situation, when it is known and is what is waited for."""

                def is_wanted(result):
                    found = json.loads(result.stdout)
                    return found["health"] is not None and until(found)

                return json.loads(self.shown("status", "--json", until=is_wanted).stdout)

            def broken(self):
                """An endpoint with an open circuit, one delivery that waits and one dead letter."""
                circuit = json.dumps({"consecutive_failures": 2, "min_attempts": 1_000})
                made = self.ok(
                    *("endpoints", "create", f"{receiver.url}/500", "--event", "*", "--retry", "[0, 0]"),
                    *("--field", f"circuit={circuit}", "--json"),
                )
                id = json.loads(made)["id"]
                self.ok("send", "order.paid", "{}")
                self.status(lambda found: found["troubles"])
                self.ok("send", "order.paid", "{}")
                self.status(lambda found: {(1, 1)} == {(e["dead"], e["pending"]) for e in found["worst"]})
                return id

        yield World()
        assert server.stop() == 0


def test_a_new_server_is_healthy(world):
    result = world.shown("status", until=lambda result: result.returncode == 0)
    assert result.stdout.splitlines()[0] == "Nothing was published yet."
    world.shown("top", until=lambda result: result.stdout.startswith("Nothing was published yet.\n"))


def test_an_endpoint_that_fails_is_named_and_brought_back(world):
    id = world.broken()
    failing = "1 endpoint is failing. Everything else flows.\n"
    result = world.shown("status", until=lambda result: result.stdout.startswith(failing))
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert any(line.startswith("    hookline endpoints recover ep_") for line in lines)
    assert max(map(len, lines)) <= 80

    refused = world.run("endpoints", "recover", id, "--yes")
    assert refused.returncode == 1
    assert "it does not accept yet" in refused.stderr
    tests = json.loads(world.ok("deliveries", "list", "--type", "hookline.test", "--json"))
    assert {each["state"] for each in tests} == {"cancelled"}, "nothing of the test is left to send"

    world.ok("endpoints", "update", id, "--to", f"{world.url}/200")
    found = json.loads(world.ok("endpoints", "recover", id, "--yes", "--json"))
    assert found["attempt"]["status"] == 200
    assert found["replay"]["done"] == found["replay"]["matched"] >= 1

    world.status(lambda found: not found["worst"])
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


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_top_runs_until_a_key_ends_it(world, key):
    def ended():
        with Terminal("top", cwd=world.folder, env=world.env) as terminal:
            try:
                terminal.wait_for("q ends")
            except AssertionError:
                assert terminal.end() == UNREACHABLE, terminal.seen  # its first question took too long
                return None
            terminal.type(key)
            return terminal.end()

    assert eventually(ended) == 0


def test_a_database_that_takes_no_writes_is_said(world):
    with holding(world.folder / "hookline.db"):
        said = "Nothing is accepted: the database does not take writes.\n"
        result = world.shown("status", until=lambda result: result.stdout.startswith(said))
        assert result.returncode == 1


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


@pytest.mark.parametrize(
    ("pattern", "steps"),
    [
        ("outage", ["endpoints recover"]),
        (None, ["endpoints recover"]),
        ("credentials", ["endpoints update", "endpoints recover"]),
        ("throttled", ["endpoints update"]),
        ("rejected", ["dead analyse --endpoint"]),
        ("gone", ["endpoints update", "endpoints enable"]),
    ],
)
def test_the_next_step_fits_the_cause(pattern, steps):
    endpoint = {
        "endpoint_id": "ep_" + "0" * 26,
        "account": "acme",
        "waiting": 1,
        "dead": 2,
        "circuit": "closed",
        "opened_at": None,
        "last_success_at": None,
        "pattern": pattern,
    }
    trouble = {"name": "receiver.example/x", "sentence": "It fails.", "endpoints": [endpoint]}
    lines = list(status_lines(shown(troubles=[trouble]), width=80, now=NOW))
    commands = [line.strip() for line in lines if line.startswith("    hookline ")]
    assert [each.removeprefix("hookline ").split(" ep_")[0] for each in commands] == steps
    assert all("ep_0" in each for each in commands)


def test_the_command_that_shows_more_of_outboxes_is_below_the_sentence():
    lines = list(status_lines(shown(step="hookline outbox list"), width=80, now=NOW))
    assert lines[:3] == [shown()["headline"], "    hookline outbox list", ""]


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
