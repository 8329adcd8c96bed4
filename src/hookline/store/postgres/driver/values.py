"""Converts single values and columns to what PostgreSQL can hold."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")

Columns = list[Sequence[Any] | None]


def printable(text: str) -> str:
    """Text as PostgreSQL can hold it: no NUL, no lone surrogate.

    Text that a receiver sent is stored here. One such character must not make a batch of 500 impossible to write.
    """
    if text.isascii() and "\0" not in text:
        return text
    return _UNPRINTABLE.sub("\ufffd", text)


def column(values: Sequence[Any]) -> Sequence[Any] | None:
    """The array, or null if it has only nulls: unnest fills it up, and nothing is encoded or sent."""
    return None if values.count(None) == len(values) else values


def unusual(values: Sequence[Any], usual: Any) -> Sequence[Any] | None:
    """The array with nulls for the usual value, or null if it has no other."""
    if values.count(usual) == len(values):
        return None
    return [None if value == usual else value for value in values]


def texts(values: Iterable[str | None]) -> Sequence[Any] | None:
    """The array of texts."""
    return column([None if value is None else printable(value) for value in values])


def jsons(values: Iterable[dict[str, str] | None]) -> Sequence[Any] | None:
    """The array of objects as JSON."""
    return column([None if value is None else json_text(value) for value in values])


def json_text(value: Any) -> str:
    """The value as JSON."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # possible only for an object that holds a receiver's text
        return msgspec.json.encode({printable(name): _clean(inner) for name, inner in value.items()}).decode()


def _clean(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def maybe(convert: Any, value: Any) -> Any:
    """The converted value; None stays None."""
    return None if value is None else convert(value)
