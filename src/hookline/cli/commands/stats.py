"""The command that shows how fast an endpoint answers."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

import click

from hookline import rfc3339
from hookline.cli.exits import Errors
from hookline.cli.options import connect, json_option, read_window, url_option
from hookline.cli.output import counted, print_json, printable
from hookline.cli.printing.short_ids import whole_id

WIDTH = 80  # columns of the screen
_BARS = "▁▂▃▄▅▆▇█"
_SERIES = 48  # characters of a series at most
_NAME = 12  # characters before the figures
_STEPS = {60: "minute", 3_600: "hour", 86_400: "day"}


@click.command()
@click.argument("endpoint_id", metavar="ENDPOINT")
@click.option(
    "--window",
    callback=read_window,
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="How far to look back, such as 15m, 1h or 7d.",
)
@url_option
@json_option
def stats(endpoint_id: str, window: str, url: str | None, as_json: bool) -> None:
    """Show how fast an endpoint answers and what. The newest half minute may be missing."""
    with Errors():
        client = connect(url)
        found = client.get(f"/v1/endpoints/{whole_id(client, 'endpoint', endpoint_id)}/stats", window=window)
        if as_json:
            print_json(found)
            return
        for line in screen(found, window=window):
            click.echo(line)


def screen(stats: Mapping[str, Any], *, window: str) -> Iterator[str]:
    """The statistics, line by line."""
    yield f"{stats['endpoint_id']}, the last {window}"
    yield ", ".join(_facts(stats))
    if not stats["samples"]:
        return
    yield ""
    yield " " * _NAME + "".join(name.rjust(11) for name in ("p50", "p95", "p99", "mean", "samples"))
    phases = stats["phases"]
    for name, figures in (
        ("response", stats),
        ("queue wait", stats["queue_wait"]),
        ("end to end", stats["end_to_end"]),
        ("dns", phases["dns"]),
        ("connect", phases["connect"]),
        ("tls", phases["tls"]),
        ("first byte", phases["first_byte"]),
    ):
        times = (figures[field] for field in ("p50_ms", "p95_ms", "p99_ms", "mean_ms"))
        yield name.ljust(_NAME) + "".join(
            cell.rjust(11) for cell in (*map(_duration, times), f"{figures['samples']:,}")
        )
    yield ""
    answers = sorted(stats["by_status"].items(), key=lambda each: (-each[1], each[0]))
    text = ", ".join(f"{printable(answer)} × {number:,}" for answer, number in answers)
    yield from textwrap.wrap(
        text, WIDTH, initial_indent="answers".ljust(_NAME), subsequent_indent=" " * _NAME
    )
    yield ""
    yield from _series(stats)


def _facts(stats: Mapping[str, Any]) -> Iterator[str]:
    if not stats["samples"]:
        yield "no attempts"
    else:
        yield counted(stats["samples"], "attempt", "attempts")
        yield f"{_percent(stats['success_rate'])} accepted"
    if stats["slow"]:
        yield "slow"
    yield f"{stats['pending']:,} pending"
    yield f"{stats['dead']:,} dead"


def _series(stats: Mapping[str, Any]) -> Iterator[str]:
    """The attempts and their p95 over the window as bars, the newest last."""
    step = stats["step_s"]
    first = int(rfc3339.read(stats["since"]) // step)
    length = int(rfc3339.read(stats["until"]) // step) - first + 1
    together = ceil(length / _SERIES)  # points that share a bar
    attempts = [0] * ceil(length / together)
    slowest: list[float] = [0.0] * len(attempts)
    for point in stats["series"]:
        place = min(max(0, int(rfc3339.read(point["at"]) // step) - first), length - 1) // together
        attempts[place] += point["samples"]
        slowest[place] = max(slowest[place], point["p95_ms"] or 0.0)
    each = _STEPS.get(step, f"{step} s")
    said = f"each {each}" if together == 1 else f"{together} {each}s"
    yield f"{'p95'.ljust(_NAME)}{_bars(slowest)}  to {_duration(max(slowest))}"
    yield f"{'attempts'.ljust(_NAME)}{_bars(attempts)}  to {max(attempts):,}"
    yield f"{' ' * _NAME}a bar is {said}, the newest last; nothing: no attempts"


def _bars(numbers: Sequence[float]) -> str:
    most = max(numbers) or 1.0
    return "".join(
        " " if not number else _BARS[min(len(_BARS) - 1, int(number / most * len(_BARS)))]
        for number in numbers
    )


def _duration(ms: float | None) -> str:
    """`0.12 ms`, `12 ms`, `1.20 s`, `3.0 h`; nothing was measured: `-`."""
    if ms is None:
        return "-"
    if ms < 1_000:
        return f"{ms:.2f} ms" if ms < 10 else f"{ms:.0f} ms"
    if ms < 100_000:
        return f"{ms / 1_000:.2f} s"
    minutes = ms / 60_000
    return f"{minutes:.1f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _percent(share: float) -> str:
    """`100 %` only if it was all of them, and `0 %` only if it was none."""
    shown = round(share * 100, 1)
    if shown == 100 and share < 1:
        return "over 99.9 %"
    return "under 0.1 %" if shown == 0 and share > 0 else f"{shown:g} %"
