"""`send --wait` follows an event to its end."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from answering import Receiver, receiving
from hookline.cli.event_progress import check_all_delivered, progress
from hookline.cli.exits import FAILED, CommandError
from server_process import ServerProcess, run


class Shell:
    """A shell that knows where the server is."""

    def __init__(self, server: ServerProcess, folder: Path, receiver: Receiver) -> None:
        self.folder = folder
        self.env = {"HOOKLINE_URL": server.url}
        self.receiver = receiver

    def __call__(self, *arguments: str) -> Any:
        return run(*arguments, cwd=self.folder, env=self.env)

    def endpoint(self, path: str, account: str) -> None:
        url = self.receiver.url + path
        made = self("endpoints", "create", url, "--account", account, "--event", "*")
        assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("wait")
    with receiving() as receiver, ServerProcess("--dev", cwd=folder) as server:
        yield Shell(server, folder, receiver)
        assert server.stop() == 0


def test_an_event_that_is_delivered_ends_with_0(shell):
    shell.endpoint("/200/good", "good")
    done = shell("send", "order.paid", "1", "--account", "good", "--wait", "--timeout", "2m")
    assert done.returncode == 0, done.stderr
    heads, delivery = done.stdout.splitlines()
    assert heads.split() == ["ID", "ENDPOINT", "TYPE", "STATE", "TRIES", "ANSWER", "WHEN"]
    assert delivery.split()[2:6] == ["order.paid", "delivered", "1", "200"]
    said = done.stderr.splitlines()
    assert said[0].endswith(" is published: 1 delivery.")
    assert "/200/good: delivered, 200 in " in said[-1]


def test_one_that_dies_ends_with_1_and_all_are_shown(shell):
    shell.endpoint("/200/mixed", "mixed")
    shell.endpoint("/404/mixed", "mixed")
    done = shell("send", "order.paid", "1", "--account", "mixed", "--wait", "--timeout", "2m")
    assert done.returncode == 1, done
    assert sorted(line.split()[3] for line in done.stdout.splitlines()[1:]) == ["dead", "delivered"]
    assert "/404/mixed: dead (rejected) after 1 attempt: 404\n" in done.stderr
    assert done.stderr.endswith("hookline: 1 of 2 deliveries dead.\n")


def test_when_the_time_is_up_it_ends_with_1_and_says_so(shell):
    shell.endpoint("/200/later", "later")
    command = (
        "send",
        "order.paid",
        "1",
        "--account",
        "later",
        "--deliver-at",
        "2h",
        "--wait",
        "--timeout",
        "0s",
    )
    done = shell(*command)
    assert done.returncode == 1, done
    assert done.stderr.endswith("hookline: the time is up (0s): 1 of 1 delivery still pending.\n")
    as_json = shell(*command, "--json")
    [delivery] = json.loads(as_json.stdout)["final_deliveries"]
    assert (as_json.returncode, delivery["state"]) == (1, "pending")


def test_an_event_that_nobody_gets_ends_at_once(shell):
    done = shell("send", "order.paid", "1", "--account", "nobody", "--wait")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith(" is published: 0 deliveries.\n")


DELIVERY = {
    "state": "pending",
    "attempts": 0,
    "waiting_for": None,
    "last_status": None,
    "last_error": None,
    "last_duration_ms": None,
    "reason": None,
    "due_at": "2999-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "pending"),
        ({"waiting_for": "slot"}, "pending"),
        (
            {"waiting_for": "paused"},
            "pending; the endpoint is paused; `hookline endpoints resume` resumes it",
        ),
        (
            {"attempts": 2, "last_status": 503, "waiting_for": "circuit"},
            "attempt 2 failed: 503; the endpoint's circuit is open; `hookline endpoints reset-circuit` closes it",
        ),
        (
            {"state": "delivered", "attempts": 3, "last_status": 204, "last_duration_ms": 55.5},
            "delivered, 204 in 56 ms, attempt 3",
        ),
        (
            {
                "state": "dead",
                "attempts": 7,
                "last_error": {"kind": "timeout", "detail": None},
                "reason": "exhausted",
            },
            "dead (exhausted) after 7 attempts: timeout",
        ),
        ({"state": "cancelled", "reason": "endpoint_deleted"}, "cancelled (endpoint_deleted)"),
        ({"state": "cancelled", "reason": "cancelled"}, "cancelled"),
    ],
)
def test_a_change_is_said_in_words(fields, said):
    assert progress({**DELIVERY, **fields}) == said


def test_a_retry_is_said_with_its_time():
    failed = {**DELIVERY, "attempts": 1, "last_error": {"kind": "connect_refused"}, "waiting_for": "due"}
    assert progress(failed).startswith("attempt 1 failed: connect_refused; next try in ")


def test_what_was_cancelled_was_not_delivered():
    with pytest.raises(CommandError, match="1 of 2 deliveries cancelled") as refused:
        check_all_delivered([{"state": "delivered"}, {"state": "cancelled"}], timeout="1m")
    assert refused.value.exit_status == FAILED
    check_all_delivered([{"state": "delivered"}], timeout="1m")
    check_all_delivered([], timeout="1m")
