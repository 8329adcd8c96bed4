"""How do values become columns, and rows values again?"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from hookline.ids import delivery_of
from hookline.model import (
    Attempt,
    Death,
    Delivery,
    Endpoint,
    ErrorKind,
    Event,
    Outcome,
    Queue,
    Reason,
    Signing,
    State,
    Timings,
)
from hookline.store.contract import Load, Loaded, Prior, Publication, Settlement, Taken, Worker

# Calling an enum costs more than the rest of a row.
_QUEUES = {queue.value: queue for queue in Queue}

_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")

Columns = list[Sequence[Any] | None]


def publication_columns(batch: Sequence[Publication]) -> Columns:
    """The arrays of ACCEPT: events, then their deliveries with the (1-based) place of their event."""
    events = [publication.event for publication in batch]
    deliveries = [
        delivery_of(publication.event.id, ordinal)
        for publication in batch
        for ordinal in range(len(publication.endpoints))
    ]
    return [
        [event.id for event in events],
        [event.account for event in events],
        [event.type for event in events],
        _column([event.idempotency_key for event in events]),
        [event.payload for event in events],
        [event.created_at for event in events],
        _column([event.deliver_at for event in events]),
        [publication.digest for publication in batch],
        deliveries,
        [endpoint for publication in batch for endpoint in publication.endpoints],
        [place for place, publication in enumerate(batch, 1) for _ in publication.endpoints],
    ]


def settlement_columns(batch: Sequence[Settlement]) -> Columns:
    """The arrays of SETTLE."""
    attempts = [settlement.attempt for settlement in batch]
    timings = [attempt.timings for attempt in attempts]
    return [
        [attempt.id for attempt in attempts],
        [attempt.delivery_id for attempt in attempts],
        [settlement.endpoint_id for settlement in batch],
        [settlement.epoch for settlement in batch],
        [attempt.number for attempt in attempts],
        [attempt.replays for attempt in attempts],
        [settlement.state for settlement in batch],
        [settlement.due_at for settlement in batch],
        _column([settlement.reason for settlement in batch]),
        [attempt.at for attempt in attempts],
        [attempt.outcome for attempt in attempts],
        [attempt.duration for attempt in attempts],
        _column([attempt.status for attempt in attempts]),
        _column([attempt.error for attempt in attempts]),
        _texts([attempt.error_detail for attempt in attempts]),
        _column([timing.dns for timing in timings]),
        _column([timing.connect for timing in timings]),
        _column([timing.tls for timing in timings]),
        _column([timing.first_byte for timing in timings]),
        _texts([attempt.request_url for attempt in attempts]),
        _jsons([attempt.request_headers for attempt in attempts]),
        _jsons([attempt.response_headers for attempt in attempts]),
        _column([attempt.response_body or None for attempt in attempts]),
        _column([attempt.response_truncated or None for attempt in attempts]),
        _texts([attempt.final_url for attempt in attempts]),
    ]


def endpoint_columns(endpoint: Endpoint) -> list[Any]:
    """The values of CREATE_ENDPOINT and UPDATE_ENDPOINT."""
    return [
        endpoint.id,
        endpoint.account,
        endpoint.url,
        list(endpoint.events),
        endpoint.secret,
        endpoint.signing,
        printable(endpoint.description),
        endpoint.enabled,
        None if endpoint.disabled_reason is None else printable(endpoint.disabled_reason),
        _json(endpoint.headers),
        _json(endpoint.metadata),
        endpoint.timeout,
        endpoint.max_in_flight,
        endpoint.created_at,
        endpoint.updated_at,
    ]


def prior(row: Any) -> Prior:
    return Prior(row["event_id"], row["type"], row["created_at"], row["digest"], tuple(row["endpoints"]))


def taken(row: Any) -> Taken:
    return Taken(*row)


def loaded(row: Any) -> Loaded:
    id, endpoint_id, queue, *rest = row
    return Loaded(id, endpoint_id, _QUEUES[queue], *rest)


def worker(row: Any) -> Worker:
    return Worker(
        id=row["id"],
        kind=row["kind"],
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        started_at=row["started_at"],
        seen_at=row["seen_at"],
        beat=row["beat"],
        load=Load(row["lanes"], row["in_flight"], row["free_slots"], row["waiting"], row["draining"]),
        buried=row["buried"],
    )


def endpoint(row: Any) -> Endpoint:
    return Endpoint(
        id=row["id"],
        account=row["account"],
        url=row["url"],
        events=tuple(row["events"]),
        secret=row["secret"],
        signing=Signing(row["signing"]),
        description=row["description"],
        enabled=row["enabled"],
        disabled_reason=row["disabled_reason"],
        headers=msgspec.json.decode(row["headers"]),
        metadata=msgspec.json.decode(row["metadata"]),
        timeout=row["timeout"],
        max_in_flight=row["max_in_flight"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def event(row: Any) -> Event:
    return Event(**row)


def delivery(row: Any) -> Delivery:
    values = dict(row)
    reason, at, attempts = values.pop("death_reason"), values.pop("death_at"), values.pop("death_attempts")
    values["state"] = State(row["state"])
    values["queue"] = _QUEUES[row["queue"]]
    values["reason"] = _maybe(Reason, row["reason"])
    values["last_error"] = _maybe(ErrorKind, row["last_error"])
    values["last_death"] = None if reason is None else Death(Reason(reason), at, attempts)
    return Delivery(**values)


def attempt(row: Any) -> Attempt:
    values = dict(row)
    values["timings"] = Timings(*[values.pop(phase) for phase in ("dns", "connect", "tls", "first_byte")])
    values["outcome"] = Outcome(row["outcome"])
    values["error"] = _maybe(ErrorKind, row["error"])
    values["request_headers"] = _maybe(msgspec.json.decode, row["request_headers"])
    values["response_headers"] = _maybe(msgspec.json.decode, row["response_headers"])
    values["response_body"] = row["response_body"] or b""
    return Attempt(**values)


def printable(text: str) -> str:
    """Text as PostgreSQL can hold it: no NUL, no lone surrogate.

    What a receiver sent ends up in here; one such character must not make a batch of 500 impossible to write.
    """
    if text.isascii() and "\0" not in text:
        return text
    return _UNPRINTABLE.sub("\ufffd", text)


def _column(values: Sequence[Any]) -> Sequence[Any] | None:
    """The array, or null for one of nulls only: unnest fills it up, and nothing is encoded or sent."""
    for value in values:
        if value is not None:
            return values
    return None


def _texts(values: Iterable[str | None]) -> Sequence[Any] | None:
    return _column([None if value is None else printable(value) for value in values])


def _jsons(values: Iterable[dict[str, str] | None]) -> Sequence[Any] | None:
    return _column([None if value is None else _json(value) for value in values])


def _json(value: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode({printable(name): _clean(inner) for name, inner in value.items()}).decode()


def _clean(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def _maybe(read: Any, value: Any) -> Any:
    return None if value is None else read(value)
