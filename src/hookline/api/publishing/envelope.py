"""Reads the body of a publish.

The envelope is read once; the payload inside it stays the same bytes. Only when something is wrong, or may be, is the
body read again, slowly and exactly.
"""

import json
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hookline import rfc3339
from hookline.errors import AccountMismatch, Invalid, TooLarge, Unreadable
from hookline.model import DEFAULT_ACCOUNT
from hookline.pipeline.intake.drafts import Draft
from hookline.validate.names import (
    check_account,
    check_idempotency_key,
    check_type,
    did_you_mean,
    pointer_step,
)
from hookline.validate.payload import DEPTH_LIMIT, check_depth, check_text, not_json, too_deep

BATCH_LIMIT = 1_000
MAX_AHEAD_S = 365 * 86_400.0

_ENVELOPE_DEPTH = 1
_BATCH_DEPTH = 3


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: str
    payload: msgspec.Raw
    account: str | UnsetType | None = UNSET
    idempotency_key: str | UnsetType | None = UNSET
    deliver_at: str | UnsetType | None = UNSET


class _BatchEnvelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    events: msgspec.Raw


_envelope = msgspec.json.Decoder(_Envelope)
_batch = msgspec.json.Decoder(_BatchEnvelope)
_items = msgspec.json.Decoder(list[msgspec.Raw])
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw = msgspec.json.Decoder(msgspec.Raw)
_any = msgspec.json.Decoder(Any)


def read_publication(
    body: bytes,
    *,
    header_key: bytes | None = None,
    limit_bytes: int,
    now: float,
    bound_to: str | None = None,
    hops: int = 0,
    trace: str | None = None,
) -> Draft:
    """The event that a body publishes; `bound_to` is the only account that the caller may publish to."""
    check_text(body)
    try:
        envelope = _envelope.decode(body)
    except RecursionError:
        raise too_deep() from None
    except msgspec.ValidationError:
        raise _diagnose(body, _Envelope) from None
    except msgspec.DecodeError as error:
        raise not_json(error) from None
    payload = bytes(envelope.payload)
    account, key, deliver_at = envelope.account, envelope.idempotency_key, envelope.deliver_at
    _check_once(body, b'"payload"', payload, quotes=6 + _quotes(account) + _quotes(key) + _quotes(deliver_at))
    if len(payload) > limit_bytes:
        raise TooLarge("A payload", limit_bytes=limit_bytes)
    check_depth(payload)
    return Draft(
        type=check_type(envelope.type),
        payload=payload,
        account=_account(account, bound_to) if isinstance(account, str) else bound_to or DEFAULT_ACCOUNT,
        idempotency_key=_idempotency_key(key, header_key),
        deliver_at=_moment(deliver_at, now=now) if isinstance(deliver_at, str) else None,
        hops=hops,
        trace=trace,
    )


def _account(text: str, bound_to: str | None) -> str:
    account = check_account(text)
    if bound_to is not None and account != bound_to:
        raise AccountMismatch("/account")
    return account


def read_batch(body: bytes) -> list[bytes]:
    """The bodies of the publications in a batch, none of them read yet."""
    check_text(body)
    try:
        batch = _batch.decode(body)
        events = bytes(batch.events)
        _check_once(body, b'"events"', events, quotes=2)
        items = _items.decode(events)
    except RecursionError:
        raise too_deep() from None
    except msgspec.ValidationError:
        raise _diagnose(body, _BatchEnvelope) from None
    except msgspec.DecodeError as error:
        raise not_json(error) from None
    if not items:
        raise Invalid(f"A batch has 1 to {BATCH_LIMIT:,} events.", pointer="/events")
    if len(items) > BATCH_LIMIT:
        raise Invalid(
            f"A batch has at most {BATCH_LIMIT:,} events; these are {len(items):,}.",
            pointer="/events",
            code="too_many_events",
        )
    return [bytes(item) for item in items]


def read_object(body: bytes) -> dict[str, Any]:
    """A body that is one JSON object without duplicate keys."""
    check_text(body)
    try:
        value = _any.decode(body)
    except RecursionError:
        raise too_deep() from None
    except msgspec.ValidationError as error:
        raise Invalid(f"The body holds a value that cannot be kept: {str(error)[:200]}.") from None
    except msgspec.DecodeError as error:
        raise not_json(error) from None
    check_depth(body)
    if not isinstance(value, dict):
        raise Invalid("The body must be a JSON object.")
    _check_keys(body)
    return value


def _quotes(value: str | UnsetType | None) -> int:
    return 0 if value is UNSET else 2 if value is None else 4


def _check_once(body: bytes, key: bytes, value: bytes, *, quotes: int) -> None:
    """Raise `Unreadable` when a key of the envelope is given twice.

    Outside the one value that may hold anything there are only known keys, strings and null, and they need a known
    number of quotation marks. A duplicate key adds more. So may an escape; only then are the keys compared.
    """
    # Counting in the value costs more than decoding it. Where the value follows its key, it is left out.
    at = body.find(value[:1], body.find(key) + len(key))
    end = at + len(value)
    if body[at:end] == value:
        found = body.count(b'"', 0, at) + body.count(b'"', end)
    else:
        found = body.count(b'"') - value.count(b'"')
    if found != quotes:
        _check_keys(body)


def _check_keys(body: bytes) -> None:
    keys: list[str] = []

    def keep(pairs: list[tuple[str, Any]]) -> None:
        # Called for inner objects first: the last call is for the outermost.
        nonlocal keys
        keys = [key for key, _ in pairs]

    # Numbers stay text: Python refuses to read integers of more than 4,300 digits.
    json.loads(body.decode(), object_pairs_hook=keep, parse_int=str, parse_float=str)
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise Unreadable(f"The key {key[:100]!r} is given twice.", code="duplicate_key")
        seen.add(key)


def _diagnose(body: bytes, kind: type[msgspec.Struct]) -> Invalid | Unreadable:
    """Say what is wrong with a body that is no such envelope, or is not valid JSON further on."""
    try:
        _raw.decode(body)
        check_depth(body, limit=DEPTH_LIMIT + (_BATCH_DEPTH if kind is _BatchEnvelope else _ENVELOPE_DEPTH))
        fields = _fields.decode(body)
        _check_keys(body)
    except RecursionError:
        return too_deep()
    except Unreadable as error:
        return error
    except msgspec.ValidationError:
        return Invalid("This must be a JSON object.")
    except msgspec.DecodeError as error:
        return not_json(error)
    known = kind.__struct_fields__
    for name in fields:
        if name not in known:
            return Invalid(
                f"There is no field {name[:100]!r} here.{did_you_mean(name, known)}",
                pointer=f"/{pointer_step(name)}",
                code="unknown_field",
            )
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in fields:
            return Invalid(f"The field {field.name} is missing.", pointer=f"/{field.name}")
    if kind is _BatchEnvelope:
        return Invalid("events is a list of events.", pointer="/events")
    wrong = next(
        name for name in known if name != "payload" and name in fields and not _is_text(name, fields[name])
    )
    return Invalid(f"The field {wrong} is a string.", pointer=f"/{wrong}")


def _is_text(name: str, value: msgspec.Raw) -> bool:
    text = bytes(value)
    return text.startswith(b'"') or (text == b"null" and name != "type")


def _idempotency_key(body_key: str | UnsetType | None, header_key: bytes | None) -> str | None:
    key = None
    if isinstance(body_key, str):
        key = check_idempotency_key(body_key)
    if header_key is None:
        return key
    given = check_idempotency_key(header_key.decode("latin-1"), pointer="")
    if key is not None and key != given:
        raise Invalid(
            "The Idempotency-Key header and idempotency_key differ; give one of them.",
            pointer="/idempotency_key",
        )
    return given


def _moment(text: str, *, now: float) -> float:
    try:
        moment = rfc3339.read(text)
    except ValueError:
        raise Invalid(
            "deliver_at is an RFC 3339 time with a zone, such as 2026-01-31T12:00:00Z.",
            pointer="/deliver_at",
        ) from None
    if moment > now + MAX_AHEAD_S:
        raise Invalid("deliver_at lies at most 365 days ahead.", pointer="/deliver_at")
    return moment
