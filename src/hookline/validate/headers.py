"""Checks the headers that an endpoint adds to its requests.

They are checked when they are set: a name or a value that a client library refuses when sending would make every
attempt fail.
"""

import re
from collections.abc import Mapping
from typing import Any

from hookline.crypto import sealing
from hookline.errors import Invalid
from hookline.validate.api_schema import Schema
from hookline.validate.names import pointer_step

MAX_HEADERS = 64
MAX_VALUE = 8_192
MAX_NAME = 256
MASK = "***"  # shown instead of a value

SCHEMA: Schema = {
    "type": "object",
    "maxProperties": MAX_HEADERS,
    "additionalProperties": {"type": ["string", "null"], "maxLength": MAX_VALUE},
}

# Framing, hops and identity; then the headers that hookline sends itself.
RESERVED = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade"}
    | {"expect", "http2-settings", "cookie", "forwarded", "via", "content-encoding"}
    | {"content-type", "user-agent", "accept-encoding"}
    | {"x-event-id", "x-idempotency-key", "x-delivery-timestamp"}
)
RESERVED_PREFIXES = ("proxy-", "x-forwarded-", "webhook-", "x-webhook-", "hookline-")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")


def merged(old: Mapping[str, str], new: Any) -> dict[str, str]:
    """The old headers, with the new ones replacing those of the same name; None removes a header."""
    if not isinstance(new, Mapping):
        raise Invalid("headers is an object with names and values.", pointer="/headers")
    result = {name.lower(): (name, value) for name, value in old.items()}
    seen: set[str] = set()
    for name, value in new.items():
        pointer = f"/headers/{pointer_step(name)}"
        _check_name(name, pointer=pointer)
        folded = name.lower()
        if folded in seen:
            raise Invalid(
                "Two headers have the same name; upper and lower case are the same.", pointer=pointer
            )
        seen.add(folded)
        if value is None:
            result.pop(folded, None)
            continue
        _check_value(value, pointer=pointer)
        result[folded] = (name, value)
    if len(result) > MAX_HEADERS:
        raise Invalid(f"An endpoint may have up to {MAX_HEADERS} headers.", pointer="/headers")
    return dict(result.values())


def _check_name(name: Any, *, pointer: str) -> None:
    if not isinstance(name, str) or len(name) > MAX_NAME or not _TOKEN.fullmatch(name):
        raise Invalid(
            f"A header's name is 1 to {MAX_NAME} characters that RFC 9110 allows in a token.",
            pointer=pointer,
        )
    if name.lower() in RESERVED or name.lower().startswith(RESERVED_PREFIXES):
        raise Invalid(f"The header {name} is set by hookline.", pointer=pointer, code="reserved_header")


def _check_value(value: Any, *, pointer: str) -> None:
    if not isinstance(value, str) or len(value) > MAX_VALUE or not _VALUE.fullmatch(value):
        raise Invalid(
            f"A header's value is 1 to {MAX_VALUE:,} visible ASCII characters, with spaces only between them.",
            pointer=pointer,
        )
    if value == MASK:
        # Somebody sends back what a read showed; storing it would lose the real value.
        raise Invalid(
            f"{MASK} stands for a hidden value; give the value, or leave the header out.", pointer=pointer
        )
    if value.startswith(sealing.PREFIX):
        # In the database it would pass for an encrypted one.
        raise Invalid(f"A header's value cannot begin with {sealing.PREFIX!r}.", pointer=pointer)
