"""Converts between values and rows of PostgreSQL."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from hookline.ids import delivery_of
from hookline.model import (
    Attempt,
    Circuit,
    CircuitSlice,
    CircuitState,
    Death,
    Delivery,
    Endpoint,
    ErrorKind,
    Event,
    EventId,
    Ordering,
    Outcome,
    Queue,
    Reason,
    State,
    Timings,
)
from hookline.store import endpoint_row
from hookline.store.contract import (
    UNREADABLE_JOB,
    DeliveryFilter,
    EventFanout,
    Job,
    JobKind,
    JobState,
    LaneNote,
    LaneRow,
    Load,
    Loaded,
    Prior,
    Release,
    Settlement,
    Suspect,
    Taken,
    WorkerRow,
)

# Calling an enum costs more than the rest of a row.
_QUEUES = {queue.value: queue for queue in Queue}

_SLICES = msgspec.json.Decoder(tuple[CircuitSlice, ...])

_FILTER = msgspec.json.Decoder(DeliveryFilter)

_UNPRINTABLE = re.compile("[\0\ud800-\udfff]")

Columns = list[Sequence[Any] | None]


def publication_columns(batch: Sequence[EventFanout], *, now: float) -> Columns:
    """The arrays of ACCEPT: events, their deliveries with the (1-based) position of their event, the events' hops.

    Mostly each event has one delivery: no positions are bound then.
    """
    events = [publication.event for publication in batch]
    ids: list[EventId] = [event.id for event in events]
    endpoints = [endpoint for publication in batch for endpoint in publication.endpoints]
    deliveries: Sequence[bytes] = ids  # the only delivery of an event has the event's id
    places = None
    if not all(len(publication.endpoints) == 1 for publication in batch):
        deliveries = [
            delivery_of(publication.event.id, ordinal)
            for publication in batch
            for ordinal in range(len(publication.endpoints))
        ]
        places = [place for place, publication in enumerate(batch, 1) for _ in publication.endpoints]
    return [
        ids,
        [event.account for event in events],
        [event.type for event in events],
        _column([event.idempotency_key for event in events]),
        [event.payload for event in events],
        _unusual([event.created_at for event in events], now),
        _column([event.deliver_at for event in events]),
        _column([each.digest if each.event.idempotency_key is not None else None for each in batch]),
        deliveries,
        endpoints,
        places,
        _unusual([event.hops for event in events], 0),
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
        _unusual([attempt.number for attempt in attempts], 1),
        _unusual([attempt.replays for attempt in attempts], 0),
        _unusual([settlement.state for settlement in batch], State.DELIVERED),
        _column([each.due_at if each.state is State.PENDING else None for each in batch]),
        _column([settlement.reason for settlement in batch]),
        [attempt.at for attempt in attempts],
        _unusual([attempt.outcome for attempt in attempts], Outcome.ACCEPTED),
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


def note_columns(notes: Sequence[LaneNote]) -> Columns:
    """The arrays of NOTE, which SETTLE ends with; of several notes on one lane the last one wins."""
    last = list({(note.endpoint_id, note.epoch): note for note in notes}.values())
    circuits = [note.circuit for note in last]
    return [
        _column([note.endpoint_id for note in last]),
        _column([note.epoch for note in last]),
        _column([note.hold_until for note in last]),
        _column([note.head for note in last]),
        _column([circuit.state for circuit in circuits]),
        _column([circuit.failures for circuit in circuits]),
        _column([_json(circuit.slices) if circuit.slices else None for circuit in circuits]),
        _column([circuit.cooldown for circuit in circuits]),
        _column([circuit.opened_at for circuit in circuits]),
        _column([circuit.probe_at for circuit in circuits]),
        _texts([circuit.reason for circuit in circuits]),
        _column([circuit.last_success_at for circuit in circuits]),
        _column([circuit.last_failure_at for circuit in circuits]),
        _column([note.applied for note in last]),
        _column([note.rest_until for note in last]),
    ]


def suspect_columns(suspects: Sequence[Suspect]) -> Columns:
    """The arrays of MARK and CONDEMN."""
    return [
        [suspect.delivery_id for suspect in suspects],
        [suspect.endpoint_id for suspect in suspects],
        [suspect.epoch for suspect in suspects],
        [suspect.replays for suspect in suspects],
    ]


def release_columns(releases: Sequence[Release]) -> Columns:
    """The arrays of RELEASE."""
    return [
        [release.endpoint_id for release in releases],
        [release.epoch for release in releases],
        [release.wake_at for release in releases],
        _column([release.tokens for release in releases]),
        _column([release.tokens_at for release in releases]),
        [release.suspect for release in releases],
    ]


def job_columns(job: Job) -> list[Any]:
    """The first values of CREATE_JOB."""
    return [
        job.id,
        job.kind,
        _json(job.filter),
        sorted(set(job.ids)),
        job.account or "",
        job.idempotency_key,
        job.digest,
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
        endpoint.max_redirects,
        endpoint.paused,
        endpoint.ordering,
        _maybe(_json, endpoint.rate_limit),
        _maybe(_json, endpoint.retry),
        _json(endpoint.retry_statuses),
        _maybe(_json, endpoint.circuit),
        endpoint.old_secret,
        endpoint.old_secret_until,
        endpoint.filter,
        endpoint.signature,
    ]


def lane_columns(endpoint: Endpoint) -> list[Any]:
    """What a lane needs to know of its endpoint: whether it is paused, whether it is strict."""
    return [endpoint.paused or not endpoint.enabled, endpoint.ordering is Ordering.STRICT]


def prior(row: Any) -> Prior:
    return Prior(row["event_id"], row["type"], row["created_at"], row["digest"], tuple(row["endpoints"]))


def taken(row: Any) -> Taken:
    endpoint_id, epoch, woke_at, hold_until, suspect, head, tokens, tokens_at, applied, is_reset, *rest = row
    rest_until, *gate = rest
    return Taken(
        endpoint_id,
        epoch,
        woke_at,
        hold_until,
        suspect,
        head,
        _circuit(*gate),
        tokens,
        tokens_at,
        applied,
        is_reset,
        rest_until,
    )


def _circuit(state: str, failures: int, slices: str | None, *rest: Any) -> Circuit:
    cooldown, opened_at, probe_at, reason, last_success_at, last_failure_at = rest
    return Circuit(
        state=CircuitState(state),
        failures=failures,
        slices=() if slices is None else _SLICES.decode(slices),
        cooldown=cooldown,
        opened_at=opened_at,
        probe_at=probe_at,
        reason=reason,
        last_success_at=last_success_at,
        last_failure_at=last_failure_at,
    )


def lane(row: Any) -> LaneRow:
    endpoint_id, owner, hold_until, head, rest_until, *gate = row
    return LaneRow(endpoint_id, owner, hold_until, head, _circuit(*gate), rest_until)


def job(row: Any) -> Job:
    reason = row["reason"]
    try:
        chosen = _FILTER.decode(row["filter"])
    except (
        msgspec.MsgspecError,
        UnicodeError,
    ):  # only this job is affected: it is not carried out, the others are listed
        chosen, reason = DeliveryFilter(), reason or UNREADABLE_JOB
    return Job(
        id=row["id"],
        kind=JobKind(row["kind"]),
        filter=chosen,
        ids=tuple(row["ids"]),
        account=row["account"],
        idempotency_key=row["idempotency_key"],
        digest=row["digest"],
        state=JobState(row["state"]),
        matched=row["matched"],
        done=row["done"],
        failed=row["failed"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        reason=reason,
    )


def loaded(row: Any) -> Loaded:
    id, endpoint_id, queue, *rest = row
    return Loaded(id, endpoint_id, _QUEUES[queue], *rest)


def worker(row: Any) -> WorkerRow:
    return WorkerRow(
        id=row["id"],
        kind=row["kind"],
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        started_at=row["started_at"],
        seen_at=row["seen_at"],
        beat=row["beat"],
        load=Load(
            row["lanes"],
            row["in_flight"],
            row["free_slots"],
            row["waiting"],
            row["draining"],
            row["delivered_per_s"],
        ),
        buried=row["buried"],
    )


def endpoints(found: Iterable[Any]) -> list[Endpoint]:
    """The endpoints in these rows; a row without an id is skipped."""
    return [endpoint for row in found if (endpoint := endpoint_row.read(dict(row))) is not None]


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

    Text that a receiver sent is stored here. One such character must not make a batch of 500 impossible to write.
    """
    if text.isascii() and "\0" not in text:
        return text
    return _UNPRINTABLE.sub("\ufffd", text)


def _column(values: Sequence[Any]) -> Sequence[Any] | None:
    """The array, or null if it has only nulls: unnest fills it up, and nothing is encoded or sent."""
    return None if values.count(None) == len(values) else values


def _unusual(values: Sequence[Any], usual: Any) -> Sequence[Any] | None:
    """The array with nulls for the usual value, or null if it has no other."""
    if values.count(usual) == len(values):
        return None
    return [None if value == usual else value for value in values]


def _texts(values: Iterable[str | None]) -> Sequence[Any] | None:
    return _column([None if value is None else printable(value) for value in values])


def _jsons(values: Iterable[dict[str, str] | None]) -> Sequence[Any] | None:
    return _column([None if value is None else _json(value) for value in values])


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # possible only for an object that holds a receiver's text
        return msgspec.json.encode({printable(name): _clean(inner) for name, inner in value.items()}).decode()


def _clean(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def _maybe(read: Any, value: Any) -> Any:
    return None if value is None else read(value)
