"""Checks an endpoint's metadata.

Metadata is a JSON object of the operator's own. Only values that come back unchanged from every database are allowed.
"""

import math
from typing import Any

import msgspec

from hookline.errors import Invalid
from hookline.validate.names import is_text, pointer_step
from hookline.validate.payload import DEPTH_LIMIT

MAX_BYTES = 16_384  # as JSON


def checked(value: Any) -> dict[str, Any]:
    """The value if it is valid; else `Invalid`."""
    if not isinstance(value, dict):
        raise Invalid("metadata is a JSON object.", pointer="/metadata")
    _check_json(value, pointer="/metadata", room=DEPTH_LIMIT)
    if len(msgspec.json.encode(value)) > MAX_BYTES:
        raise Invalid(f"metadata may have at most {MAX_BYTES:,} bytes as JSON.", pointer="/metadata")
    return value


def merged(old: Any, new: Any) -> dict[str, Any]:
    """The old object after a merge patch."""
    if not isinstance(new, dict):
        raise Invalid("metadata is a JSON object.", pointer="/metadata")
    _check_json(new, pointer="/metadata", room=DEPTH_LIMIT)
    return checked(_merge(old, new))


def _merge(old: Any, new: Any) -> Any:
    """RFC 7396."""
    if not isinstance(new, dict):
        return new
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _check_json(value: Any, *, pointer: str, room: int) -> None:
    """Refuse values that do not come back unchanged from the database."""
    if room < 0:
        raise Invalid(f"metadata is nested more than {DEPTH_LIMIT} levels deep.", pointer="/metadata")
    match value:
        case None | bool():
            return
        case str():
            if is_text(value):
                return
        case int():
            if -(2**63) <= value < 2**63:
                return
        case float():
            if math.isfinite(value):
                return
        case list() | tuple():
            for place, each in enumerate(value):
                _check_json(each, pointer=f"{pointer}/{place}", room=room - 1)
            return
        case dict():
            for key, each in value.items():
                if not isinstance(key, str) or not is_text(key):
                    raise Invalid("The keys of metadata are strings without NUL.", pointer=pointer)
                _check_json(each, pointer=f"{pointer}/{pointer_step(key)}", room=room - 1)
            return
        case _:
            pass
    raise Invalid(
        "metadata contains JSON values: strings without NUL, finite numbers, whole numbers of at most 64 bits.",
        pointer=pointer,
    )
