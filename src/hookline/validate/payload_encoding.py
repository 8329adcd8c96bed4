"""Encodes what a program publishes as JSON.

The library, the clients and the outbox take the same payloads: what JSON has, dataclasses, msgspec's structs, pydantic's
models, and whatever of the standard library msgspec can encode. Bytes are JSON already.
"""

from collections.abc import Mapping, Sequence
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
        return msgspec.json.encode(payload, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"The payload is not JSON: {error}", pointer="/payload") from None


def _plain(value: Any) -> Any:
    """What msgspec cannot encode, as something that it can."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
