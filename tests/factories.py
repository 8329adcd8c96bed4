"""Values for tests: every field has a default, so that a test shows only what it is about."""

from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from hookline.clock import SystemClock
from hookline.ids import Ids, delivery_of
from hookline.model import (
    CLOSED,
    LONG_AGO,
    Actor,
    ActorKind,
    Alert,
    AlertKind,
    Attempt,
    AuditAction,
    AuditEntry,
    DeliveryId,
    Endpoint,
    EndpointId,
    Event,
    EventType,
    Key,
    Outcome,
    Scope,
    Session,
    SessionKind,
    State,
    Via,
)
from hookline.store.contract import (
    OWN_SOURCE,
    DeliveryFilter,
    EventFanout,
    Job,
    JobKind,
    LaneNote,
    RefusedRow,
    Settlement,
    Taken,
    WaitingRow,
    WorkerRow,
)

NOW = 1_700_000_000.0
ids = Ids(SystemClock(), Random())


def an_event(**fields: Any) -> Event:
    defaults = {
        "id": ids.event(),
        "account": "default",
        "type": "order.paid",
        "payload": b'{"id": 42}',
        "created_at": NOW,
    }
    return Event(**(defaults | fields))


def an_endpoint(**fields: Any) -> Endpoint:
    defaults = {
        "id": ids.endpoint(),
        "account": "default",
        "url": "https://receiver.example/hooks",
        "events": ("*",),
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Endpoint(**(defaults | fields))


def an_event_type(**fields: Any) -> EventType:
    return EventType(**({"name": "order.paid", "created_at": NOW, "updated_at": NOW} | fields))


def a_publication(*endpoints: EndpointId, digest: bytes = b"", **fields: Any) -> EventFanout:
    return EventFanout(an_event(**fields), tuple(endpoints), digest)


def a_worker(**fields: Any) -> WorkerRow:
    defaults = {
        "id": ids.worker(),
        "kind": "serve",
        "host": "localhost",
        "pid": 1,
        "version": "0.1.0",
        "started_at": NOW,
        "seen_at": NOW,
    }
    return WorkerRow(**(defaults | fields))


def an_attempt(delivery: DeliveryId | None = None, **fields: Any) -> Attempt:
    defaults = {
        "id": ids.attempt(),
        "delivery_id": delivery or delivery_of(ids.event(), 0),
        "number": 1,
        "replays": 0,
        "at": NOW,
        "outcome": Outcome.ACCEPTED,
        "duration": 0.125,
        "status": 200,
    }
    return Attempt(**(defaults | fields))


def a_settlement(
    delivery: DeliveryId,
    endpoint: EndpointId,
    *,
    epoch: int = 1,
    attempt: Attempt | None = None,
    **fields: Any,
) -> Settlement:
    defaults = {
        "attempt": attempt or an_attempt(delivery),
        "endpoint_id": endpoint,
        "epoch": epoch,
        "state": State.DELIVERED,
        "due_at": NOW,
    }
    return Settlement(**(defaults | fields))


def a_note(lane: Taken, **fields: Any) -> LaneNote:
    defaults = {
        "endpoint_id": lane.endpoint_id,
        "epoch": lane.epoch,
        "hold_until": LONG_AGO,
        "head": None,
        "circuit": CLOSED,
        "applied": 0,
        "rest_until": LONG_AGO,
    }
    return LaneNote(**(defaults | fields))


def a_job(**fields: Any) -> Job:
    defaults = {
        "id": ids.job(),
        "kind": JobKind.REPLAY,
        "filter": DeliveryFilter(),
        "created_at": NOW + 10,
    }
    return Job(**(defaults | fields))


def a_key(**fields: Any) -> Key:
    id = ids.key()
    defaults = {
        "id": id,
        "digest": sha256(id).digest(),
        "hint": "hlk_abcd",
        "name": "of a test",
        "scopes": (Scope.ADMIN,),
        "created_at": NOW,
    }
    return Key(**(defaults | fields))


def a_session(**fields: Any) -> Session:
    defaults = {
        "digest": sha256(ids.key()).digest(),
        "kind": SessionKind.LOGIN,
        "key_digest": sha256(b"a key").digest(),
        "created_at": NOW,
        "seen_at": NOW,
        "expires_at": NOW + 3_600,
    }
    return Session(**(defaults | fields))


def an_alert(**fields: Any) -> Alert:
    defaults = {
        "id": ids.alert(),
        "kind": AlertKind.DEAD_LETTERS,
        "subject": "acme",
        "account": "acme",
        "message": "Account acme has 101 dead letters, more than 100.",
        "value": 101.0,
        "threshold": 100.0,
        "since": NOW,
    }
    return Alert(**(defaults | fields))


def a_waiting_row(**fields: Any) -> WaitingRow:
    defaults: dict[str, Any] = {
        "seq": 1,
        "id": ids.event(),
        "at": NOW,
        "deliver_at": None,
        "account": "default",
        "type": "order.paid",
        "idempotency_key": None,
        "hops": 0,
        "payload": b"{}",
    }
    return WaitingRow(**defaults | fields)


def a_refused_row(**fields: Any) -> RefusedRow:
    row = msgspec.structs.asdict(a_waiting_row())
    del row["fault"]
    reason = {
        "source": OWN_SOURCE,
        "refused_at": NOW,
        "code": "schema_mismatch",
        "detail": "It does not match.",
    }
    return RefusedRow(**row | reason | {"payload_bytes": len(fields.get("payload", b"{}"))} | fields)


def an_audit_entry(**fields: Any) -> AuditEntry:
    defaults = {
        "id": ids.audit(),
        "at": NOW,
        "account": "acme",
        "action": AuditAction.ENDPOINT_UPDATED,
        "subject_kind": "endpoint",
        "subject": "ep_00000000000000000000000000",
        "actor": Actor(kind=ActorKind.KEY, key_id=ids.key(), name="of a test", hint="hlk_abcd"),
        "via": Via.API,
        "address": "192.0.2.7",
        "request_id": "req_1",
        "changes": {"url": ["https://a.example/", "https://b.example/"]},
    }
    return AuditEntry(**(defaults | fields))
