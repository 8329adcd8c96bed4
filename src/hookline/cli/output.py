"""Prints data.

People get aligned columns or `name: value` lines, programs get JSON. Control characters from receivers and publishers
never reach a terminal.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from hookline.cli.exits import CommandError
from hookline.cli.streams import OutputFailed, give_up_printing

_WIDEST = 60  # characters of a cell on a terminal; a pipe gets all of them
_NARROWEST = 8  # characters that a cell is shortened to where the terminal has no room for more
_BETWEEN = "  "


def print_json(value: Any) -> None:
    """One JSON value."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say(text: str, value: Any, *, as_json: bool) -> None:
    """Print what was done: a sentence for people, the whole value for programs."""
    if as_json:
        print_json(value)
    else:
        click.echo(text)


@contextlib.contextmanager
def although(done: str, *, step: str = "") -> Iterator[None]:
    """Print the result. If that fails, say that it was done, or it would be done again; `step` is what to do now."""
    try:
        yield
    except OutputFailed as error:
        give_up_printing()
        raise CommandError(f"{done}, but {error}{step and f'; {step}'}.") from None


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a list: the named fields of each object, or as JSON everything.

    `a.b` is a field of a field, `name=a` gives a field another name, and `name=a|b` is the first of them that exists.
    """
    found = list(rows)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("No results.", err=True)
        return
    on_terminal = sys.stdout.isatty()
    table = [
        [_cell(_field(row, column.rpartition("=")[2]), cut=on_terminal) for column in columns]
        for row in found
    ]
    names = [column.partition("=")[0].upper() for column in columns]
    widths = [max(len(row[place]) for row in [names, *table]) for place in range(len(columns))]
    if on_terminal:
        fitting = _fitted(widths, names, shutil.get_terminal_size().columns)
        if fitting is None:
            _print_blocks(table, names)
            return
        widths = fitting
    click.echo(_bold(_line(names, widths)) if on_terminal else _line(names, widths))
    for row in table:
        click.echo(_line([_shortened(cell, width) for cell, width in zip(row, widths, strict=True)], widths))


def print_fields(value: Mapping[str, Any], *, as_json: bool) -> None:
    """Print one object."""
    if as_json:
        print_json(value)
        return
    width = max(map(len, value), default=0)
    for name, each in value.items():
        click.echo(f"{name.ljust(width)}  {printable(_text(each))}".rstrip())


def printable(text: str) -> str:
    """The text without what could move a terminal's cursor or change its colours."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def counted(number: int, one: str, many: str) -> str:
    """`1 delivery`, `2,000 deliveries`."""
    return f"{number:,} {one if number == 1 else many}"


def _fitted(widths: Sequence[int], names: Sequence[str], room: int) -> list[int] | None:
    """Widths that make the columns fit on a line; None if no widths do.

    Ids stay whole, or they could not be copied.
    """
    room -= len(_BETWEEN) * (len(widths) - 1)
    least = [
        width if name == "ID" or name.endswith("_ID") else min(width, max(_NARROWEST, len(name)))
        for width, name in zip(widths, names, strict=True)
    ]
    if sum(least) > room:
        return None
    fitted = list(widths)
    while (over := sum(fitted) - room) > 0:
        widest = max(range(len(fitted)), key=lambda place: fitted[place] - least[place])
        fitted[widest] -= min(over, max(1, (fitted[widest] - least[widest]) // 2))
    return fitted


def _print_blocks(table: Sequence[Sequence[str]], names: Sequence[str]) -> None:
    """Print each row as lines of its own, where the columns do not fit side by side."""
    width = max(map(len, names))
    for number, row in enumerate(table):
        if number:
            click.echo()
        for name, cell in zip(names, row, strict=True):
            click.echo(f"{_bold(name.ljust(width))}{_BETWEEN}{cell}")


def _field(row: Mapping[str, Any], column: str) -> Any:
    for path in column.split("|"):
        value: Any = row
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def _cell(value: Any, *, cut: bool) -> str:
    text = printable(_text(value)) or "-"
    return _shortened(text, _WIDEST) if cut else text


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _bold(text: str) -> str:
    return text if "NO_COLOR" in os.environ else click.style(text, bold=True)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _BETWEEN.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
