"""Builds the JSON Schemas that describe the values of fields in the API."""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

Schema = dict[str, Any]
# A time in an answer: programs that read the description of the API see the format; here it is a plain text.
Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


def text(longest: int | None = None) -> Schema:
    """A text of at most so many characters."""
    return {"type": "string"} if longest is None else {"type": "string", "maxLength": longest}


def matching(pattern: str) -> Schema:
    """A text that the whole pattern matches."""
    return {"type": "string", "pattern": f"^{pattern}$"}


def one_of(words: Iterable[str]) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": [str(word) for word in words]}


def whole(low: int, high: int) -> Schema:
    """A whole number within limits."""
    return {"type": "integer", "minimum": low, "maximum": high}


def number(low: float, high: float) -> Schema:
    """A number within limits."""
    return {"type": "number", "minimum": low, "maximum": high}


def object_of(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """An object with these properties and no others."""
    shape: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return shape | ({"required": list(required)} if required else {})


def named(name: str, schema: Schema) -> Schema:
    """The schema under a name of its own; generated clients have a type that is called so."""
    return {"title": name, **schema}


def or_null(schema: Schema) -> Schema:
    """The same schema, or null."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


FLAG: Schema = {"type": "boolean"}
