"""Describes a call to the server, and whether it may be repeated.

A call is a value: it can be sent again as it is, byte for byte, with the same idempotency key.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from hookline import rfc3339
from hookline.client.answers import Page
from hookline.errors import Invalid
from hookline.validate.names import check_idempotency_key

T = TypeVar("T")
_decoders: dict[
    Any, msgspec.json.Decoder[Any]
] = {}  # made once: making a decoder costs more than reading an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall(Generic[T]):
    """One request to the API, and how to read its answer."""

    method: str
    target: str  # path and query
    read: Callable[[bytes], T]
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    may_repeat: bool  # doing it twice has the same effect as once


def get(path: str, answer: type[T], **query: object) -> ClientCall[T]:
    """Get something; parameters that are None are left out."""
    given = {name: _parameter(name, value) for name, value in said(**query).items()}
    target = f"{path}?{urlencode(given)}" if given else path
    return ClientCall(method="GET", target=target, read=reader(answer), may_repeat=True)


def page(path: str, item: type[T], **query: object) -> ClientCall[Page[T]]:
    """Get one page of a list."""
    return get(path, Page[item], **query)  # type: ignore[valid-type]


def post(
    path: str,
    answer: type[T],
    fields: Mapping[str, object] | None = None,
    *,
    may_repeat: bool = False,
    key: str | None = None,
) -> ClientCall[T]:
    """Request an action; an idempotency key makes it safe to repeat."""
    return ClientCall(
        method="POST",
        target=path,
        read=reader(answer),
        body=None if fields is None else msgspec.json.encode(fields),
        headers={} if key is None else {"idempotency-key": check_idempotency_key(key, pointer="")},
        may_repeat=may_repeat or key is not None,
    )


def job(
    path: str, answer: type[T], filter: Mapping[str, object], *, dry_run: bool, key: str | None
) -> ClientCall[T]:
    """Start a bulk job. Without a key it gets one, so that it can be repeated."""
    fields = {"filter": filter, "dry_run": dry_run}
    return post(path, answer, fields, key=key if key is not None else new_key())


def patch(path: str, answer: type[T], fields: Mapping[str, object]) -> ClientCall[T]:
    """Change some fields. A merge patch: applying it twice has the same effect as once."""
    return ClientCall(
        method="PATCH", target=path, read=reader(answer), body=msgspec.json.encode(fields), may_repeat=True
    )


def put(path: str, answer: type[T], fields: Mapping[str, object]) -> ClientCall[T]:
    """Replace something."""
    return ClientCall(
        method="PUT", target=path, read=reader(answer), body=msgspec.json.encode(fields), may_repeat=True
    )


def delete(path: str) -> ClientCall[None]:
    """Delete something."""
    return ClientCall(method="DELETE", target=path, read=_nothing, may_repeat=True)


def step(id: str) -> str:
    """An id as one step of a path, whatever it holds."""
    if not isinstance(id, str):
        raise TypeError(f"An id or a name is a str, not {type(id).__name__}.")
    return quote(id, safe="")


def patterns(events: str | Sequence[str]) -> Sequence[str]:
    """Patterns of event types; one alone is a list of one."""
    return [events] if isinstance(events, str) else events


def said(**fields: object) -> dict[str, object]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def new_key() -> str:
    """An idempotency key that nobody else has."""
    return f"auto-{secrets.token_hex(16)}"


def moment(name: str, value: datetime) -> str:
    """A time as the API writes it."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise Invalid(f"{name} is a datetime with a zone.", pointer=f"/{name}")
    return rfc3339.show(value.timestamp())


def reader(answer: type[T]) -> Callable[[bytes], T]:
    """The decoder for an answer of this type."""
    found = _decoders.get(answer)
    if found is None:
        found = _decoders[answer] = msgspec.json.Decoder(answer)
    decode: Callable[[bytes], T] = found.decode
    return decode


def _nothing(body: bytes) -> None:
    return None


def _parameter(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return moment(name, value) if isinstance(value, datetime) else str(value)
