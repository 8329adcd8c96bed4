"""Encodes events for publishing.

The payload goes into the envelope byte for byte. It is parsed first: bytes that are more than one JSON value would
otherwise become fields of the envelope. Every event has an idempotency key, so that it is not published twice.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import partial

import msgspec

from hookline.client.answers import Published
from hookline.client.call import ClientCall, moment, new_key, reader, said
from hookline.client.errors import Problem
from hookline.errors import HooklineError
from hookline.rules.trace_context import PARENT, STATE
from hookline.validate.payload import check_text, not_json, too_deep
from hookline.validate.payload_encoding import Payload, encoded

_value = msgspec.json.Decoder(msgspec.Raw)


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to publish; a payload in bytes is one JSON value and is sent as it is."""

    type: str
    payload: Payload
    account: str | None = None
    idempotency_key: str | None = None
    deliver_at: datetime | None = None
    hops: int = 0  # of the webhook that caused this event (`Verified.hops`), so that loops end


class _Result(msgspec.Struct):
    error: Problem | None = None


class _Results(msgspec.Struct):
    results: list[msgspec.Raw]


_result = msgspec.json.Decoder(_Result)


def publish(
    event: NewEvent, *, traceparent: str | None = None, tracestate: str | None = None
) -> ClientCall[Published]:
    """Publish one event. Without its own key it gets one, so that it can be sent again."""
    own = event.idempotency_key
    return ClientCall(
        method="POST",
        target="/v1/events",
        read=partial(_published, is_key_ours=own is None),
        body=_envelope(event, own if own is not None else new_key()),
        headers=_headers(event.hops) | _trace(traceparent, tracestate),
        may_repeat=True,
    )


def publish_many(events: Iterable[NewEvent]) -> ClientCall[list[Published | HooklineError]]:
    """Publish many events, each with a key."""
    keyed = [
        (event, event.idempotency_key if event.idempotency_key is not None else new_key())
        for event in new_events(events)
    ]
    body = b",".join([_envelope(event, key) for event, key in keyed])
    return ClientCall(
        method="POST",
        target="/v1/events/batch",
        read=partial(_read_batch, are_keys_ours=[event.idempotency_key is None for event, _ in keyed]),
        body=b'{"events":[%b]}' % body,
        headers=_headers(max([event.hops for event, _ in keyed], default=0)),  # one header for all of them
        may_repeat=True,
    )


def new_events(events: Iterable[NewEvent]) -> list[NewEvent]:
    """What is published together; `TypeError` names what is no event."""
    given = list(events)
    for place, event in enumerate(given):
        if not isinstance(event, NewEvent):
            raise TypeError(f"events[{place}] is no hookline.NewEvent but {type(event).__name__}.")
    return given


def _envelope(event: NewEvent, key: str) -> bytes:
    fields = said(
        type=event.type,
        account=event.account,
        idempotency_key=key,
        deliver_at=None if event.deliver_at is None else moment("deliver_at", event.deliver_at),
    )
    return b'%b,"payload":%b}' % (msgspec.json.encode(fields)[:-1], payload_bytes(event.payload))


def _headers(hops: int) -> dict[str, str]:
    return {"hookline-hops": str(hops)} if hops else {}


def _trace(parent: str | None, state: str | None) -> dict[str, str]:
    return {name: value for name, value in ((PARENT, parent), (STATE, state)) if value is not None}


def payload_bytes(payload: Payload) -> bytes:
    """The payload as JSON; raises `Invalid` or `Unreadable` if it is not one JSON value."""
    body = encoded(payload)
    if isinstance(payload, bytes | bytearray | memoryview | msgspec.Raw):
        check_text(body)
        try:
            _value.decode(body)
        except RecursionError:
            raise too_deep() from None
        except msgspec.DecodeError as error:
            raise not_json(error) from None
    return body


def _published(body: bytes, *, is_key_ours: bool) -> Published:
    published = reader(Published)(body)
    # Nobody else has a key that was made for this call: a duplicate was published by an earlier try of ours.
    return msgspec.structs.replace(published, duplicate=False) if is_key_ours else published


def _read_batch(body: bytes, *, are_keys_ours: list[bool]) -> list[Published | HooklineError]:
    results = reader(_Results)(body).results
    if len(results) != len(are_keys_ours):
        raise msgspec.ValidationError(f"{len(results)} results for {len(are_keys_ours)} events")
    read: list[Published | HooklineError] = []
    for result, is_key_ours in zip(results, are_keys_ours, strict=True):
        problem = _result.decode(result).error
        read.append(
            _published(bytes(result), is_key_ours=is_key_ours) if problem is None else problem.error()
        )
    return read
