"""Describes the fields of an endpoint in requests.

Names and shapes, for the check of names and for the description of the API. `hookline.validate.endpoint_fields`
decides which values are valid, for every caller.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from hookline.api.request.parameters import ACCOUNT_SCHEMA, null_or, or_null
from hookline.model import CircuitPolicy, Ordering, Signature, Signing
from hookline.rules.retry import JITTERS, PRESETS
from hookline.validate import endpoint_fields, headers, limits, numbers
from hookline.validate.names import TYPE_PATTERN
from hookline.validate.retry_policy import LONGEST_WAIT_S, MOST_ATTEMPTS, MOST_STATUSES

MAX_FILTER = 1_000  # characters; repeated here, so that only callers with a filter import the library


def _whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _number(low: float, high: float) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high}


def _object(required: tuple[str, ...] = (), /, **properties: dict[str, Any]) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return shape | ({"required": list(required)} if required else {})


_JITTER = {
    "anyOf": [
        {"type": "string", "enum": list(JITTERS)},
        {**_object(below=_number(0, 1), above=_number(0, 1)), "minProperties": 1},
    ]
}
_WAIT = _number(0, LONGEST_WAIT_S)
_POSITIVE_WAIT = _number(0.001, LONGEST_WAIT_S)
RETRY = {
    "anyOf": [
        _object(("preset",), preset={"type": "string", "enum": list(PRESETS)}, jitter=or_null(_JITTER)),
        _object(
            ("schedule",),
            schedule={"type": "array", "minItems": 1, "maxItems": MOST_ATTEMPTS, "items": _WAIT},
            jitter=or_null(_JITTER),
        ),
        _object(
            ("base", "attempts"),
            base=_POSITIVE_WAIT,
            factor=or_null(_number(1, 100)),
            cap=or_null(_POSITIVE_WAIT),
            attempts=_whole(1, MOST_ATTEMPTS),
            jitter=or_null(_JITTER),
        ),
    ]
}
RETRY_STATUSES = {
    "type": "array",
    "maxItems": MOST_STATUSES,
    "items": {"anyOf": [_whole(100, 199), _whole(300, 599), {"type": "string", "pattern": "^[1345]xx$"}]},
}
_RATE_LIMIT = _object(
    per_second=_number(limits.SLOWEST, limits.FASTEST),
    burst=or_null(_whole(1, limits.MOST_BURST)),
)
_CIRCUIT = _object(
    consecutive_failures=or_null(_whole(1, 1_000)),
    failure_rate=or_null(_number(0.01, 1)),
    window_s=or_null(_number(1, numbers.DAY_S)),
    min_attempts=or_null(_whole(1, 10_000)),
    cooldown_s=or_null(_number(0.1, numbers.DAY_S)),
    max_cooldown_s=or_null(_number(0.1, numbers.DAY_S)),
)
assert set(_CIRCUIT["properties"]) == set(CircuitPolicy.__struct_fields__)  # noqa: S101 - the same names
_EVENTS = {
    "type": "array",
    "minItems": 1,
    "maxItems": endpoint_fields.MAX_PATTERNS,
    "items": {"type": "string", "pattern": rf"^(?:\*|{TYPE_PATTERN}(?:\.\*)?)$"},
}
_HEADERS = {
    "type": "object",
    "maxProperties": headers.MAX_HEADERS,
    "additionalProperties": {"type": ["string", "null"], "maxLength": headers.MAX_VALUE},
}

_Url = Annotated[Any, Meta(extra_json_schema={"type": "string", "format": "uri"})]
_Events = Annotated[Any, Meta(extra_json_schema=_EVENTS)]
_Flag = Annotated[Any, null_or({"type": "boolean"})]


class ChangedEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A merge patch: what is not named stays, null puts back to the default (of `circuit`: none)."""

    url: _Url = UNSET
    events: _Events = UNSET
    account: Annotated[Any, Meta(extra_json_schema=ACCOUNT_SCHEMA, description="only as it is")] = UNSET
    description: Annotated[Any, null_or({"type": "string", "maxLength": endpoint_fields.MAX_DESCRIPTION})] = (
        UNSET
    )
    enabled: _Flag = UNSET
    headers: Annotated[Any, null_or(_HEADERS)] = UNSET
    metadata: Annotated[Any, null_or({"type": "object"})] = UNSET
    filter: Annotated[
        Any,
        Meta(
            extra_json_schema={"type": ["string", "null"], "maxLength": MAX_FILTER},
            description="a JMESPath expression over the payload; events for which it is false are not sent",
        ),
    ] = UNSET
    signing: Annotated[Any, null_or({"type": "string", "enum": list(Signing)})] = UNSET
    signature: Annotated[
        Any,
        Meta(
            extra_json_schema=or_null({"type": "string", "enum": list(Signature)}),
            description="v1: HMAC-SHA256; v1a: ed25519. Changed by a rotation of the secret",
        ),
    ] = UNSET
    timeout_ms: Annotated[Any, null_or(_whole(1_000, 60_000))] = UNSET
    max_in_flight: Annotated[Any, null_or(_whole(1, 1_000))] = UNSET
    max_redirects: Annotated[Any, null_or(_whole(0, limits.MOST_REDIRECTS))] = UNSET
    rate_limit: Annotated[Any, null_or(_RATE_LIMIT)] = UNSET
    ordering: Annotated[Any, null_or({"type": "string", "enum": list(Ordering)})] = UNSET
    paused: _Flag = UNSET
    retry: Annotated[Any, null_or(RETRY)] = UNSET
    retry_statuses: Annotated[Any, null_or(RETRY_STATUSES)] = UNSET
    circuit: Annotated[Any, null_or(_CIRCUIT)] = UNSET


class NewEndpoint(ChangedEndpoint, frozen=True, kw_only=True):
    """A new endpoint; what is not named, or null, has its default (`circuit: null` is none)."""

    url: _Url
    events: _Events
    account: Annotated[Any, null_or(ACCOUNT_SCHEMA)] = UNSET
    secret: Annotated[
        Any,
        Meta(
            extra_json_schema={"type": ["string", "null"]},
            description="whsec_<base64 of 24 to 64 bytes>, made if it is not given; for v1a signatures "
            "whsk_<base64 of an ed25519 key>; for classic signing 16 to 256 visible ASCII characters",
        ),
    ] = UNSET
