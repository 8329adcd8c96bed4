"""Defines the objects that the API shows.

These are shapes only. Clients see the field names and types, so none of them changes lightly.
"""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from hookline.ids import PREFIXES
from hookline.model import (
    AlertKind,
    CertificateFacts,
    CircuitPolicy,
    CircuitState,
    ErrorKind,
    Ordering,
    RateLimit,
    Reason,
    Signature,
    Signing,
    State,
)
from hookline.reports.waiting import WORDS
from hookline.rules.death_pattern import Pattern
from hookline.rules.liveness import Condition
from hookline.validate import api_schema

# Texts with a format: programs that read the API's description see it; here they are plain texts.


def _id(noun: str) -> msgspec.Meta:
    return msgspec.Meta(pattern=f"^{PREFIXES[noun]}[0-7][0-9a-v]{{25}}$")


def _one_of(words: Iterable[str]) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema={"enum": [str(word) for word in words]})


Moment = api_schema.Moment
EventText = Annotated[str, _id("event")]
EndpointText = Annotated[str, _id("endpoint")]
DeliveryText = Annotated[str, _id("delivery")]
AttemptText = Annotated[str, _id("attempt")]
StateWord = Annotated[str, _one_of(State)]
ReasonWord = Annotated[str, _one_of(Reason)]
ErrorWord = Annotated[str, _one_of(ErrorKind)]
CircuitWord = Annotated[str, _one_of(CircuitState)]
SigningWord = Annotated[str, _one_of(Signing)]
SignatureWord = Annotated[str, _one_of(Signature)]
OrderingWord = Annotated[str, _one_of(Ordering)]
WaitingWord = Annotated[str, _one_of(WORDS)]
WorkerText = Annotated[str, _id("worker")]
ConditionWord = Annotated[str, _one_of(Condition)]
KINDS = ("serve", "worker", "api", "library")
KindWord = Annotated[str, _one_of(KINDS)]
PatternWord = Annotated[str, _one_of(Pattern)]
AlertText = Annotated[str, _id("alert")]
AlertKindWord = Annotated[str, _one_of(AlertKind)]
AlertStateWord = Annotated[str, _one_of(("firing", "resolved"))]
JobWord = Annotated[str, _one_of(("running", "done", "failed"))]


class CircuitReport(msgspec.Struct, kw_only=True):
    """The state of an endpoint's circuit breaker."""

    state: CircuitWord
    consecutive_failures: int
    opened_at: Moment | None
    cooldown_s: float | None
    next_probe_at: Moment | None
    last_success_at: Moment | None
    last_failure_at: Moment | None
    reason: str | None


class EndpointCountsReport(msgspec.Struct):
    """What waits for an endpoint, is being sent to it, and is dead. What is in flight also counts as waiting."""

    pending: int  # not attempted yet
    awaiting_retry: int
    in_flight: int
    dead: int


class EndpointProblem(msgspec.Struct):
    """A stored endpoint field that is invalid, and why."""

    field: str
    detail: str


class EndpointReport(msgspec.Struct, kw_only=True, omit_defaults=False):
    """An endpoint. `secret` is present only in the response that creates it."""

    id: EndpointText
    account: str
    url: str
    events: tuple[str, ...]
    description: str
    enabled: bool
    disabled_reason: str | None
    headers: dict[str, str]
    client_certificate: CertificateFacts | None
    metadata: dict[str, Any]
    filter: str | None
    signing: SigningWord
    signature: SignatureWord
    timeout_ms: int
    max_redirects: int
    max_in_flight: int
    rate_limit: RateLimit | None
    ordering: OrderingWord
    paused: bool
    retry: dict[str, Any]  # the server's default if the endpoint has none of its own
    retry_statuses: tuple[Annotated[str | int, msgspec.Meta(title="RetryStatusWord")], ...]
    circuit: CircuitPolicy | None
    circuit_state: CircuitReport
    slow: bool
    counts: EndpointCountsReport  # may be some seconds old
    problems: tuple[EndpointProblem, ...]  # mostly none; with one its deliveries fail until it is corrected
    created_at: Moment
    updated_at: Moment
    secret: str | msgspec.UnsetType = msgspec.UNSET


class DeliveryCounts(msgspec.Struct):
    """The number of an event's deliveries in each state."""

    pending: int
    delivered: int
    dead: int
    cancelled: int


class EventReport(msgspec.Struct, kw_only=True):
    """An event with its payload, unchanged, and the number of its deliveries in each state."""

    id: EventText
    type: str
    account: str
    payload: msgspec.Raw  # in lists null if it is large: see `payload_bytes`; the event itself has it
    idempotency_key: str | None
    deliver_at: Moment | None
    created_at: Moment
    deliveries: DeliveryCounts
    payload_bytes: int


class ErrorReport(msgspec.Struct):
    """Why an attempt was not accepted."""

    kind: ErrorWord
    detail: str | None


class DeathReport(msgspec.Struct):
    """Why and when a delivery died before it was replayed."""

    reason: ReasonWord
    at: Moment | None
    attempts: int


class DeliveryReport(msgspec.Struct, kw_only=True):
    """A delivery and what it is waiting for."""

    id: DeliveryText
    event_id: EventText
    endpoint_id: EndpointText
    account: str
    event_type: str
    state: StateWord
    attempts: int
    max_attempts: int
    due_at: Moment | None
    in_flight: bool
    waiting_for: WaitingWord | None
    last_status: int | None
    last_duration_ms: float | None
    last_error: ErrorReport | None
    reason: ReasonWord | None
    created_at: Moment | None
    delivered_at: Moment | None
    dead_at: Moment | None
    replays: int
    last_death: DeathReport | None


class PhasesReport(msgspec.Struct):
    """Milliseconds of each phase; null is a phase that did not happen."""

    dns: float | None
    connect: float | None
    tls: float | None
    first_byte: float | None


class RequestReport(msgspec.Struct):
    """The request as sent. Headers are kept only if the attempt was not accepted; secrets are masked."""

    url: str | None
    headers: dict[str, str] | None


class AttemptReport(msgspec.Struct, kw_only=True):
    """One HTTP request and its response."""

    id: AttemptText
    delivery_id: DeliveryText
    number: int
    at: Moment | None
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
    """A bulk replay or discard and its progress. A dry run has no id."""

    id: str | None
    state: JobWord
    matched: int
    done: int
    failed: int
    dry_run: bool
    filter: dict[str, Any]
    created_at: Moment
    finished_at: Moment | None
    reason: str | None  # why it failed


class WorkerReport(msgspec.Struct, kw_only=True):
    """A process that publishes or delivers, as of its last heartbeat."""

    id: WorkerText
    kind: KindWord
    host: str
    pid: int
    version: str
    started_at: Moment
    heartbeat_at: Moment
    lanes: int  # owned
    in_flight: int  # requests under way
    delivered_per_s: float  # between its last two heartbeats
    state: ConditionWord


class AlertReport(msgspec.Struct, kw_only=True):
    """A condition that somebody should know of; `value` and `message` are those of when it fired."""

    id: AlertText
    kind: AlertKindWord
    account: str | None  # null: it is about the whole installation
    endpoint_id: EndpointText | None
    state: AlertStateWord
    since: Moment
    resolved_at: Moment | None
    value: float | None
    threshold: float | None
    message: str


class PercentilesReport(msgspec.Struct):
    """Milliseconds; null: nothing was measured."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class HealthReport(msgspec.Struct, kw_only=True):
    """How much waits, fails and arrives. What is in flight also counts as pending or awaiting a retry."""

    pending: int  # not attempted yet
    awaiting_retry: int
    in_flight: int
    dead: int
    delivered_last_hour: int
    failed_last_hour: int  # created in the last hour, and awaiting a retry or dead
    oldest_pending_age_s: Annotated[
        float | None, msgspec.Meta(description="since its creation; null: none waits")
    ]
    oldest_due_age_s: Annotated[
        float | None,
        msgspec.Meta(description="since it was due, of those that nothing holds back; null: none"),
    ]
    mean_response_ms_last_hour: float | None
    delivery_rate: Annotated[
        float | None, msgspec.Meta(description="accepted / all attempts of the last hour; null: no attempts")
    ]
    end_to_end_ms: PercentilesReport
    circuits_open: int
    outbox_refused: Annotated[int, msgspec.Meta(description="rows of outboxes that wait for a decision")]
    workers: Annotated[int, msgspec.Meta(description="processes that deliver and are not stale")]
    as_of: Annotated[Moment | None, msgspec.Meta(description="of the counts; null: nobody has counted yet")]


class PublishedReport(msgspec.Struct, kw_only=True):
    """The result of a publish."""

    id: EventText
    type: str
    account: str
    created_at: Moment
    deliveries: int  # how many endpoints it goes to
    duplicate: bool  # the idempotency key was used before: this is the event of its first use


class ReplayedReport(msgspec.Struct):
    """The number of replayed deliveries, and their ids."""

    replayed: int
    deliveries: list[DeliveryText]


class IdsReport(msgspec.Struct):
    """The ids that begin with a prefix, in order."""

    data: list[str]
    has_more: Annotated[bool, msgspec.Meta(description="more ids begin with it than are listed")]


class DeathsReport(msgspec.Struct, kw_only=True):
    """The dead letters of one endpoint, what they have in common, and what to do about it."""

    endpoint_id: EndpointText
    url: Annotated[str | None, msgspec.Meta(description="null: the endpoint is deleted")]
    count: int
    error: Annotated[ErrorWord | None, msgspec.Meta(description="the commonest; null: they had no answer")]
    status: Annotated[int | None, msgspec.Meta(description="the commonest answer's; null: a network error")]
    first_at: Moment
    last_at: Moment
    mean_attempts: float
    pattern: PatternWord
    advice: Annotated[str, msgspec.Meta(description="what to change, with commands between backticks")]


class AnalysisReport(msgspec.Struct, kw_only=True):
    """The endpoints with the most dead letters of a window, at most 20, those with the most first."""

    window: str
    data: list[DeathsReport]


class StatusReport(msgspec.Struct):
    """The result of a health probe."""

    status: str


class ConservationReport(msgspec.Struct, kw_only=True):
    """The number of deliveries by state. `accepted` counts all that ever were, and is the sum of the others."""

    account: Annotated[str | None, msgspec.Meta(description="null: all accounts")]
    accepted: int
    pending: int
    delivered: int
    dead: int
    cancelled: int
    pruned: Annotated[int, msgspec.Meta(description="deleted after their retention time")]
    as_of: Moment
