"""Prints an attempt: the answer, why it failed, how long each phase took, the headers and the response's body."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from hookline.cli.printing.columns import answer_colour, answer_of, took
from hookline.cli.printing.table import has_colour
from hookline.cli.printing.text import printable
from hookline.cli.printing.times import Times

MOST_CHARACTERS = 2_000  # of a body
MOST_LINES = 40
_WIDTH = len("received") + 2


def print_attempt(attempt: Mapping[str, Any]) -> None:
    """Print one attempt."""
    head = f"attempt {attempt['number']}: {answer_of(attempt) or 'no answer'}"
    if has_colour():
        head = click.style(head, fg=answer_colour(attempt), bold=True)  # echo drops it without a terminal
    details = [took(attempt["duration_ms"])]
    if attempt["at"] is not None:
        details.append(Times().both(attempt["at"]))
    click.echo(", ".join([head, *filter(None, details)]))
    for line in attempt_lines(attempt):
        click.echo(f"  {line}".rstrip())


def attempt_lines(attempt: Mapping[str, Any]) -> Iterator[str]:
    """What is known of it, line by line."""
    error = attempt["error"]
    if error is not None:
        yield from _named(
            "error", [f"{error['kind']}: {error['detail']}" if error["detail"] else error["kind"]]
        )
    yield from _named("url", filter(None, [attempt["request"]["url"]]))
    if attempt["final_url"] not in (None, attempt["request"]["url"]):
        yield from _named("final", [attempt["final_url"]])
    phases = ", ".join(
        f"{name.replace('_', ' ')} {took(phase)}"
        for name, phase in attempt["phases_ms"].items()
        if phase is not None
    )
    yield from _named("phases", filter(None, [phases]))
    if attempt["late"]:
        yield from _named(
            "late", ["it was settled by a worker that had lost the lane, and counts for nothing"]
        )
    yield from _named("sent", _headers(attempt["request"]["headers"]))
    yield from _named("received", _headers(attempt["response_headers"]))
    yield from _named("body", _body(attempt["response_body"], is_cut=attempt["response_truncated"]))


def _named(name: str, texts: Any) -> Iterator[str]:
    """The texts below each other, with a name before the first."""
    for text in texts:
        yield f"{name.ljust(_WIDTH)}{printable(text)}"
        name = ""


def _headers(headers: Mapping[str, str] | None) -> list[str]:
    return [f"{name}: {value}" for name, value in (headers or {}).items()]


def _body(body: str, *, is_cut: bool) -> Iterator[str]:
    """The body's lines; control characters are made visible, and what is left out is said."""
    if not body:
        yield "empty"
        return
    shown = body[:MOST_CHARACTERS]
    lines = shown.split("\n")  # not splitlines(): a receiver's other separators stay visible
    shown = "\n".join(lines[:MOST_LINES])
    yield from (line.removesuffix("\r") for line in lines[:MOST_LINES])
    if len(shown) < len(body):
        yield f"… {len(shown):,} of {len(body):,} characters shown; --json prints all that were kept"
    if is_cut:
        yield f"… the response was longer; its first {len(body):,} characters were kept"
