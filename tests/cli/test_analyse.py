"""The report about dead letters."""

import re
import shlex

import pytest
from click.testing import CliRunner

from hookline import ids
from hookline.cli.commands.analyse import report
from hookline.cli.exits import UNREACHABLE, USAGE
from hookline.cli.root import root
from hookline.model import ErrorKind, Reason
from hookline.rules.death_advice import AdvisedEndpoint, Diagnosis, advice
from hookline.rules.death_pattern import DeathCause, Pattern
from hookline.rules.retry import PRESETS

ENDPOINT = ids.show("endpoint", bytes(15) + b"\x01")
DELIVERY = ids.show("delivery", bytes(15) + b"\x02")
NOBODY = {"HOOKLINE_URL": "http://127.0.0.1:1"}  # a request would end with 3


def deaths(**fields):
    defaults = {
        "endpoint_id": ENDPOINT,
        "url": "https://receiver.example/hooks",
        "count": 50,
        "error": "http_5xx",
        "status": 503,
        "first_at": "2026-11-18T02:14:17.233566Z",
        "last_at": "2026-11-18T02:51:40.938996Z",
        "mean_attempts": 6.5,
        "pattern": "outage",
        "advice": f"It fails. Test it: `hookline endpoints test {ENDPOINT}`, then "
        f"`hookline endpoints update {ENDPOINT} --header 'authorization: VALUE'`. If it has moved, tell us.",
    }
    return defaults | fields


def test_a_report_has_each_command_on_a_line_of_its_own():
    assert list(report(deaths(), width=80)) == [
        "OUTAGE: 50 dead letters",
        "  https://receiver.example/hooks",
        f"  {ENDPOINT}",
        "  mostly 503, first died 2026-11-18 02:14:17Z, last 2026-11-18 02:51:40Z, after",
        "  6.5 attempts on average",
        "  It fails. Test it:",
        f"      hookline endpoints test {ENDPOINT}",
        "  then",
        f"      hookline endpoints update {ENDPOINT} \\",
        "        --header 'authorization: VALUE'",
        "  If it has moved, tell us.",
    ]


def test_a_report_about_one_letter_of_a_deleted_endpoint():
    lone = deaths(
        url=None,
        count=1,
        status=None,
        error=None,
        first_at="2026-11-18T02:14:17Z",
        last_at="2026-11-18T02:14:17Z",
        mean_attempts=1.0,
        pattern="mixed",
        advice="A worker died.",
    )
    assert list(report(lone, width=80)) == [
        "MIXED: 1 dead letter",
        "  deleted endpoint",
        f"  {ENDPOINT}",
        "  no answer, died 2026-11-18 02:14:17Z, after 1 attempt",
        "  A worker died.",
    ]


def test_what_an_endpoint_is_called_cannot_move_the_cursor():
    hostile = deaths(url="https://receiver.example/\x1b[2J", advice="\x1b]0;owned\x07 `hookline \x1b[1m`")
    assert "\x1b" not in "".join(report(hostile, width=80))


def every_advice():
    statuses = (None, 301, 401, 404, 405, 410, 413, 422, 429, 503)
    causes = [
        DeathCause(reason, status, error)
        for reason in (Reason.EXHAUSTED, Reason.REJECTED, Reason.CRASH_LIMIT)
        for status in statuses
        for error in (None, ErrorKind.TIMEOUT, ErrorKind.BLOCKED_ADDRESS, ErrorKind.INTERNAL)
    ]
    for pattern in Pattern:
        for cause in causes:
            for count in (1, 50):
                found = Diagnosis(
                    pattern=pattern,
                    causes=((cause, count),),
                    newest=DELIVERY,
                    window="24h",
                    window_s=86_400.0,
                )
                for deleted in (False, True):
                    for headers in ((), ("x-api-key",)):
                        for rate in (None, 0.001):
                            yield advice(
                                found,
                                AdvisedEndpoint(
                                    id=ENDPOINT,
                                    is_deleted=deleted,
                                    headers=headers,
                                    per_second=rate,
                                    timeout=33.3,
                                    retry=PRESETS["quick"],
                                ),
                            )


COMMANDS = sorted({command for said in every_advice() for command in re.findall("`([^`]+)`", said)})


def test_advice_names_many_commands():
    assert len(COMMANDS) > 12


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_advice_is_one_that_hookline_understands(command):
    program, *arguments = shlex.split(command)
    assert program == "hookline"
    asked = CliRunner().invoke(root, arguments, env=NOBODY)
    assert asked.exit_code == UNREACHABLE, asked.output


@pytest.mark.parametrize("window", ["", "0h", "-1h", "10y", "3650d", "1.5h", "day"])
def test_a_window_that_is_none_is_a_usage_error_that_says_what_is_allowed(window):
    ended = CliRunner().invoke(root, ["dead", "analyse", f"--window={window}"], env=NOBODY)
    assert ended.exit_code == USAGE
    assert "from 1m to 90d" in " ".join(ended.output.split())
