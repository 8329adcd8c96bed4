"""Converts between values and rows of SQLite.

Rows bound in batches consist only of plain numbers, str and bytearray. For everything else (bytes, None, bool, enum
members) sqlite3 looks for an adapter first, 0.4 µs a value, which would be most of the time of a settle.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import msgspec

from hookline.ids import MAX_FANOUT
from hookline.model import (
    NO_TIMINGS,
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
    Job,
    JobKind,
    JobState,
    LaneNote,
    LaneRow,
    Load,
    Loaded,
    Settlement,
    Taken,
    WorkerRow,
)
from hookline.store.sqlite.driver.bulk import Row

ABOVE_ALL_IDS = b"\xff" * 17
_ORDINALS = MAX_FANOUT - 1
_COPIED_BYTES = 4096  # copying more takes longer than the search for an adapter

_SLICES = msgspec.json.Decoder(tuple[CircuitSlice, ...])

_FILTER = msgspec.json.Decoder(DeliveryFilter)

_JSON = ("events", *endpoint_row.JSON)

# Placeholders for None; the statements turn them into NULL.
_NO_TEXT = "\0"
_NO_TIME = float("-inf")
_NO_STATUS = -1
_NO_DURATION = -1.0


def packed(ids: Iterable[bytes]) -> bytes:
    """A list of ids as one value, which the statements take apart."""
    return b"".join(ids)


def delivery_range(event: EventId) -> dict[str, bytes]:
    """The first and the last id that a delivery of the event can have."""
    return {"first": event, "last": (int.from_bytes(event) | _ORDINALS).to_bytes(16)}


def event_row(event: Event) -> Row:
    return (
        bytearray(event.id),
        event.account,
        event.type,
        event.payload if len(event.payload) > _COPIED_BYTES else bytearray(event.payload),
        _NO_TEXT if event.idempotency_key is None else event.idempotency_key,
        _NO_TIME if event.deliver_at is None else event.deliver_at,
        event.created_at,
    )


def read_event(row: Row) -> Event:
    id, account, type, payload, idempotency_key, deliver_at, hops, created_at = row
    return Event(
        id=id,
        account=account,
        type=type,
        payload=payload,
        idempotency_key=idempotency_key,
        deliver_at=deliver_at,
        hops=hops,
        created_at=created_at,
    )


def endpoint_values(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "account": endpoint.account,
        "url": endpoint.url,
        "events": _text(endpoint.events),
        "secret": endpoint.secret,
        "signing": endpoint.signing.value,
        "description": endpoint.description,
        "enabled": endpoint.enabled,
        "disabled_reason": endpoint.disabled_reason,
        "headers": _text(endpoint.headers),
        "metadata": _text(endpoint.metadata),
        "timeout": endpoint.timeout,
        "max_in_flight": endpoint.max_in_flight,
        "created_at": endpoint.created_at,
        "updated_at": endpoint.updated_at,
        "max_redirects": endpoint.max_redirects,
        "paused": endpoint.paused,
        "ordering": endpoint.ordering.value,
        "rate_limit": _maybe(_text, endpoint.rate_limit),
        "retry": _maybe(_text, endpoint.retry),
        "retry_statuses": _text(endpoint.retry_statuses),
        "circuit": _maybe(_text, endpoint.circuit),
        "old_secret": endpoint.old_secret,
        "old_secret_until": endpoint.old_secret_until,
        "filter": endpoint.filter,
        "signature": endpoint.signature.value,
    }


def lane_values(endpoint: Endpoint) -> dict[str, Any]:
    """What a lane needs to know of its endpoint."""
    return {
        "id": endpoint.id,
        "paused": endpoint.paused or not endpoint.enabled,
        "strict": endpoint.ordering is Ordering.STRICT,
    }


_ENDPOINT = (
    *(
        "id",
        "account",
        "url",
        "events",
        "secret",
        "signing",
        "description",
        "enabled",
        "disabled_reason",
        "headers",
    ),
    *(
        "metadata",
        "timeout",
        "max_in_flight",
        "created_at",
        "updated_at",
        "max_redirects",
        "paused",
        "ordering",
    ),
    *(
        "rate_limit",
        "retry",
        "retry_statuses",
        "circuit",
        "old_secret",
        "old_secret_until",
        "filter",
        "signature",
    ),
)
_FLAGS = {0: False, 1: True}


def read_endpoint(row: Row) -> Endpoint | None:
    """The endpoint in this row; None when it has no id."""
    values = dict(zip(_ENDPOINT, row, strict=True))
    for name in ("enabled", "paused"):
        flag = values[name]
        values[name] = _FLAGS.get(flag, flag) if type(flag) is int else flag
    return endpoint_row.read(values, json=_JSON)


def note_rows(notes: Iterable[LaneNote]) -> list[Row]:
    """What NOTE writes; of several notes on one lane the last one wins."""
    last = {(note.endpoint_id, note.epoch): note for note in notes}
    return [
        (
            note.endpoint_id,
            note.epoch,
            note.hold_until,
            note.head,
            note.circuit.state.value,
            note.circuit.failures,
            _text(note.circuit.slices) if note.circuit.slices else None,
            note.circuit.cooldown,
            note.circuit.opened_at,
            note.circuit.probe_at,
            note.circuit.reason,
            note.circuit.last_success_at,
            note.circuit.last_failure_at,
            note.applied,
            note.rest_until,
        )
        for note in last.values()
    ]


def job_values(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind.value,
        "filter": _text(job.filter),
        "ids": packed(sorted(set(job.ids))),
        "account": job.account or "",
        "key": job.idempotency_key,
        "digest": job.digest,
        "created_at": job.created_at,
    }


def read_job(row: Row) -> Job:
    (
        id,
        kind,
        filter,
        ids,
        account,
        key,
        digest,
        state,
        matched,
        done,
        failed,
        created_at,
        finished_at,
        reason,
        _,
    ) = row
    try:
        chosen = _FILTER.decode(filter)
    except (
        msgspec.MsgspecError,
        UnicodeError,
    ):  # only this job is affected: it is not carried out, the others are listed
        chosen, reason = DeliveryFilter(), reason or UNREADABLE_JOB
    return Job(
        id=id,
        kind=JobKind(kind),
        filter=chosen,
        ids=tuple(ids[start : start + 16] for start in range(0, len(ids), 16)),
        account=account,
        idempotency_key=key,
        digest=digest,
        state=JobState(state),
        matched=matched,
        done=done,
        failed=failed,
        created_at=created_at,
        finished_at=finished_at,
        reason=reason,
    )


def read_lane(row: Row) -> LaneRow:
    endpoint_id, owner, hold_until, head, rest_until, *gate = row
    return LaneRow(endpoint_id, owner, hold_until, head, _read_circuit(*gate), rest_until)


def read_taken(row: Row) -> Taken:
    endpoint_id, epoch, wake_at, hold_until, suspect, head, tokens, tokens_at, applied, is_reset, *rest = row
    rest_until, *gate = rest
    return Taken(
        endpoint_id,
        epoch,
        wake_at,
        hold_until,
        bool(suspect),
        head,
        _read_circuit(*gate),
        tokens,
        tokens_at,
        applied,
        bool(is_reset),
        rest_until,
    )


def _read_circuit(state: str, failures: int, slices: str | None, *rest: Any) -> Circuit:
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


_phases = attrgetter("dns", "connect", "tls", "first_byte")
_QUEUES = {queue.value: queue for queue in Queue}


def read_loaded(row: Row) -> Loaded:
    id, endpoint_id, queue, *rest = row
    return Loaded(id, endpoint_id, _QUEUES[queue], *rest)


def settled_row(settlement: Settlement, *, now: float) -> Row:
    """The delivery's row after the settlement."""
    attempt, state = settlement.attempt, settlement.state
    return (
        bytearray(attempt.delivery_id),
        bytearray(settlement.endpoint_id),
        settlement.epoch,
        attempt.number,
        attempt.replays,
        state.value,
        settlement.due_at,
        _NO_TIME if state is State.PENDING else now,
        _NO_TEXT if settlement.reason is None else settlement.reason.value,
        _NO_STATUS if attempt.status is None else attempt.status,
        _NO_TEXT if attempt.error is None else attempt.error.value,
    )


def attempt_row(attempt: Attempt, *, late: bool) -> Row:
    dns, connect, tls, first_byte = _phases(attempt.timings)
    return (
        bytearray(attempt.delivery_id),
        bytearray(attempt.id),
        attempt.number,
        attempt.replays,
        int(late),
        attempt.at,
        attempt.outcome.value,
        attempt.duration,
        _NO_STATUS if attempt.status is None else attempt.status,
        _NO_TEXT if attempt.error is None else attempt.error.value,
        _NO_TEXT if attempt.error_detail is None else attempt.error_detail,
        _NO_DURATION if dns is None else dns,
        _NO_DURATION if connect is None else connect,
        _NO_DURATION if tls is None else tls,
        _NO_DURATION if first_byte is None else first_byte,
        _NO_TEXT if attempt.request_url is None else attempt.request_url,
        _NO_TEXT if attempt.request_headers is None else _text(attempt.request_headers),
        _NO_TEXT if attempt.response_headers is None else _text(attempt.response_headers),
        bytearray(attempt.response_body),
        int(attempt.response_truncated),
        _NO_TEXT if attempt.final_url is None else attempt.final_url,
    )


def read_attempt(row: Row) -> Attempt:
    (
        id,
        delivery_id,
        number,
        replays,
        at,
        outcome,
        duration,
        status,
        error,
        error_detail,
        dns,
        connect,
        tls,
        first_byte,
        request_url,
        request_headers,
        response_headers,
        response_body,
        response_truncated,
        final_url,
        late,
    ) = row
    timings = Timings(dns, connect, tls, first_byte)
    return Attempt(
        id=id,
        delivery_id=delivery_id,
        number=number,
        replays=replays,
        at=at,
        outcome=Outcome(outcome),
        duration=duration,
        status=status,
        error=None if error is None else ErrorKind(error),
        error_detail=error_detail,
        timings=NO_TIMINGS if timings == NO_TIMINGS else timings,
        request_url=request_url,
        request_headers=None if request_headers is None else msgspec.json.decode(request_headers),
        response_headers=None if response_headers is None else msgspec.json.decode(response_headers),
        response_body=response_body or b"",
        response_truncated=bool(response_truncated),
        final_url=final_url,
        late=bool(late),
    )


def read_delivery(row: Row) -> Delivery:
    (
        id,
        event_id,
        endpoint_id,
        account,
        event_type,
        state,
        queue,
        seq,
        attempts,
        replays,
        due_at,
        created_at,
        done_at,
        reason,
        last_status,
        last_error,
        last_error_detail,
        last_duration,
        death_reason,
        death_at,
        death_attempts,
    ) = row
    return Delivery(
        id=id,
        event_id=event_id,
        endpoint_id=endpoint_id,
        account=account,
        event_type=event_type,
        state=State(state),
        queue=Queue(queue),
        seq=seq,
        attempts=attempts,
        replays=replays,
        due_at=due_at,
        created_at=created_at,
        done_at=done_at,
        reason=None if reason is None else Reason(reason),
        last_status=last_status,
        last_error=None if last_error is None else ErrorKind(last_error),
        last_error_detail=last_error_detail,
        last_duration=last_duration,
        last_death=None if death_reason is None else Death(Reason(death_reason), death_at, death_attempts),
    )


def worker_values(worker: WorkerRow) -> dict[str, Any]:
    return {
        "id": worker.id,
        "kind": worker.kind,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "started_at": worker.started_at,
        "seen_at": worker.seen_at,
        "beat": worker.beat,
        **load_values(worker.load),
    }


def load_values(load: Load) -> dict[str, Any]:
    return msgspec.structs.asdict(load)


def read_worker(row: Row) -> WorkerRow:
    (
        id,
        kind,
        host,
        pid,
        version,
        started_at,
        seen_at,
        beat,
        lanes,
        in_flight,
        free,
        waiting,
        draining,
        delivered_per_s,
        buried,
    ) = row
    return WorkerRow(
        id=id,
        kind=kind,
        host=host,
        pid=pid,
        version=version,
        started_at=started_at,
        seen_at=seen_at,
        beat=beat,
        load=Load(lanes, in_flight, free, waiting, bool(draining), delivered_per_s),
        buried=bool(buried),
    )


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _maybe(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)
