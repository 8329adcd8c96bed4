"""Commands end well when their output cannot be written or is not read, and refuse arguments that are not text."""

import json
import os
import re
import sqlite3
import subprocess
from contextlib import closing

import pytest

from answering import eventually
from server_process import CEILING_S, COMMAND, ServerProcess, environment, run

PRINTING = (["--help"], ["--version"], ["version"], ["config", "show"], ["doctor", "--json"])
FULL = "standard output cannot be written to: No space left on device"
CLOSED = "standard output is closed"


def shell(line, arguments, cwd):
    """Run the command with the streams that the shell line gives it."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("arguments", PRINTING)
def test_a_full_disk_is_one_line_and_a_failure(tmp_path, arguments):
    done = shell('"$@" > /dev/full', arguments, tmp_path)
    assert (done.returncode, done.stderr) == (1, f"hookline: {FULL}.\n")


@pytest.mark.parametrize("arguments", PRINTING)
def test_a_reader_that_has_seen_enough_is_told_nothing(tmp_path, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env=environment(),
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("arguments", PRINTING)
@pytest.mark.parametrize("closed", [">&-", "<&- >&-"])
def test_a_closed_output_is_one_line_and_a_failure(tmp_path, arguments, closed):
    done = shell(f'"$@" {closed}', arguments, tmp_path)
    assert (done.returncode, done.stderr) == (1, f"hookline: {CLOSED}.\n")


def test_a_command_that_prints_nothing_needs_no_output(tmp_path):
    assert shell('"$@" >/dev/full', ["migrate"], tmp_path).returncode == 1  # it names what it applied
    done = shell('"$@" <&- >&-', ["migrate"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "The schema is up to date.\n")


@pytest.mark.parametrize(
    ("arguments", "code"), [(["config", "show", "--nope"], 2), (["events", "show", "x"], 4), (["version"], 0)]
)
@pytest.mark.parametrize("errors", ["2>&-", "2>/dev/full"])
def test_errors_that_cannot_be_told_leave_the_exit_code(tmp_path, arguments, code, errors):
    assert shell(f'"$@" {errors}', arguments, tmp_path).returncode == code


def test_a_closed_input_is_an_empty_one(tmp_path):
    done = shell('"$@" <&-', ["send", "order.paid"], tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "not one JSON value" in done.stderr


def test_a_command_that_cannot_print_says_what_it_has_done(tmp_path):
    with ServerProcess("--dev", cwd=tmp_path) as server:
        at = f'HOOKLINE_URL={server.url} "$@"'
        create = ["endpoints", "create", "http://127.0.0.1:9000/", "--event", "*"]
        for output, why in ((">/dev/full", FULL), (">&-", CLOSED)):
            for arguments, done in (
                (["send", "order.paid", "{}"], r"evt_\w{26} is published, but WHY\."),
                (["send", "order.paid", "{}", "--json"], r"evt_\w{26} is published, but WHY\."),
                (
                    ["keys", "create", "--scope", "read"],
                    r"key_\w{26} is created, but WHY; the key was not shown: revoke it\.",
                ),
                (create, r"ep_\w{26} is created, but WHY; `hookline endpoints secret` prints its secret\."),
            ):
                result = shell(f"{at} {output}", arguments, tmp_path)
                line = f"hookline: {done}\n".replace("WHY", why)
                assert (result.returncode, result.stdout) == (1, "")
                assert re.fullmatch(line, result.stderr), result.stderr
        listed = run("events", "list", "--json", cwd=tmp_path, env={"HOOKLINE_URL": server.url})
        assert len(json.loads(listed.stdout)) == 4


def test_a_server_lives_on_when_its_messages_cannot_be_written(tmp_path):
    with open("/dev/full", "wb") as full:
        server = subprocess.Popen(
            [*COMMAND, "serve", "--dev", "--port", "0"], cwd=tmp_path, env=environment(), stderr=full
        )
    try:
        eventually(lambda: _is_served(tmp_path / "hookline.db") or None)
        server.terminate()
        assert server.wait(CEILING_S) == 0
    finally:
        server.kill()
        server.wait(CEILING_S)


def _is_served(file):
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM workers").fetchone()[0] == 1
    except sqlite3.OperationalError:  # not created yet
        return False


def test_an_interrupt_before_the_command_was_read_is_one_line(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")  # while it is loaded, which takes longest
    done = run("send", "a.b", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "hookline: Aborted!\n")


def test_a_terminal_without_the_characters_gets_others(tmp_path):
    env = {"PYTHONIOENCODING": "ascii"}
    assert "COMMAND [OPTIONS]" in run("--help", cwd=tmp_path, env=env).stdout
    assert json.loads(run("config", "show", "--json", cwd=tmp_path, env=env).stdout)


@pytest.mark.parametrize("command", [["send", "a.b"], ["events", "show"], ["events", "list", "--type"]])
def test_an_argument_that_is_no_text_is_a_usage_error(tmp_path, command):
    done = subprocess.run(
        [*map(os.fsencode, COMMAND), *map(os.fsencode, command), b'"\xff"'],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (2, "hookline: an argument is not UTF-8 text.\n")


def test_a_payload_nested_beyond_reading_is_a_usage_error(tmp_path):
    deep = b"[" * 100_000 + b"]" * 100_000
    done = subprocess.run(
        [*COMMAND, "send", "a.b"],
        cwd=tmp_path,
        env=environment(),
        input=deep,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
