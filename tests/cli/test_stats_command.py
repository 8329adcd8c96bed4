"""What `hookline stats` prints."""

import json

import pytest
from click.testing import CliRunner

from answering import eventually, receiving
from hookline import ids
from hookline.cli.commands.stats import WIDTH, screen
from hookline.cli.exits import NOT_FOUND, UNREACHABLE, USAGE
from hookline.cli.root import root
from server_process import ServerProcess, run

ENDPOINT = ids.show("endpoint", bytes(15) + b"\x01")
NOBODY = {"HOOKLINE_URL": "http://127.0.0.1:1"}  # a request would end with 3


def figures(samples=0, *numbers):
    names = ("p50_ms", "p95_ms", "p99_ms", "mean_ms")
    return {"samples": samples} | dict(zip(names, numbers or [None] * 4, strict=True))


def found(**fields):
    phases = {name: figures() for name in ("dns", "connect", "tls")}
    phases["first_byte"] = figures(1_234, 10.0, 90.0, 1_000.0, 20.0)
    return {
        **figures(1_234, 12.345, 120.0, 4_321.0, 30.0),
        "endpoint_id": ENDPOINT,
        "since": "2026-11-17T12:00:00Z",
        "until": "2026-11-18T12:00:30Z",
        "precision_s": 60,
        "success_rate": 0.9995,
        "slow": True,
        "pending": 3,
        "dead": 1_000,
        "by_status": {"200": 1_200, "503": 30, "timeout": 4},
        "queue_wait": figures(1_234, 0.1, 1.5, 9.99, 0.5),
        "end_to_end": figures(1_200, 15.0, 150_000.0, 90_000_000.0, 40.0),
        "phases": phases,
        "series": [
            {"at": "2026-11-17T12:00:00Z", "samples": 1_000, "accepted": 1_000, "p95_ms": 30.0},
            {"at": "2026-11-18T12:00:00Z", "samples": 234, "accepted": 200, "p95_ms": 120.0},
        ],
        "step_s": 3_600,
    } | fields


def test_the_screen_shows_the_figures_in_columns():
    assert list(screen(found(), window="24h")) == [
        f"{ENDPOINT}, the last 24h",
        "1,234 attempts, over 99.9 % accepted, slow, 3 pending, 1,000 dead",
        "",
        "                    p50        p95        p99       mean    samples",
        "response          12 ms     120 ms     4.32 s      30 ms      1,234",
        "queue wait      0.10 ms    1.50 ms    9.99 ms    0.50 ms      1,234",
        "end to end        15 ms    2.5 min     25.0 h      40 ms      1,200",
        "dns                   -          -          -          -          0",
        "connect               -          -          -          -          0",
        "tls                   -          -          -          -          0",
        "first byte        10 ms      90 ms     1.00 s      20 ms      1,234",
        "",
        "answers     200 × 1,200, 503 × 30, timeout × 4",
        "",
        f"p95         ▃{' ' * 23}█  to 120 ms",
        f"attempts    █{' ' * 23}▂  to 1,000",
        "            a bar is each hour, the newest last; nothing: no attempts",
    ]


def test_an_endpoint_without_attempts_is_said_to_have_none():
    empty = found(**figures(), success_rate=None, by_status={}, series=[], slow=False)
    assert list(screen(empty, window="1h")) == [
        f"{ENDPOINT}, the last 1h",
        "no attempts, 3 pending, 1,000 dead",
    ]


@pytest.mark.parametrize(
    ("since", "step"),
    [("2026-11-18T11:00:00Z", 60), ("2026-11-11T12:00:00Z", 3_600), ("2026-08-20T12:00:00Z", 86_400)],
)
def test_every_window_fits_into_eighty_columns(since, step):
    statuses = {str(status): 10**9 for status in range(200, 600, 7)}
    huge = figures(10**10, *[1e9 + 0.123] * 4)
    series = [
        {"at": at, "samples": 10**9, "accepted": 0, "p95_ms": 59_999.9}
        for at in (since, "2026-11-18T12:00:00Z")
    ]
    wide = found(**huge, since=since, step_s=step, by_status=statuses, series=series, success_rate=1 / 10**9)
    lines = list(screen(wide, window="90d"))
    assert max(map(len, lines)) <= WIDTH
    assert any("under 0.1 % accepted" in line for line in lines)


def test_what_is_stored_cannot_move_the_cursor():
    hostile = found(by_status={"\x1b[2J": 1})
    assert "\x1b" not in "".join(screen(hostile, window="24h"))


@pytest.mark.parametrize("window", ["", "0h", "0", "-1h", "10y", "3650d", "1.5h", "day"])
def test_a_window_that_is_none_is_a_usage_error_that_says_what_is_allowed(window):
    ended = CliRunner().invoke(root, ["stats", ENDPOINT, f"--window={window}"], env=NOBODY)
    assert ended.exit_code == USAGE
    assert "from 1m to 90d" in ended.output.splitlines()[-1]


def test_a_server_that_cannot_be_reached_ends_it_with_3():
    assert CliRunner().invoke(root, ["stats", ENDPOINT], env=NOBODY).exit_code == UNREACHABLE


def test_an_endpoint_is_named_by_its_id_or_the_beginning_of_it(tmp_path):
    with receiving() as receiver, ServerProcess("--dev", cwd=tmp_path) as server:

        def hookline(*arguments):
            return run(*arguments, cwd=tmp_path, env={"HOOKLINE_URL": server.url})

        created = hookline("endpoints", "create", f"{receiver.url}/200", "--event", "*", "--json")
        endpoint = json.loads(created.stdout)["id"]
        assert hookline("send", "order.paid", "{}", "--wait").returncode == 0

        def measured():
            shown = json.loads(hookline("stats", endpoint[:20], "--window", "15m", "--json").stdout)
            return shown if shown["samples"] else None

        shown = eventually(measured)
        assert (shown["endpoint_id"], shown["by_status"]) == (endpoint, {"200": 1})
        # It may have been counted while it was pending: the next count is some seconds away.
        shown = [f"{endpoint}, the last 24h", "1 attempt, 100 % accepted, 0 pending, 0 dead"]
        eventually(lambda: hookline("stats", endpoint).stdout.splitlines()[:2] == shown or None)
        unknown = hookline("stats", ENDPOINT)
        assert (unknown.returncode, unknown.stdout) == (NOT_FOUND, "")
        assert len(unknown.stderr.splitlines()) == 1
        assert server.stop() == 0
