"""Converts single values to and from what SQLite holds.

Rows bound in batches consist only of plain numbers, str and bytearray. For everything else (bytes, None, bool, enum
members) sqlite3 looks for an adapter first, 0.4 µs a value, which would be most of the time of a settle.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from hookline.ids import MAX_FANOUT
from hookline.model import EventId

ABOVE_ALL_IDS = b"\xff" * 17
_ORDINALS = MAX_FANOUT - 1

# Placeholders for None; the statements turn them into NULL.
NO_TEXT = "\0"
NO_TIME = float("-inf")
NO_STATUS = -1
NO_DURATION = -1.0


def packed(ids: Iterable[bytes]) -> bytes:
    """A list of ids as one value, which the statements take apart."""
    return b"".join(ids)


def delivery_range(event: EventId) -> dict[str, bytes]:
    """The first and the last id that a delivery of the event can have."""
    return {"first": event, "last": (int.from_bytes(event) | _ORDINALS).to_bytes(16)}


def json_text(value: object) -> str:
    """The value as JSON."""
    return msgspec.json.encode(value).decode()


def maybe(convert: Callable[[Any], Any], value: Any) -> Any:
    """The converted value; None stays None."""
    return None if value is None else convert(value)
