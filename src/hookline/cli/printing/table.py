"""Prints lists as tables that fit the terminal.

A line is never wrapped. Where there is no room, optional columns are left out first, then long cells are cut, with `…`
at their end. Without a terminal nothing is cut or left out, and there is no colour.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from unicodedata import combining, east_asian_width

import click

from hookline.cli.printing.text import print_json, printable

BETWEEN = "  "
NOTHING = "-"

Row = Mapping[str, Any]


def _no_colour(row: Row) -> str | None:
    return None


class Column(NamedTuple):
    """A column of a table."""

    name: str
    text: Callable[[Row], str]
    least: int | None = None  # characters that its cells are cut to, if need be; None: they stay whole
    rank: int = 0  # where there is no room the highest rank is left out first; 0: it is always there
    is_number: bool = False
    is_cut_inside: bool = False  # its cells differ at both ends, as URLs do
    colour: Callable[[Row], str | None] = _no_colour


Columns = Callable[[Sequence[Row]], Sequence[Column]]


def print_list(rows: Iterable[Row], columns: Columns, *, as_json: bool) -> None:
    """Print a list: a table of the columns that are made for it, or as JSON everything."""
    found = list(rows)
    if as_json:
        print_json(found)
    elif not found:
        click.echo("No results.", err=True)
    else:
        print_table(found, columns(found))


def print_table(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """Print the rows below the columns' names."""
    on_terminal = sys.stdout.isatty()
    for line in table_lines(
        rows,
        columns,
        room=shutil.get_terminal_size().columns if on_terminal else None,
        is_coloured=on_terminal and has_colour(),
    ):
        click.echo(line)


def has_colour() -> bool:
    """Whether a terminal may be sent colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def table_lines(
    rows: Sequence[Row], columns: Sequence[Column], *, room: int | None, is_coloured: bool
) -> list[str]:
    """The lines of a table in `room` characters; None: as many as it needs."""
    cells = [[printable(column.text(row)) or NOTHING for column in columns] for row in rows]
    needed = [
        max([len(column.name), *(width_of(row[place]) for row in cells)])
        for place, column in enumerate(columns)
    ]
    widths = dict(enumerate(needed)) if room is None else fitted(columns, needed, room)
    shown = list(widths)

    def line(texts: Sequence[str], colours: Sequence[str | None], *, bold: bool = False) -> str:
        parts = []
        for place in shown:
            column, width = columns[place], widths[place]
            text = (cut_inside if column.is_cut_inside else cut)(texts[place], width)
            part = _padded(text, width, column.is_number)
            if place == shown[-1]:
                part = part.rstrip()
            if is_coloured and (bold or colours[place]):
                part = click.style(part, bold=bold or None, fg=colours[place])
            parts.append(part)
        return BETWEEN.join(parts).rstrip()

    plain: list[str | None] = [None] * len(columns)
    head = line([column.name for column in columns], plain, bold=True)
    return [
        head,
        *(
            line(texts, [column.colour(row) for column in columns])
            for row, texts in zip(rows, cells, strict=True)
        ),
    ]


def fitted(columns: Sequence[Column], needed: Sequence[int], room: int) -> dict[int, int]:
    """By place: the width of each column that is shown."""
    least = [
        width if column.least is None else min(width, max(column.least, len(column.name)))
        for column, width in zip(columns, needed, strict=True)
    ]
    shown = list(range(len(columns)))
    while _total([least[each] for each in shown]) > room and any(columns[each].rank for each in shown):
        shown.remove(max(shown, key=lambda place: columns[place].rank))
    widths = {place: needed[place] for place in shown}
    while (over := _total(list(widths.values())) - room) > 0:
        widest = max(shown, key=lambda place: widths[place] - least[place])
        if widths[widest] == least[widest]:
            return _squeezed(widths, room)
        widths[widest] -= min(over, max(1, (widths[widest] - least[widest]) // 2))
    return widths


def _squeezed(widths: Mapping[int, int], room: int) -> dict[int, int]:
    """What fits, from the left, where even the narrowest columns do not."""
    found: dict[int, int] = {}
    for place, width in widths.items():
        left = room - sum(found.values()) - len(BETWEEN) * len(found)
        if left < 1:
            break
        found[place] = min(width, left)
    return found


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(BETWEEN) * (len(widths) - 1)


def cut(text: str, width: int) -> str:
    """The text in at most this many columns, with `…` at its end if some of it is left out."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1] if not text.isascii() else text[: width - 1]
    return text + "…"


def cut_inside(text: str, width: int) -> str:
    """The text in at most this many columns, with `…` instead of a part of its middle."""
    if width_of(text) <= width or width < 3 or not text.isascii():
        return cut(text, width)
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[-end:]}"


def width_of(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _padded(text: str, width: int, is_number: bool) -> str:
    padding = " " * (width - width_of(text))
    return padding + text if is_number else text + padding
