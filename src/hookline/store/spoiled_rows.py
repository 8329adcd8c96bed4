"""Reads a row although some of its values cannot be read.

A row may have been written by hand, by a broken migration or by a newer version. What cannot be read gets a stand-in, so
that the row can be listed and ended; a row without what identifies it is left out. One row must not keep the others
from being read. Whoever has a stand-in for a right or a limit chooses the one that allows the least.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast, get_args

import msgspec

T = TypeVar("T")


class Spoiled(msgspec.Struct, frozen=True):
    """What could not be read of a row."""

    kind: str  # the type of what it holds
    id: Any  # of any type, as it is stored
    fields: tuple[str, ...]


_noted: ContextVar[list[Spoiled] | None] = ContextVar("noted", default=None)
ID_BYTES = 16
_NONE: Mapping[str, Any] = {}
_BY_TYPE: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False}


class _Shape(NamedTuple):
    """What a type wants to know of a row."""

    fields: tuple[Any, ...]
    ids: tuple[str, ...]  # fields that are an id of 16 bytes, or None


def read(
    type: type[T], values: dict[str, Any], stand_ins: Mapping[str, Any] = _NONE, *, names: str | None = None
) -> T | None:
    """What these columns hold; None: it cannot be told apart from others. `names` is the text that identifies it."""
    try:
        found = msgspec.convert(values, type)
    except Exception:  # of any kind: a row may hold anything
        return _read_one_by_one(type, values, stand_ins, names)
    if all(_is_id(values[name]) for name in _shape(cast("Any", type)).ids):
        return found
    return _read_one_by_one(type, values, stand_ins, names)


def read_all(found: Iterable[T | None]) -> list[T]:
    """The ones that could be read."""
    return [each for each in found if each is not None]


def decoded(text: Any) -> Any:
    """The JSON in a column; what is none becomes a value that no field takes."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except Exception:
        return _UNREAD


@contextmanager
def noted() -> Iterator[list[Spoiled]]:
    """Collect what is spoiled of the rows that are read meanwhile, for whoever looks for trouble."""
    found: list[Spoiled] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def note(kind: str, id: Any, *fields: str) -> None:
    """These fields of a row could not be read."""
    if (found := _noted.get()) is not None and fields:
        found.append(Spoiled(kind, id, fields))


def finite(number: Any) -> Any:
    """The number; 0 instead of one that is none, which would spoil every sum."""
    return 0.0 if isinstance(number, float) and not math.isfinite(number) else number


class _Unread:
    """Stands where a value could not even be decoded."""


_UNREAD = _Unread()


def _read_one_by_one(
    type: type[T], values: dict[str, Any], stand_ins: Mapping[str, Any], names: str | None
) -> T | None:
    shape = _shape(cast("Any", type))
    read: dict[str, Any] = {}
    unread = []
    for field in shape.fields:
        name = field.name
        try:
            value = msgspec.convert(values[name], field.type)
            if name in shape.ids and not _is_id(value):
                raise ValueError(name)
        except Exception:
            unread.append(name)
            if name == names:
                note(type.__name__, values[name], name)
                return None
            if name in stand_ins:
                value = stand_ins[name]
            elif field.default is not msgspec.NODEFAULT:
                value = field.default
            elif field.type in _BY_TYPE:
                value = _BY_TYPE[field.type]
            elif _may_be_none(field.type):
                value = None
            else:
                note(type.__name__, values[name], name)
                return None
        read[name] = value
    note(type.__name__, values.get("id", values.get(names or "")), *unread)
    return type(**read)


def _is_id(value: Any) -> bool:
    return value is None or (isinstance(value, bytes) and len(value) == ID_BYTES)


@cache
def _shape(type: Any) -> _Shape:
    fields = msgspec.structs.fields(type)
    ids = tuple(each.name for each in fields if any(_names_an_id(part) for part in _parts(each.type)))
    return _Shape(fields, ids)


def _parts(type: Any) -> tuple[Any, ...]:
    return get_args(type) if _may_be_none(type) else (type,)


def _may_be_none(type: Any) -> bool:
    return None.__class__ in get_args(type)


def _names_an_id(type: Any) -> bool:
    return getattr(type, "__supertype__", None) is bytes
