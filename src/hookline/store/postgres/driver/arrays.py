"""Encodes the columns of a batch as PostgreSQL arrays.

Long columns are encoded here, not by the driver. The driver checks of every element whether it is itself a list, twice
if it is bytes or text; that was a fourteenth of the cost of an event. The parameters of the hot statements have domains
over arrays as their types, and each domain has a codec that writes the column at once.
"""

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from struct import Struct
from typing import Any

import structlog

log = structlog.get_logger("hookline.store")

Column = Sequence[Any]

_HEAD = Struct(">iiIii")  # dimensions, is any null, type of the elements, length, number of the first
_LENGTH = Struct(">i")
_NUMBER = Struct(">id")
_ID_LENGTH = (16).to_bytes(4)
_NULL = (-1).to_bytes(4, signed=True)

_BYTEA, _TEXT, _FLOAT8, _UUID = 17, 25, 701, 2950  # object ids of PostgreSQL's own types, the same everywhere

READ_DOMAINS = """
SELECT t.typname, t.oid FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname = $1 AND t.typname = ANY ($2::text[]) AND t.typtype = 'd'
"""


def ids(column: Column) -> bytes:
    """An `id_list`; no id is null."""
    return _head(_UUID, column) + (_ID_LENGTH + _ID_LENGTH.join(column) if column else b"")


def numbers(column: Column) -> bytes:
    """A `number_list`. Whole numbers too: float8 holds larger ones than are ever counted here."""
    if None in column:
        return _array(_FLOAT8, column, lambda number: _NUMBER.pack(8, number))
    return _head(_FLOAT8, column) + b"".join(map(_NUMBER.pack, repeat(8), column))


def texts(column: Column) -> bytes:
    """A `text_list`."""
    if None in column:
        return _array(_TEXT, column, lambda text: _sized(text.encode()))
    return _head(_TEXT, column) + _all_sized([text.encode() for text in column])


def blobs(column: Column) -> bytes:
    """A `bytes_list`."""
    if None in column:
        return _array(_BYTEA, column, _sized)
    return _head(_BYTEA, column) + _all_sized(column)


CODECS: dict[str, Callable[[Column], bytes]] = {
    "id_list": ids,
    "number_list": numbers,
    "text_list": texts,
    "bytes_list": blobs,
}


async def use_lists(connection: Any, *, schema: str) -> bool:
    """Let a session encode lists with our codecs; False: it uses the driver's, which take longer."""
    found = await connection.fetch(READ_DOMAINS, schema, list(CODECS))
    try:
        # The driver's public way to set a codec refuses domains, because of reading. Nothing here reads one.
        settings = connection._protocol.get_settings()
        for name, oid in found:
            settings.add_python_codec(oid, name, schema, [], "scalar", CODECS[name], _never_read, "binary")
    except (AttributeError, TypeError) as error:  # a driver with other internals
        log.debug("store.slow_lists", error=str(error))
        return False
    return True


def _array(type: int, column: Column, write: Callable[[Any], bytes]) -> bytes:
    return _head(type, column) + b"".join([_NULL if value is None else write(value) for value in column])


def _head(type: int, column: Column) -> bytes:
    if not column:
        return _HEAD.pack(0, 0, type, 0, 0)[:12]
    return _HEAD.pack(1, None in column, type, len(column), 1)


def _sized(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _all_sized(column: Sequence[bytes]) -> bytes:
    # Without a call of ours for each element.
    return b"".join(chain.from_iterable(zip(map(_LENGTH.pack, map(len, column)), column, strict=True)))


def _never_read(value: bytes) -> bytes:
    raise TypeError("A list is written, never read.")
