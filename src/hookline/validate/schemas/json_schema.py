"""Checks payloads against the JSON Schema of their type.

The dialect is draft 2020-12. Nothing is fetched: a schema stands on its own. The cost of a check is bounded by the
schema's size and weight (`validate.schemas.schema_weight`). Its patterns are of the kind that is matched in linear time.
"""

from itertools import islice
from typing import Any

import msgspec

from hookline.errors import Invalid, MissingExtra, demand
from hookline.validate.names import pointer_step
from hookline.validate.schemas.schema_weight import Flaw, weight

DRAFT = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES = 65_536  # of a schema, as JSON
MOST_WEIGHT = 100  # with a payload of one mebibyte: about a second, on a thread beside the loop
MOST_ERRORS = 20  # reported for one payload
# Up to this product of payload bytes and weight, all errors are looked for. The library builds every error before it
# returns the first, 17 µs each: a mebibyte of wrong items took 8 s and 700 MB. The first error alone is cheap, unless
# there are alternatives: it then carries the errors of each alternative.
_ALL_ERRORS_BELOW = 8_192
_ALTERNATIVES = ('"anyOf":', '"oneOf":')
_PATTERN_BYTES = 1 << 20  # of one compiled pattern
_MASK = "the value"  # in error texts about a payload: the value may be long, and it may be confidential
_DETAIL = 300


class Schema:
    """A compiled schema that checks payloads."""

    __slots__ = ("_has_alternatives", "_validator", "text", "weight")

    def __init__(self, text: str) -> None:
        """`text` was checked before. `MissingExtra` if this installation checks no schemas."""
        self.text = text
        demand("jsonschema_rs", what="a schema")
        schema = msgspec.json.decode(text)
        found = weight(schema)
        self.weight = MOST_WEIGHT if isinstance(found, Flaw) else found
        self._validator = _compiled(schema)
        self._has_alternatives = any(name in text for name in _ALTERNATIVES)

    def errors(self, payload: Any, size: int) -> tuple[tuple[str, str], ...]:
        """Pointers into the payload of `size` bytes, each with what is wrong there; empty when it fits.

        At most MOST_ERRORS. For a large payload only the first error, or one without a place.
        """
        if self._validator.is_valid(payload):
            return ()
        if size * self.weight > _ALL_ERRORS_BELOW:
            return (_NOT_LOOKED_FOR if self._has_alternatives else _told(self._first(payload)),)
        return tuple(map(_told, islice(self._validator.iter_errors(payload), MOST_ERRORS)))

    def _first(self, payload: Any) -> Any:
        from jsonschema_rs import ValidationError

        try:
            self._validator.validate(payload)
        except ValidationError as error:
            return error
        raise AssertionError("a payload that does not fit has an error")


def checked(value: Any, *, pointer: str = "/schema") -> str:
    """A valid schema as it is stored; else `Invalid` names the place in it."""
    if not isinstance(value, dict):
        raise Invalid("A schema is a JSON object.", pointer=pointer)
    try:
        text = msgspec.json.encode(value).decode()
        # Parsed again, as it will be later: numbers that do not survive the round trip are found here.
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        raise Invalid(
            "The schema cannot be stored as JSON: it contains a number that is too large.", pointer=pointer
        ) from None
    if len(text) > MAX_BYTES:
        raise Invalid(f"A schema has at most {MAX_BYTES:,} bytes as JSON.", pointer=pointer)
    if value.get("$schema", DRAFT) not in (DRAFT, DRAFT + "#"):
        raise Invalid(f"$schema must be {DRAFT}, or left out.", pointer=f"{pointer}/$schema")
    try:
        demand("jsonschema_rs", what="it")
    except MissingExtra as error:
        raise Invalid(f"The server cannot check schemas: {error}", pointer=pointer) from None
    from jsonschema_rs import ValidationError

    try:
        _meta(value)
        found = weight(value)
        if not isinstance(found, Flaw):
            _compiled(value)
    except ValidationError as error:
        path = "".join(f"/{pointer_step(step)}" for step in error.instance_path)
        raise Invalid(
            f"This is not a JSON Schema: {_sentence(error.message)}", pointer=pointer + path
        ) from None
    if isinstance(found, Flaw):
        raise Invalid(found.detail, pointer=pointer + found.pointer)
    if found > MOST_WEIGHT:
        raise Invalid(
            f"The schema is applied to one and the same value up to {found:,} times; at most {MOST_WEIGHT} "
            "are allowed. Fewer alternatives and references make it lighter.",
            pointer=pointer,
        )
    return text


def _meta(schema: dict[str, Any]) -> None:
    """Raise for a value that is no schema, before any reference in it is followed."""
    from jsonschema_rs import meta

    meta.validate({"$schema": DRAFT, **schema})


def _compiled(schema: dict[str, Any]) -> Any:
    # Imported here, not above: only users of a schema pay for it.
    from jsonschema_rs import Draft202012Validator, RegexOptions

    return Draft202012Validator(
        schema,
        offline=True,
        mask=_MASK,
        pattern_options=RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES),
    )


_NOT_LOOKED_FOR = ("/payload", "The payload is too large for its errors to be looked for.")


def _told(error: Any) -> tuple[str, str]:
    path = "".join(f"/{pointer_step(step)}" for step in error.instance_path)
    return f"/payload{path}", _sentence(error.message)


def _sentence(message: str) -> str:
    text = message if len(message) <= _DETAIL else message[:_DETAIL] + "…"
    return text[:1].upper() + text[1:] + "."
