"""Prints data.

People get aligned columns or `name: value` lines, programs get JSON. Control characters from receivers and publishers
never reach a terminal.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from hookline.cli.exits import CommandError
from hookline.cli.printing.text import print_json as print_json
from hookline.cli.printing.text import printable as printable
from hookline.cli.streams import OutputFailed, give_up_printing

_NARROWEST = 8  # characters that a cell is shortened to where the terminal has no room for more


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


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; what it yields shows how much of how much is done."""
    with click.progressbar(length=1, label=label, file=sys.stderr, show_pos=True) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a list: the named fields of each object, or as JSON everything.

    `a.b` is a field of a field, `name=a` gives a field another name, and `name=a|b` is the first of them that exists.
    """
    from hookline.cli.printing.table import Column, print_list

    def column(said: str) -> Column:
        name, _, path = said.rpartition("=")
        is_id = path == "id" or path.endswith("_id")
        return Column(
            (name or path).upper(),
            lambda row: _text(_field(row, path)),
            least=None if is_id else _NARROWEST,
        )

    print_list(rows, lambda _: [column(each) for each in columns], as_json=as_json)


def print_fields(value: Mapping[str, Any], *, as_json: bool) -> None:
    """Print one object. A time is followed by how far away it is."""
    if as_json:
        print_json(value)
        return
    from hookline.cli.printing.times import Times

    times = Times()
    width = max(map(len, value), default=0)
    for name, each in value.items():
        is_time = isinstance(each, str) and name.endswith("_at")
        text = times.both(each) if is_time else _text(each)
        click.echo(f"{name.ljust(width)}  {printable(text)}".rstrip())


def counted(number: int, one: str, many: str) -> str:
    """`1 delivery`, `2,000 deliveries`."""
    return f"{number:,} {one if number == 1 else many}"


def _field(row: Mapping[str, Any], column: str) -> Any:
    for path in column.split("|"):
        value: Any = row
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
