"""Encodes what a program publishes as JSON.

The library, the clients and the outbox take the same payloads: what JSON has, dataclasses, msgspec's structs, pydantic's
models, and whatever of the standard library msgspec can encode. Bytes are JSON already.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from hookline.errors import Invalid

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    # What JSON decodes to.
    JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
else:
    JsonValue = Any  # msgspec reads the types of fields, and cannot read an alias that names itself


class PydanticModel(Protocol):
    """A model of pydantic, which need not be installed."""

    def model_dump(self) -> object: ...


# Bytes are one JSON value and sent as they are; everything else is encoded as JSON. One string: pyright reads no other.
Payload: TypeAlias = "Mapping[str, object] | Sequence[object] | str | int | float | bool | bytes | bytearray | memoryview | msgspec.Struct | msgspec.Raw | DataclassInstance | PydanticModel | None"  # fmt: skip


def encoded(payload: "Payload") -> bytes:
    """The payload as JSON; `Invalid` if it is something that JSON has no words for. Bytes are not looked at."""
    try:
        if isinstance(payload, bytes | bytearray | memoryview | msgspec.Raw):
            return bytes(payload)
        body = msgspec.json.encode(payload, enc_hook=_plain)
        if b"null" in body:  # msgspec writes it for what JSON has no number for
            _refuse_endless(payload)
        return body
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"The payload is not JSON: {error}", pointer="/payload") from None


def _refuse_endless(payload: Any) -> None:
    """Refuse NaN and the infinities: a receiver would read that nothing was said."""
    left = [msgspec.to_builtins(payload, enc_hook=_plain_but_raw)]
    while left:
        match left.pop():
            case float() as number if not isfinite(number):
                raise ValueError(f"it has no number for {number}")
            case dict() as fields:
                left += fields.values()
            case list() | tuple() as items:
                left += items


def _plain_but_raw(value: Any) -> Any:
    return None if isinstance(value, msgspec.Raw) else _plain(value)  # raw bytes are JSON already


def _plain(value: Any) -> Any:
    """What msgspec cannot encode, as something that it can."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
