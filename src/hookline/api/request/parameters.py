"""Defines the kinds of query parameters, and reads them.

A kind is an annotation: `account: Account | None = None` in the Struct of a call's parameters is read by it
and described by it. Enums and bools need none, but a `msgspec.Meta` that describes them.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from hookline import ids, rfc3339
from hookline.api.request.query import Query, invalid
from hookline.errors import Invalid, NotFound
from hookline.model import EndpointId, EventId, KeyId, Reason
from hookline.validate import dead_letter_filter
from hookline.validate.api_schema import or_null
from hookline.validate.names import (
    ACCOUNT_PATTERN,
    KEY_PATTERN,
    TYPE_LIMIT,
    TYPE_PATTERN,
    check_account,
    check_idempotency_key,
    check_type,
)
from hookline.validate.windows import ALLOWED, PATTERN, window_seconds

MAX_LIMIT = 200

_SUBJECT = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_CODE = re.compile(r"[a-z_]{1,64}")
_LONGEST_SOURCE = 1_000
_LIMIT = re.compile(r"[0-9]{1,3}")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Kind:
    """How a parameter is read (from its name and its text) and described (as JSON Schema, and in words)."""

    # Compared by identity: a value that holds a dict has no hash, and annotations need one.
    def __init__(self, read: Callable[[str, str], Any], schema: dict[str, Any], text: str = "") -> None:
        self.read = read
        self.schema = schema
        self.text = text


def read(query_string: bytes, kind: type[_Struct]) -> tuple[_Struct, dict[str, str]]:
    """The parameters as a value, and the filters among them as they were written."""
    given = Query(query_string, kind.__struct_fields__)
    if not given.values:
        return kind(), {}
    kinds = kinds_of(kind)
    return kind(**{name: kinds[name].read(name, text) for name, text in given.values.items()}), given.filters


@cache
def kinds_of(kind: type[msgspec.Struct]) -> dict[str, Kind]:
    """The kind of each field of a Struct of parameters."""
    return {name: _kind_of(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


def id_schema(noun: str) -> dict[str, Any]:
    """The schema of an id of this kind."""
    return {"type": "string", "pattern": f"^{ids.PREFIXES[noun]}[0-7][0-9a-v]{{25}}$"}


def null_or(schema: dict[str, Any]) -> msgspec.Meta:
    """The schema of a body's field that may be null."""
    return msgspec.Meta(extra_json_schema=or_null(schema))


def _kind_of(hint: Any) -> Kind:
    if get_origin(hint) is Annotated:
        own = next((each for each in hint.__metadata__ if isinstance(each, Kind)), None)
        kind = own or _kind_of(get_args(hint)[0])
        said = [each.description for each in hint.__metadata__ if isinstance(each, msgspec.Meta)]
        return Kind(kind.read, kind.schema, said[-1] or "") if said else kind
    if get_origin(hint) in (Union, type(int | None)):
        (inner,) = (each for each in get_args(hint) if each is not type(None))
        return _kind_of(inner)
    if hint is bool:
        return _FLAG
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _one_of(hint)
    raise TypeError(f"{hint!r} is no kind of parameter")


def _one_of(kind: type[StrEnum]) -> Kind:
    def read_one(name: str, text: str) -> StrEnum:
        try:
            return kind(text)
        except ValueError:
            raise invalid(name, f"is one of {', '.join(kind)}") from None

    return Kind(read_one, {"type": "string", "enum": [each.value for each in kind]})


def _flag(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise invalid(name, "is true or false")
    return text == "true"


def _limit(name: str, text: str) -> int:
    if not _LIMIT.fullmatch(text) or not 1 <= int(text) <= MAX_LIMIT:
        raise invalid(name, f"is a whole number from 1 to {MAX_LIMIT}")
    return int(text)


def _name(check: Callable[[object], str]) -> Callable[[str, str], str]:
    def read_name(name: str, text: str) -> str:
        try:
            return check(text)
        except Invalid as error:
            raise invalid(name, f"is invalid: {error.detail.removesuffix('.')}") from None

    return read_name


def _reason(name: str, text: str) -> Reason:
    return dead_letter_filter.reason(text, pointer=name, code="invalid_parameter")


def _id(noun: str, text: str) -> Kind:
    def read_id(name: str, text: str) -> bytes:
        try:
            return ids.read(noun, text)
        except NotFound:
            article = "an" if noun[0] in "aeiou" else "a"
            raise invalid(
                name, f"is the id of {article} {noun}, such as {ids.show(noun, bytes(16))}"
            ) from None

    return Kind(read_id, id_schema(noun), text)


def _moment(name: str, text: str) -> float:
    try:
        return rfc3339.read(text)
    except ValueError:
        raise invalid(name, "is an RFC 3339 time with a zone, such as 2026-01-31T12:00:00Z") from None


def _window(name: str, text: str) -> str:
    try:
        window_seconds(text)
    except Invalid:
        raise invalid(name, ALLOWED) from None
    return text


def _text(name: str, text: str) -> str:
    return text


def _code(name: str, text: str) -> str:
    if not _CODE.fullmatch(text):
        raise invalid(name, "is the code of a problem, such as schema_mismatch")
    return text


def _source(name: str, text: str) -> str:
    if not 1 <= len(text) <= _LONGEST_SOURCE or "\0" in text:
        raise invalid(name, "is the name of an outbox, as /v1/outbox shows it")
    return text


def _subject(name: str, text: str) -> str:
    if not _SUBJECT.fullmatch(text):
        raise invalid(name, "is an id, or the name of an account or an event type")
    return text


_FLAG = Kind(_flag, {"type": "boolean"})

TYPE_SCHEMA = {"type": "string", "pattern": f"^{TYPE_PATTERN}$", "maxLength": TYPE_LIMIT}
ACCOUNT_SCHEMA = {"type": "string", "pattern": f"^{ACCOUNT_PATTERN}$"}
KEY_SCHEMA = {"type": "string", "pattern": f"^{KEY_PATTERN}$"}
MOMENT_SCHEMA = {"type": "string", "format": "date-time"}
PREFIX_SCHEMA = {
    "type": "string",
    "pattern": f"^(evt|ep|dlv|wrk|rpl|dsc|alr)_[0-7][0-9a-v]{{{ids.LEAST_PREFIX - 1},25}}$",
    "description": f"the kind and at least {ids.LEAST_PREFIX} characters of an id",
}

Limit = Annotated[
    int, Kind(_limit, {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}, "how many of them at most")
]
Cursor = Annotated[
    str, Kind(_text, {"type": "string"}, "`next_cursor` of the page before; without it, the first page")
]
Account = Annotated[str, Kind(_name(check_account), ACCOUNT_SCHEMA, "only what belongs to this account")]
EventType = Annotated[str, Kind(_name(check_type), TYPE_SCHEMA, "only those of this event type")]
IdempotencyKey = Annotated[
    str, Kind(_name(check_idempotency_key), KEY_SCHEMA, "only those that were published with this key")
]
CreatedSince = Annotated[float, Kind(_moment, MOMENT_SCHEMA, "of events created at this time or later")]
CreatedUntil = Annotated[float, Kind(_moment, MOMENT_SCHEMA, "of events created before this time")]
DiedSince = Annotated[float, Kind(_moment, MOMENT_SCHEMA, "only those that died at this time or later")]
DiedUntil = Annotated[float, Kind(_moment, MOMENT_SCHEMA, "only those that died before this time")]
RefusedSince = Annotated[
    float, Kind(_moment, MOMENT_SCHEMA, "only those that were refused at this time or later")
]
RefusedUntil = Annotated[float, Kind(_moment, MOMENT_SCHEMA, "only those that were refused before this time")]
DoneSince = Annotated[float, Kind(_moment, MOMENT_SCHEMA, "only what was done at this time or later")]
DoneUntil = Annotated[float, Kind(_moment, MOMENT_SCHEMA, "only what was done before this time")]
Window = Annotated[
    str,
    Kind(
        _window,
        {"type": "string", "pattern": f"^{PATTERN}$"},
        "how far it looks back: minutes, hours or days, such as 15m, 24h or 7d",
    ),
]
DeadReason = Annotated[
    Reason,
    Kind(
        _reason,
        {"type": "string", "enum": [each.value for each in dead_letter_filter.REASONS]},
        "only those that died for this reason",
    ),
]
OfEndpoint = Annotated[EndpointId, _id("endpoint", "only those of this endpoint")]
OfEvent = Annotated[EventId, _id("event", "only those of this event")]
OfKey = Annotated[KeyId, _id("key", "only what was done with this key")]
AuditSubject = Annotated[
    str,
    Kind(
        _subject,
        {"type": "string", "pattern": f"^{_SUBJECT.pattern}$"},
        "only what was done to this: an id, or the name of an account or an event type",
    ),
]
RefusalCode = Annotated[
    str,
    Kind(
        _code,
        {"type": "string", "pattern": f"^{_CODE.pattern}$"},
        "only those that were refused with this code, such as schema_mismatch",
    ),
]
SourceName = Annotated[
    str,
    Kind(
        _source,
        {"type": "string", "minLength": 1, "maxLength": _LONGEST_SOURCE},
        "only those of this outbox, by its name in /v1/outbox",
    ),
]
