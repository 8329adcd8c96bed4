"""What becomes of a command whose output nobody reads, and of arguments that are no text?"""

import json
import os
import subprocess

import pytest

from server_process import COMMAND, environment, run

PRINTING = (["--help"], ["--version"], ["version"], ["config", "show"], ["doctor", "--json"])


def shell(line, arguments, cwd):
    """The command with its streams as the line has them."""
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
    assert (done.returncode, done.stderr) == (1, "hookline: No space left on device.\n")


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


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["config", "show"]])
def test_a_closed_output_is_no_mistake(tmp_path, arguments):
    done = shell('"$@" >&-', arguments, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_output_for_errors_leaves_the_exit_code(tmp_path):
    assert shell('"$@" 2>&-', ["config", "show", "--nope"], tmp_path).returncode == 2


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
    assert (done.returncode, done.stderr) == (2, "hookline: an argument is not text in UTF-8.\n")


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
