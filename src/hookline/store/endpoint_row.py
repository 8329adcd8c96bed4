"""Reads an endpoint from a stored row, whatever the row holds.

A row may have been written by an older version, by hand or by a broken migration. A value that cannot be read gets a
placeholder and is named in `Endpoint.unread`: one row must not keep the others from being read.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from hookline.model import Endpoint

_ID_BYTES = 16
_FIELDS = tuple(field for field in msgspec.structs.fields(Endpoint) if field.name != "unread")
_STAND_INS: dict[str, Any] = {
    "account": "",
    "url": "",
    "events": (),
    "secret": "",
    "created_at": 0.0,
    "updated_at": 0.0,
}
_MOST_TOLD = 200  # characters


def read(values: dict[str, Any], *, json: Sequence[str]) -> Endpoint | None:
    """The endpoint in these columns, of which those in `json` are texts; None: it has no id."""
    try:
        decoded = {name: _decoded(values[name]) for name in json}
        return msgspec.convert(values | decoded, Endpoint)
    except Exception:
        return _read_one_by_one(values, json)


def _read_one_by_one(values: dict[str, Any], json: Sequence[str]) -> Endpoint | None:
    id = values["id"]
    if not isinstance(id, bytes) or len(id) != _ID_BYTES:
        return None
    read: dict[str, Any] = {"id": id}
    unread: dict[str, str] = {}
    for field in _FIELDS:
        name = field.name
        try:
            value = _decoded(values[name]) if name in json else values[name]
            read[name] = msgspec.convert(value, field.type)
        except Exception as error:  # of any kind: a row may hold anything
            unread[name] = f"what is stored cannot be read: {error}"[:_MOST_TOLD]
            if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
                read[name] = _STAND_INS[name]
    return Endpoint(**read, unread=unread)


def _decoded(text: Any) -> Any:
    return None if text is None else msgspec.json.decode(text)
