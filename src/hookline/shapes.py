"""What do the things that the API shows look like?

Shapes only: field names and types are what clients see, so none of them changes lightly.
"""

from typing import Any

import msgspec

from hookline.model import CircuitPolicy, RateLimit


class CircuitReport(msgspec.Struct, kw_only=True):
    """A lane's health gate, as it stands."""

    state: str
    consecutive_failures: int
    opened_at: str | None
    cooldown_s: float | None
    next_probe_at: str | None
    last_success_at: str | None
    last_failure_at: str | None
    reason: str | None


class EndpointReport(msgspec.Struct, kw_only=True, omit_defaults=False):
    """An endpoint as it is shown; `secret` only to whoever just created it."""

    id: str
    account: str
    url: str
    events: tuple[str, ...]
    description: str
    enabled: bool
    disabled_reason: str | None
    headers: dict[str, str]
    metadata: dict[str, Any]
    filter: str | None
    signing: str
    signature: str
    timeout_ms: int
    max_redirects: int
    max_in_flight: int
    rate_limit: RateLimit | None
    ordering: str
    paused: bool
    retry: dict[str, Any]  # the server's default where the endpoint has none of its own
    retry_statuses: tuple[str | int, ...]
    circuit: CircuitPolicy | None
    circuit_state: CircuitReport
    slow: bool
    created_at: str
    updated_at: str
    secret: str | msgspec.UnsetType = msgspec.UNSET


class DeliveryCounts(msgspec.Struct):
    """How many of an event's deliveries are in each state."""

    pending: int
    delivered: int
    dead: int
    cancelled: int


class EventReport(msgspec.Struct, kw_only=True):
    """An event with its payload as it came, and how its deliveries stand."""

    id: str
    type: str
    account: str
    payload: msgspec.Raw  # in lists null if it is large: `payload_bytes` tells, and the event itself has it
    payload_bytes: int
    idempotency_key: str | None
    deliver_at: str | None
    created_at: str
    deliveries: DeliveryCounts


class ErrorReport(msgspec.Struct):
    """What kept an attempt from being accepted."""

    kind: str
    detail: str | None


class DeathReport(msgspec.Struct):
    """How a delivery died before it was redriven."""

    reason: str
    at: str | None
    attempts: int


class DeliveryReport(msgspec.Struct, kw_only=True):
    """A delivery and what it is waiting for."""

    id: str
    event_id: str
    endpoint_id: str
    account: str
    event_type: str
    state: str
    attempts: int
    max_attempts: int
    due_at: str | None
    in_flight: bool
    waiting_for: str | None
    last_status: int | None
    last_duration_ms: float | None
    last_error: ErrorReport | None
    reason: str | None
    created_at: str | None
    delivered_at: str | None
    dead_at: str | None
    replays: int
    last_death: DeathReport | None


class PhasesReport(msgspec.Struct):
    """Milliseconds of each phase; null is a phase that did not happen."""

    dns: float | None
    connect: float | None
    tls: float | None
    first_byte: float | None


class RequestReport(msgspec.Struct):
    """What was sent; the headers only of an attempt that was not accepted, secrets masked."""

    url: str | None
    headers: dict[str, str] | None


class AttemptReport(msgspec.Struct, kw_only=True):
    """One request and its answer."""

    id: str
    delivery_id: str
    number: int
    at: str | None
    status: int | None
    duration_ms: float | None
    phases_ms: PhasesReport
    error: ErrorReport | None
    request: RequestReport
    response_headers: dict[str, str] | None
    response_body: str
    response_truncated: bool
    final_url: str | None
    late: bool


class JobReport(msgspec.Struct, kw_only=True):
    """A bulk replay or discard and how far it is; one that was only tried out has no id."""

    id: str | None
    state: str
    matched: int
    done: int
    failed: int
    dry_run: bool
    filter: dict[str, Any]
    created_at: str
    finished_at: str | None


class PublishedReport(msgspec.Struct, kw_only=True):
    """What became of a publish."""

    id: str
    type: str
    account: str
    created_at: str
    deliveries: int  # how many endpoints it goes to
    duplicate: bool  # the idempotency key was used before: this is the first one's event


class ReplayedReport(msgspec.Struct):
    """Which deliveries are brought once more."""

    replayed: int
    deliveries: list[str]


class StatusReport(msgspec.Struct):
    """A probe's answer."""

    status: str
