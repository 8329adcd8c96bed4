"""The command that analyses dead letters."""

import re
import shutil
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from hookline.cli.exits import Errors
from hookline.cli.options import connect, json_option, read_account, read_id, read_window, url_option
from hookline.cli.output import counted, print_json, printable
from hookline.cli.printing.short_ids import with_whole_ids

_WIDEST = 80  # columns of the report
_INDENT = "  "
_COMMAND = re.compile("`(hookline [^`]+)`")


@click.command()
@click.option(
    "--window",
    callback=read_window,
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="How far to look back, such as 15m, 1h or 7d.",
)
@click.option(
    "--endpoint", "endpoint_id", callback=read_id, metavar="ID", help="Only dead letters of this endpoint."
)
@click.option("--account", callback=read_account, help="Only dead letters of this account.")
@url_option
@json_option
def analyse(window: str, url: str | None, as_json: bool, **filter: Any) -> None:
    """Say why deliveries died, endpoint by endpoint, and what to do about it."""
    with Errors():
        chosen = {name: value for name, value in filter.items() if value is not None}
        client = connect(url)
        found = client.get("/v1/dead-letters/analysis", window=window, **with_whole_ids(client, chosen))
        if as_json:
            print_json(found)
            return
        if not found["data"]:
            click.echo(f"No dead letters in the last {window}.", err=True)
            return
        total = sum(each["count"] for each in found["data"])
        letters = counted(total, "dead letter", "dead letters")
        endpoints = counted(len(found["data"]), "endpoint", "endpoints")
        click.echo(f"{letters} of {endpoints} in the last {window}, the most first")
        width = min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
        for each in found["data"]:
            click.echo()
            for line in report(each, width=width):
                click.echo(line)


def report(deaths: dict[str, Any], *, width: int) -> Iterator[str]:
    """What was found about one endpoint, line by line; each command has a line of its own, to be copied."""
    yield f"{deaths['pattern'].upper()}: {counted(deaths['count'], 'dead letter', 'dead letters')}"
    yield f"{_INDENT}{'deleted endpoint' if deaths['url'] is None else printable(deaths['url'])}"
    yield f"{_INDENT}{deaths['endpoint_id']}"
    yield from _wrapped(", ".join(_facts(deaths)), width)
    for words, command in _steps(deaths["advice"]):
        yield from _wrapped(words, width)
        if command:
            yield from _copyable(command, width)


def _copyable(command: str, width: int) -> Iterator[str]:
    """The command; where it is too long its last option is on the next line, as a shell reads it."""
    line = f"{_INDENT * 3}{command}"
    head, option, tail = line.rpartition(" --")
    if len(line) <= width or not option:
        yield line
        return
    yield f"{head} \\"
    yield f"{_INDENT * 4}--{tail}"


def _facts(deaths: dict[str, Any]) -> Iterator[str]:
    answer = deaths["status"] or deaths["error"]
    yield f"mostly {answer}" if answer else "no answer"
    first, last = _moment(deaths["first_at"]), _moment(deaths["last_at"])
    yield f"died {last}" if first == last else f"first died {first}, last {last}"
    mean = deaths["mean_attempts"]
    yield f"after {mean:g} attempt{'' if mean == 1 else 's'}{'' if deaths['count'] == 1 else ' on average'}"


def _steps(advice: str) -> Iterator[tuple[str, str | None]]:
    """The words before each command, with the command; then the words that are left."""
    parts = _COMMAND.split(printable(advice))
    for place in range(0, len(parts), 2):
        words = parts[place].strip(" ,.;") if place else parts[place].strip()
        command = parts[place + 1] if place + 1 < len(parts) else None
        if words or command:
            yield _sentence(words, is_last=command is None), command


def _sentence(words: str, *, is_last: bool) -> str:
    return f"{words}." if is_last and not words.endswith((".", ":")) else words


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )


def _moment(text: str) -> str:
    """`2026-01-31 12:00:05Z`: without the fractions that no person reads."""
    return f"{text[:10]} {text[11:19]}Z"
