"""What the commands that speak to a server print, do, and end with."""

import http.server
import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from answering import Receiver, eventually, receiving
from server_process import CEILING_S, COMMAND, ServerProcess, environment, run
from terminal import Terminal

UNKNOWN = "0" * 26
KEY = "hlk_the_key_of_these_tests"


MORE = "There are more; raise --limit to see them.\n"


class Shell:
    """A shell that knows where the server is."""

    def __init__(self, server: ServerProcess, folder: Path, receiver: Receiver) -> None:
        self.folder = folder
        self.env = {"HOOKLINE_URL": server.url}
        self.receiver = receiver

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return run(*arguments, cwd=self.folder, env=self.env)

    def json(self, *arguments: str) -> Any:
        result = self(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        assert result.stderr in ("", MORE)
        return json.loads(result.stdout)

    def endpoint(self, path: str, *options: str, account: str) -> str:
        created = self.json(
            "endpoints", "create", self.receiver.url + path, "--account", account, "--event", "*", *options
        )
        return str(created["id"])

    def die(self, account: str, number: int = 1) -> list[str]:
        """Publish events that are rejected; returns the ids of their deliveries, newest first."""
        for n in range(number):
            self.json("send", "order.paid", json.dumps({"n": n}), "--account", account)

        def look() -> list[str] | None:
            found = [each["id"] for each in self.json("dead", "list", "--account", account)]
            return found if len(found) == number else None

        return eventually(look)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("shell")
    with receiving() as receiver, ServerProcess("--dev", cwd=folder) as server:
        yield Shell(server, folder, receiver)
        assert server.stop() == 0
        assert "Traceback" not in server.stderr


def assert_ends(result: "subprocess.CompletedProcess[str]", code: int, *words: str) -> None:
    """Assert the exit code, nothing on stdout, and one line that says why."""
    assert (result.returncode, result.stdout) == (code, ""), result
    assert result.stderr.startswith("hookline: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


# --- events and deliveries ---


def test_a_list_that_was_cut_off_says_so(shell):
    shell.endpoint("/404/cut", account="cut")
    shell.die("cut", 3)
    assert shell("dead", "list", "--account", "cut", "--limit", "2").stderr == MORE
    assert shell("dead", "list", "--account", "cut", "--limit", "3").stderr == ""


def test_send_publishes_the_payload_as_it_is(shell):
    shell.endpoint("/200/send", account="send")
    payload = '{"b":  1.0, "a": "é"}'
    result = shell("send", "order.paid", payload, "--account", "send")
    assert result.returncode == 0
    assert re.fullmatch(r"evt_[0-9a-v]{26}\n", result.stdout)
    assert result.stderr == "1 delivery.\n"
    eventually(lambda: shell.receiver.at("/200/send") or None)
    assert [each.body for each in shell.receiver.at("/200/send")] == [payload.encode()]


def test_send_reads_standard_input_and_repeats_by_key(shell):
    command = [*COMMAND, "send", "order.paid", "--idempotency-key", "k1", "--json"]
    answers = [
        json.loads(
            subprocess.run(
                command,
                input=b"[1,2]\n",
                cwd=shell.folder,
                env=environment(shell.env),
                capture_output=True,
                timeout=CEILING_S,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]
    assert [each["duplicate"] for each in answers] == [False, True]
    assert answers[0]["id"] == answers[1]["id"]


@pytest.mark.parametrize(
    "payload", ["", "{", "order 5", '1, "account": "other"', "NaN", '"\\ud800"', "\xa01"]
)
def test_a_payload_that_is_not_one_json_value_is_a_usage_error(shell, payload):
    assert_ends(shell("send", "order.paid", payload), 2, "not one JSON value")


@pytest.mark.parametrize("size_bytes", [1_048_577, 1_052_673, 3_000_000, 40_000_000])
def test_a_payload_that_is_too_large_is_told_one_limit(shell, size_bytes):
    result = subprocess.run(
        [*COMMAND, "send", "order.paid"],
        input=b'"' + b"x" * (size_bytes - 2) + b'"',
        cwd=shell.folder,
        env=environment(shell.env),
        capture_output=True,
        timeout=CEILING_S,
        check=False,
    )
    assert (result.returncode, result.stdout) == (5, b"")
    assert result.stderr == b"hookline: A payload may have at most 1,048,576 bytes.\n"


def test_deliveries_are_listed_shown_retried_and_cancelled(shell):
    endpoint = shell.endpoint("/200/later", account="later")
    ids = []
    for _ in range(2):
        event = shell.json("send", "order.paid", "{}", "--account", "later", "--deliver-at", "2h")
        ids.append("dlv_" + event["id"].removeprefix("evt_"))
    listed = shell.json("deliveries", "list", "--endpoint", endpoint, "--state", "pending", "--since", "1h")
    assert [each["id"] for each in listed] == ids[::-1]
    table = shell("deliveries", "list", "--account", "later").stdout.splitlines()
    assert table[0].split() == ["ID", "ENDPOINT", "TYPE", "STATE", "TRIES", "ANSWER", "WHEN"]
    short = [line.split()[0] for line in table[1:]]
    assert [shell.json("deliveries", "show", each)["id"] for each in short] == ids[::-1]
    assert table[1].split()[1:6] == [
        *(f"{shell.receiver.url}/200/later".removeprefix("http://"), "order.paid", "pending", "0", "-"),
    ]
    assert table[1].endswith("in 1h")
    assert shell("deliveries", "list", "--account", "later", "--utc").stdout.splitlines()[1].endswith("Z")
    shell.json("endpoints", "pause", endpoint)  # otherwise it may be delivered before that
    assert shell("deliveries", "retry", ids[0]).stdout == f"{ids[0]} is pending.\n"
    shell.json("endpoints", "resume", endpoint)
    assert shell("deliveries", "cancel", ids[1]).stdout == f"{ids[1]} is cancelled.\n"
    assert_ends(shell("deliveries", "cancel", ids[1]), 5, "cancelled cannot be cancelled")
    assert_ends(shell("deliveries", "cancel", f"dlv_{UNKNOWN}"), 4, "No delivery")
    eventually(lambda: shell.json("deliveries", "show", ids[0])["state"] == "delivered" or None)
    shown = shell.json("deliveries", "show", ids[0], "--attempts")
    assert [each["status"] for each in shown["attempt_log"]] == [200]
    assert f"id                {ids[0]}" in shell("deliveries", "show", ids[0]).stdout


def test_an_event_is_replayed(shell):
    shell.endpoint("/200/twice", account="twice")
    event = shell.json("send", "order.paid", "{}", "--account", "twice")["id"]
    eventually(lambda: shell.receiver.at("/200/twice") or None)
    delivery = "dlv_" + event.removeprefix("evt_")
    eventually(lambda: shell.json("deliveries", "show", delivery)["state"] == "delivered" or None)
    dry = shell("replay", event, "--dry-run")
    assert (dry.returncode, dry.stdout, dry.stderr) == (0, f"{delivery}\n", "1 delivery would be replayed.\n")
    for nothing in (["--state", "dead"], ["--endpoint", f"ep_{UNKNOWN}"]):
        assert shell.json("replay", event, "--dry-run", *nothing)["replayed"] == 0
    result = shell("replay", event)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{delivery}\n", "1 delivery replayed.\n")
    eventually(lambda: len(shell.receiver.at("/200/twice")) == 2 or None)
    assert shell.json("replay", event, "--state", "dead") == {"replayed": 0, "deliveries": []}
    assert_ends(shell("replay", f"evt_{UNKNOWN}"), 4)
    assert_ends(shell("replay", "../endpoints?x=1"), 4)


def test_events_are_listed_and_shown_with_their_deliveries_and_attempts(shell):
    endpoint = shell.endpoint("/404/seen", account="seen")
    before = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    older = shell.json("send", "order.paid", '{"n": 1}', "--account", "seen", "--idempotency-key", "seen-1")[
        "id"
    ]
    newer = shell.json("send", "order.refunded", "{}", "--account", "seen")["id"]
    eventually(lambda: len(shell.json("dead", "list", "--account", "seen")) == 2 or None)
    table = shell("events", "list", "--account", "seen").stdout.splitlines()
    assert table[0].split() == ["ID", "TYPE", "ACCOUNT", "PUBLISHED", "DELIVERIES"]
    short = [line.split()[0] for line in table[1:]]
    assert [shell.json("events", "show", each)["id"] for each in short] == [newer, older]
    assert table[2].endswith("1 dead")
    for filter, expected in (
        (["--type", "order.paid"], [older]),
        (["--idempotency-key", "seen-1"], [older]),
        (["--since", "1h"], [newer, older]),
        (["--until", before], []),
        (["--limit", "1"], [newer]),
    ):
        found = shell.json("events", "list", "--account", "seen", *filter)
        assert [each["id"] for each in found] == expected, filter
    assert shell.json("events", "show", older)["payload"] == {"n": 1}
    assert f"id               {older}" in shell("events", "show", older).stdout
    (delivery,) = shell.json("events", "deliveries", older, "--state", "dead")
    assert delivery["endpoint_id"] == endpoint
    for command in (["events", "attempts", older], ["deliveries", "attempts", delivery["id"]]):
        (attempt,) = shell.json(*command)
        assert (attempt["number"], attempt["status"]) == (1, 404)
    rows = shell("events", "attempts", older).stdout.splitlines()
    assert rows[0].split() == ["DELIVERY", "TRY", "ANSWER", "TOOK", "AT", "URL"]
    assert rows[1].split()[1:3] == ["1", "404"]
    for command in (["show"], ["deliveries"], ["attempts"]):
        assert_ends(shell("events", *command, f"evt_{UNKNOWN}"), 4, "No event")
    bad = shell("events", "list", "--since", "yesterday")
    assert (bad.returncode, "neither a duration" in bad.stderr) == (2, True)


# --- endpoints ---


def test_endpoints_are_managed(shell):
    created = shell.json(
        *("endpoints", "create", "https://hooks.example.com/", "--account", "manage", "--event", "order.*"),
        *("--event", "user.created", "--header", "X-Team: blue", "--retry", "brisk", "--rate", "2.5"),
        *("--ordering", "strict", "--description", "ours", "--field", "timeout_ms=5000"),
    )
    expected = {
        "events": ["order.*", "user.created"],
        "headers": {"X-Team": "***"},
        "retry": {"preset": "brisk"},
        "rate_limit": {"per_second": 2.5, "burst": 3},
        "ordering": "strict",
        "description": "ours",
        "timeout_ms": 5000,
    }
    assert {name: created[name] for name in expected} == expected
    assert created["secret"].startswith("whsec_")
    id = created["id"]
    changed = shell.json(
        *("endpoints", "update", id, "--to", "https://other.example.com/"),
        *("--retry", '{"schedule": [5]}', "--field", "circuit=null"),
    )
    assert changed["url"] == "https://other.example.com/"
    assert (changed["retry"], changed["circuit"]) == ({"schedule": [0, 5], "jitter": "full"}, None)
    listed = shell.json("endpoints", "update", id, "--retry", "[0, 1]")
    assert listed["retry"] == {"schedule": [0, 1], "jitter": "full"}
    assert shell("endpoints", "pause", id).stdout == f"{id} is enabled, paused, circuit closed.\n"
    assert shell("endpoints", "resume", id).stdout == f"{id} is enabled, circuit closed.\n"
    assert shell("endpoints", "disable", id).stdout == f"{id} is disabled, circuit closed.\n"
    assert shell.json("endpoints", "enable", id)["enabled"] is True
    assert shell("endpoints", "reset-circuit", id).returncode == 0
    assert [each["id"] for each in shell.json("endpoints", "list", "--account", "manage", "--enabled")] == [
        id
    ]
    assert shell.json("endpoints", "list", "--account", "manage", "--disabled") == []
    empty = shell("endpoints", "list", "--account", "manage", "--circuit", "open")
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "No results.\n")
    assert "https://other.example.com/" in shell("endpoints", "show", id).stdout
    assert_ends(shell("endpoints", "delete", id), 2, "--yes")
    dry = shell("endpoints", "delete", id, "--dry-run")
    assert (
        dry.stdout
        == f"{id} (https://other.example.com/) would be deleted, and its pending deliveries cancelled.\n"
    )
    assert shell.json("endpoints", "delete", id, "--dry-run") == {"id": id, "deleted": False}
    assert shell.json("endpoints", "show", id)["id"] == id
    gone = shell("endpoints", "delete", id, "--yes")
    assert (gone.returncode, gone.stderr) == (0, "")
    assert gone.stdout == f"{id} is deleted, and its pending deliveries are cancelled.\n"
    assert_ends(shell("endpoints", "show", id), 4, id)
    other = shell.endpoint("/200/other", account="manage")
    assert shell.json("endpoints", "delete", other, "--yes") == {"id": other, "deleted": True}
    assert_ends(shell("endpoints", "delete", other, "--yes"), 4, other)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["create", "http://2130706433/", "--event", "*"], 5, ["(/url)"]),
        (["create", "https://a.example/"], 5, ["(/events)"]),
        (["create", "https://a.example/", "--event", "*", "--retry", "bris"], 2, ["Did you mean brisk?"]),
        (["create", "https://a.example/", "--event", "*", "--rate", "0"], 5, ["/rate_limit/per_second"]),
        (["create", "https://a.example/", "--event", "*", "--retry", "{"], 2, ["--retry"]),
        (["create", "https://a.example/", "--event", "*", "--retry", "[0,"], 2, ["--retry", "not JSON"]),
        (["create", "https://a.example/", "--event", "*", "--header", "x"], 2, ["--header"]),
        (
            ["create", "https://a.example/", "--event", "*", "--header", "X:1", "--header", "x:2"],
            2,
            ["twice"],
        ),
        (["create", "https://a.example/", "--event", "*", "--rate", "nan"], 2, ["--rate"]),
        (["create", "https://a.example/", "--event", "*", "--rate", "inf"], 2, ["--rate"]),
        (["create", "https://a.example/", "--event", "*", "--field", "timeout_ms=NaN"], 2, ["not JSON"]),
        (["create", "https://a.example/", "--event", "*", "--field", "ordering=strict"], 2, ["not JSON"]),
        (["update", f"ep_{UNKNOWN}"], 2, ["name a field to change"]),
        (["update", f"ep_{UNKNOWN}", "--retry", "brisk"], 4, []),
        (["pause", f"ep_{UNKNOWN}"], 4, []),
        (["reset-circuit", "nonsense"], 4, []),
    ],
)
def test_what_will_not_do_is_refused_with_the_server_s_words(shell, arguments, code, words):
    assert_ends(shell("endpoints", *arguments), code, *words)


def test_a_secret_is_shown_and_rotated(shell):
    created = shell.json(
        "endpoints", "create", "https://hooks.example.com/", "--event", "*", "--account", "secret"
    )
    id = created["id"]
    assert shell("endpoints", "secret", id).stdout == created["secret"] + "\n"
    rotated = shell("endpoints", "rotate", id, "--overlap", "2h")
    assert (rotated.returncode, rotated.stdout.startswith("whsec_")) == (0, True)
    assert rotated.stdout != created["secret"] + "\n"
    assert "The old secret also signs until " in rotated.stderr
    assert shell.json("endpoints", "secret", id)["old"]["secret"] == created["secret"]
    assert_ends(shell("endpoints", "rotate", id), 5)  # two sign already
    assert_ends(shell("endpoints", "rotate", id, "--overlap", "0s"), 2, "--yes")
    cut = shell.json("endpoints", "rotate", id, "--overlap", "0s", "--signature", "v1a", "--yes")
    assert (cut["old"], cut["public_key"].startswith("whpk_")) == (None, True)
    assert "public key: whpk_" in shell("endpoints", "secret", id).stderr
    code, seen = on_a_terminal(shell, "endpoints", "rotate", id, "--overlap", "0s", answer=b"n\n")
    assert (code, "nothing was changed" in seen) == (1, True), seen
    assert_ends(shell("endpoints", "secret", f"ep_{UNKNOWN}"), 4)


def test_an_endpoint_is_tried_out(shell):
    good = shell.endpoint("/200/trial", account="trial")
    bad = shell.endpoint("/404/trial", account="trial")
    accepted = shell("endpoints", "test", good)
    assert (accepted.returncode, accepted.stderr) == (0, "")
    assert re.fullmatch(r"dlv_[0-9a-v]{26} was accepted: 200 in [0-9,]+ ms\.\n", accepted.stdout)
    assert_ends(shell("endpoints", "test", bad), 1, "was not accepted: 404")
    shown = shell("endpoints", "test", bad, "--json")
    assert (shown.returncode, json.loads(shown.stdout)["event_type"]) == (1, "hookline.test")
    assert shell.json("endpoints", "test", good, "--no-wait")["endpoint_id"] == good
    shell.json("endpoints", "pause", good)
    assert_ends(shell("endpoints", "test", good), 5, "paused")


# --- event types ---


def test_event_types_are_described(shell):
    (shell.folder / "schema.json").write_text('{"type": "object", "required": ["id"]}')
    described = shell.json(
        "event-types", "set", "typed.paid", "--description", "money", "--schema", "schema.json"
    )
    assert (described["description"], described["schema"]["required"]) == ("money", ["id"])
    assert_ends(shell("send", "typed.paid", "{}"), 5, "id")
    changed = shell.json("event-types", "set", "typed.paid", "--description", "money came")
    assert (changed["description"], changed["schema"]["required"]) == ("money came", ["id"])
    opened = shell.json("event-types", "set", "typed.paid", "--no-schema")
    assert (opened["description"], opened["schema"]) == ("money came", None)
    assert shell("send", "typed.paid", "{}").returncode == 0
    assert [each["name"] for each in shell.json("event-types", "list")] == ["typed.paid"]
    assert "typed.paid" in shell("event-types", "list").stdout
    assert "money came" in shell("event-types", "show", "typed.paid").stdout
    dry = shell("event-types", "delete", "typed.paid", "--dry-run")
    assert dry.stdout == "The description and schema of typed.paid would be deleted.\n"
    assert_ends(shell("event-types", "delete", "typed.paid"), 2, "--yes")
    unchanged = {"name": "typed.paid", "deleted": False}
    assert shell.json("event-types", "delete", "typed.paid", "--dry-run") == unchanged
    deleted = shell("event-types", "delete", "typed.paid", "--yes")
    assert deleted.stdout == "The description and schema of typed.paid are deleted.\n"
    shell.json("event-types", "set", "typed.paid")
    assert shell.json("event-types", "delete", "typed.paid", "--yes") == {
        "name": "typed.paid",
        "deleted": True,
    }
    assert shell.json("event-types", "list") == []
    for command in (["show"], ["delete"], ["delete", "--yes"], ["delete", "--dry-run"]):
        assert_ends(shell("event-types", *command, "typed.paid"), 4, "typed.paid")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["bad type"], 2, "An event type is"),
        (["a.b", "--schema", "schema.json", "--no-schema"], 2, "either --schema or --no-schema"),
        (["a.b", "--schema", "broken.json"], 2, "not JSON"),
        (["a.b", "--schema", "deep.json"], 2, "too deep"),
        (["a.b", "--schema", "python.json"], 2, "not JSON"),
        (["a.b", "--schema", "wrong.json"], 5, "schema"),
    ],
)
def test_an_event_type_that_will_not_do_is_refused(shell, arguments, code, words):
    (shell.folder / "schema.json").write_text("{}")
    (shell.folder / "broken.json").write_text("{")
    (shell.folder / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (shell.folder / "python.json").write_text('{"maximum": NaN}')
    (shell.folder / "wrong.json").write_text('{"type": 5}')
    assert_ends(shell("event-types", "set", *arguments), code, words)


# --- dead letters ---


def test_dead_letters_are_listed_and_shown(shell):
    endpoint = shell.endpoint("/404/listed", account="listed")
    before = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    newest, oldest = shell.die("listed", 2)
    table = shell("dead", "list", "--endpoint", endpoint, "--type", "order.paid", "--reason", "rejected")
    short = [line.split()[0] for line in table.stdout.splitlines()[1:]]
    assert [shell.json("deliveries", "show", each)["id"] for each in short] == [newest, oldest]
    assert shell.json("dead", "list", "--account", "listed", "--until", before) == []
    assert len(shell.json("dead", "list", "--account", "listed", "--since", "1h")) == 2
    assert len(shell.json("dead", "list", "--account", "listed", "--limit", "1")) == 1
    shown = shell.json("dead", "show", oldest)
    assert (shown["payload"], shown["reason"]) == ({"n": 0}, "rejected")
    assert [each["status"] for each in shown["attempt_log"]] == [404]
    heads = ["ID", "ENDPOINT", "TYPE", "REASON", "TRIES", "ANSWER", "DIED"]
    assert table.stdout.splitlines()[0].split() == heads
    text = shell("dead", "show", oldest).stdout
    assert 'payload           {"n": 0}' in text
    assert "attempt 1: 404, " in text
    assert_ends(shell("dead", "show", f"dlv_{UNKNOWN}"), 4)


def test_one_dead_letter_is_replayed_or_discarded_by_its_id(shell):
    endpoint = shell.endpoint("/404/single", account="single")
    one, two = shell.die("single", 2)
    shell.json("endpoints", "update", endpoint, "--to", shell.receiver.url + "/200/single")
    assert shell("dead", "replay", one).returncode == 0
    eventually(lambda: shell.json("deliveries", "show", one)["state"] == "delivered" or None)
    assert_ends(shell("dead", "replay", one), 5, "delivered")
    assert_ends(shell("dead", "discard", two), 2, "--yes")
    assert shell("dead", "discard", two, "--yes").stdout == f"{two} is cancelled.\n"
    assert_ends(shell("dead", "discard", f"dlv_{UNKNOWN}", "--yes"), 4)


def test_dead_letters_are_replayed_and_discarded_in_bulk(shell):
    endpoint = shell.endpoint("/404/bulk", account="bulk")
    ids = shell.die("bulk", 3)
    assert (
        shell("dead", "replay", "--account", "bulk", "--dry-run").stdout
        == "3 dead letters would be replayed.\n"
    )
    assert shell.json("dead", "discard", "--account", "bulk", "--dry-run")["matched"] == 3
    result = shell("dead", "discard", "--endpoint", endpoint, "--type", "user.created", "--yes")
    assert (result.returncode, result.stdout, result.stderr) == (0, "0 dead letters discarded.\n", "")
    shell.json("endpoints", "update", endpoint, "--to", shell.receiver.url + "/200/bulk")
    job = shell.json("dead", "replay", "--account", "bulk", "--reason", "rejected")
    assert (job["state"], job["done"]) == ("done", 3)
    for id in ids:
        eventually(lambda id=id: shell.json("deliveries", "show", id)["state"] == "delivered" or None)
    partly = shell("dead", "discard", *ids[:2], "--yes")
    assert (partly.returncode, partly.stdout) == (1, "0 dead letters discarded.\n")
    assert "2 skipped: not dead letters" in partly.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], ["--all", "--account", "a"], [f"dlv_{UNKNOWN}", "--all"], [f"dlv_{UNKNOWN}", "--type", "a"]],
)
@pytest.mark.parametrize("verb", ["replay", "discard"])
def test_which_dead_letters_must_be_said_in_one_way(shell, verb, arguments):
    assert_ends(shell("dead", verb, *arguments, "--yes"), 2, "--all")


def plain(seen: str) -> str:
    """What was seen, without the colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", seen)


def on_a_terminal(
    shell: Shell, *arguments: str, answer: bytes = b"", columns: int = 100, env: dict[str, str] | None = None
) -> tuple[int, str]:
    """The exit code, and what a person would have seen; the answer is typed after the question."""
    settings = {**shell.env, "COLUMNS": str(columns), **(env or {})}
    with Terminal(*arguments, cwd=shell.folder, env=settings) as terminal:
        if answer:
            terminal.wait_for("[y/N]")
            terminal.type(answer)
        return terminal.end(), terminal.seen


def test_a_person_sees_a_bar_and_is_asked_before_anything_is_given_up(shell):
    endpoint = shell.endpoint("/404/person", account="person")
    ids = shell.die("person", 10)
    shell.json("endpoints", "update", endpoint, "--to", shell.receiver.url + "/404/person2")
    code, seen = on_a_terminal(shell, "dead", "replay", "--account", "person")
    assert (code, "10/10" in seen, "10 dead letters replayed." in seen) == (0, True, True), seen
    eventually(lambda: len(shell.receiver.at("/404/person2")) == 10 or None)
    eventually(lambda: len(shell.json("dead", "list", "--account", "person")) == 10 or None)
    code, seen = on_a_terminal(shell, "dead", "discard", "--account", "person", answer=b"n\n")
    assert (code, "Discard 10 dead letters?" in seen, "nothing was changed" in seen) == (1, True, True), seen
    assert len(shell.json("dead", "list", "--account", "person")) == 10
    code, seen = on_a_terminal(shell, "dead", "discard", "--account", "person", answer=b"y\n")
    assert (code, "10 dead letters discarded." in seen) == (0, True), seen
    assert shell.json("dead", "list", "--account", "person") == []
    assert len(ids) == 10


def test_a_person_sees_a_table_that_fits_and_a_pipe_gets_everything(shell):
    bare = "hooks.example.com/" + "x" * 100
    long = f"https://{bare}"
    id = shell.json("endpoints", "create", long, "--event", "*", "--account", "long", "--signing", "classic")[
        "id"
    ]
    for columns in (200, 100):
        code, seen = on_a_terminal(shell, "endpoints", "list", "--account", "long", columns=columns)
        assert (code, bare in seen, "hooks.example.com/" in seen, "…" in seen) == (
            0,
            columns == 200,
            True,
            columns == 100,
        ), seen
        assert seen.startswith("\x1b[1mID ")
        assert "\x1b[32mactive" in seen
        assert max(map(len, plain(seen).split("\r\n"))) <= columns
    code, seen = on_a_terminal(shell, "endpoints", "list", "--account", "long", env={"NO_COLOR": "1"})
    assert (code, "\x1b" in seen, "active" in seen) == (0, False, True), seen
    piped = shell("endpoints", "list", "--account", "long").stdout
    assert (bare in piped, "\x1b" in piped) == (True, False)
    code, seen = on_a_terminal(shell, "endpoints", "delete", id, answer=b"n\n")
    assert (code, "nothing was changed" in seen) == (1, True), seen
    code, seen = on_a_terminal(shell, "endpoints", "delete", id, answer=b"y\n")
    assert code == 0, seen
    assert_ends(shell("endpoints", "show", id), 4)


@pytest.mark.parametrize("columns", [40, 80, 120, 250])
def test_no_table_is_wider_than_its_terminal(shell, columns):
    shell.endpoint(f"/404/narrow{columns}", account=f"narrow{columns}")
    shell.die(f"narrow{columns}", 2)
    for command in ("dead", "deliveries", "events", "endpoints"):
        code, seen = on_a_terminal(shell, command, "list", "--account", f"narrow{columns}", columns=columns)
        assert code == 0, seen
        lines = plain(seen).split("\r\n")
        assert max(map(len, lines)) <= columns, seen
        noun = {"dead": "delivery", "deliveries": "delivery", "events": "event", "endpoints": "endpoint"}[
            command
        ]
        for line in filter(None, lines[1:]):  # every id can be copied
            listed = line.split()[0]
            shown = "deliveries" if noun == "delivery" else f"{noun}s"
            assert shell.json(shown, "show", listed)["id"].startswith(listed.partition(".")[0])


def test_workers_and_jobs_are_listed(shell):
    columns = ["ID", "HOST", "PID", "STATE", "LANES", "IN", "FLIGHT", "PER", "SECOND", "HEARTBEAT"]

    def running() -> str | None:
        code, seen = on_a_terminal(shell, "workers", columns=80)
        heads, worker = plain(seen).split("\r\n")[:2]
        assert (code, heads.split()) == (0, columns), seen
        return worker if "running" in worker else None  # on a busy machine it is silent at times

    worker = eventually(running)
    assert shell.json("workers")[0]["id"].startswith(worker.split()[0])
    shell.endpoint("/404/jobs", account="jobs")
    shell.die("jobs", 2)
    job = shell.json("dead", "replay", "--account", "jobs")
    table = shell("dead", "jobs").stdout.splitlines()
    assert table[0].split() == ["ID", "STATE", "MATCHED", "DONE", "SKIPPED", "STARTED", "ENDED", "REASON"]
    assert job["id"].startswith(table[1].split()[0])
    assert table[1].split()[1:5] == ["done", "2", "2", "0"]
    assert shell("dead", "jobs", "--discards").returncode == 0


def test_an_id_is_taken_by_a_prefix_wherever_one_is_taken(shell):
    endpoint = shell.endpoint("/404/prefix", account="prefix")
    (delivery,) = shell.die("prefix")
    short = shell("dead", "list", "--account", "prefix").stdout.splitlines()[1].split()[0]
    event = delivery.replace("dlv_", "evt_")
    assert [each["id"] for each in shell.json("dead", "list", "--endpoint", endpoint[:20])] == [delivery]
    found = shell.json("deliveries", "list", "--event", event[:22], "--endpoint", endpoint[:18])
    assert [each["id"] for each in found] == [delivery]
    assert shell.json("replay", event[:22], "--endpoint", endpoint[:20], "--dry-run")["replayed"] == 1
    assert shell.json("endpoints", "pause", endpoint[:20])["paused"] is True
    assert shell("dead", "discard", short, "--yes").stdout == f"{delivery} is cancelled.\n"
    assert shell("endpoints", "delete", endpoint[:20], "--yes").stdout.startswith(f"{endpoint} is deleted")
    table = shell("deliveries", "list", "--account", "prefix").stdout
    assert f"{endpoint[:13]} (deleted)" in table


def test_an_ambiguous_prefix_is_a_usage_error_with_the_candidates(shell):
    endpoints = [shell.endpoint("/200/twin", account="twin") for _ in range(2)]
    event = shell.json("send", "order.paid", "1", "--account", "twin")["id"]
    prefix = event.replace("evt_", "dlv_")[:24]
    deliveries = sorted(each["id"] for each in shell.json("events", "deliveries", event))
    assert len(deliveries) == len(endpoints)
    assert_ends(shell("deliveries", "show", prefix), 2, "is ambiguous", *deliveries)
    assert_ends(shell("deliveries", "show", prefix[:11]), 2, "at least 8 characters")
    bad = shell("deliveries", "list", "--endpoint", "ep_nonsense")
    assert (bad.returncode, "is not an endpoint id" in bad.stderr) == (2, True)


def test_attempts_show_the_request_and_the_response(shell):
    shell.endpoint("/404/detail", "--header", "X-Team: blue", account="detail")
    (delivery,) = shell.die("detail")
    text = shell("deliveries", "attempts", delivery).stdout
    lines = [line.split() for line in text.splitlines()]
    assert lines[0][:3] == ["attempt", "1:", "404,"]
    assert ["error", "http_4xx"] in lines
    assert ["url", f"{shell.receiver.url}/404/detail"] in lines
    assert any(line[:1] == ["phases"] and "first" in line for line in lines)
    assert any(line[-2:] == ["webhook-event:", "order.paid"] for line in lines)
    assert any(line[:1] == ["received"] for line in lines)
    assert any(line[:1] == ["body"] for line in lines)


@pytest.mark.parametrize(
    ("command", "noun"),
    [("events show", "event"), ("deliveries show", "delivery"), ("endpoints show", "endpoint")],
)
@pytest.mark.parametrize("id", ["evt_x?y=1#", "../../healthz", "%2e", "evt_", "é"])
def test_what_cannot_be_an_id_is_said_in_one_line(shell, command, noun, id):
    assert_ends(shell(*command.split(), id), 4, f"No {noun} has the id {id!r}.")


@pytest.mark.parametrize(
    "arguments",
    [["bad type", "1"], ["", "1"], ["a", "1", "--account", "a b"], ["a", "1", "--idempotency-key", "a b"]],
)
def test_a_bad_name_is_a_usage_error_like_any_other_bad_value(shell, arguments):
    assert_ends(shell("send", *arguments), 2)


def test_control_characters_do_not_reach_a_terminal(shell):
    created = shell.json(
        *("endpoints", "create", "https://hooks.example.com/", "--event", "*", "--account", "escape"),
        *("--description", "\x1b[2J\u202e!"),
    )
    text = shell("endpoints", "show", created["id"]).stdout
    assert "\x1b" not in text
    assert "\\x1b[2J\\u202e!" in text


def test_every_dead_letter_there_is_can_be_meant(shell):
    shell.endpoint("/404/all", account="all")
    shell.die("all", 2)
    result = shell("dead", "discard", "--all", "--yes")
    assert result.returncode == 0, result.stderr
    assert shell.json("dead", "list") == []


# --- reaching the server ---


def test_a_server_that_is_not_there_cannot_be_reached(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        result = run("dead", "list", cwd=tmp_path, env={"HOOKLINE_URL": url})
    assert_ends(result, 3, url, "HOOKLINE_URL")
    assert_ends(run("dead", "list", "--url", "http://nowhere.invalid", cwd=tmp_path), 3, "nowhere.invalid")


def test_something_else_than_hookline_is_told_apart(tmp_path):
    with receiving() as stranger:
        result = run("dead", "list", "--url", stranger.url, cwd=tmp_path)
    assert_ends(result, 3, "is not hookline")


@pytest.mark.parametrize("answer", [(200, "application/json"), (422, "application/problem+json")])
@pytest.mark.parametrize(
    "arguments",
    [["events", "list"], ["send", "a.b", "1"], ["endpoints", "delete", f"ep_{UNKNOWN}", "--yes"]],
)
def test_something_else_that_speaks_json_is_told_apart_too(tmp_path, answer, arguments):
    with strange(*answer) as url:
        assert_ends(run(*arguments, "--url", url, cwd=tmp_path), 3, "is not hookline", str(answer[0]))


@contextmanager
def strange(status: int, media: str) -> Iterator[str]:
    """A server that answers every request with an empty object."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", "0")))
            self.send_response(status)
            self.send_header("content-type", media)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_bad_url_is_a_usage_error(tmp_path):
    assert_ends(run("dead", "list", "--url", "localhost", cwd=tmp_path), 2, "--url")


def test_a_key_is_sent_and_a_wrong_one_is_refused(tmp_path):
    with ServerProcess(cwd=tmp_path, env={"HOOKLINE_API_KEY": KEY}) as server:
        env = {"HOOKLINE_URL": server.url, "HOOKLINE_API_KEY": KEY}
        assert run("dead", "list", "--json", cwd=tmp_path, env=env).stdout == "[]\n"
        for key in ({}, {"HOOKLINE_API_KEY": "hlk_wrong"}):
            refused = run("dead", "list", cwd=tmp_path, env={"HOOKLINE_URL": server.url, **key})
            assert_ends(refused, 5, "API key")
