"""The objects in the server's answers.

Fields that the server may gain are ignored, and those it may lack have a default: a client and a server of
different versions understand each other.
"""

from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from hookline.client.errors import ClientError
from hookline.client.words import CircuitState, DeliveryState, ErrorKind, JobState, Reason, WaitingFor
from hookline.validate.payload_encoding import JsonValue

_Item = TypeVar("_Item")

MASK = "***"


class ApiObject(msgspec.Struct, frozen=True, kw_only=True):
    """Any object that the server returns."""


class Page(ApiObject, Generic[_Item], frozen=True, kw_only=True):
    """One page of a list, newest first."""

    data: list[_Item]
    next_cursor: str | None = None  # None: this is the last page


class Published(ApiObject, frozen=True, kw_only=True):
    """An event that is durable now."""

    id: str  # receivers use it as their idempotency key
    type: str
    account: str
    created_at: datetime
    deliveries: int  # how many endpoints get it
    duplicate: bool = False  # the idempotency key was used before: this is the event that was published first


class Event(ApiObject, frozen=True, kw_only=True):
    """An event, and how many of its deliveries are in each state."""

    id: str
    type: str
    account: str
    created_at: datetime
    payload: msgspec.Raw = msgspec.Raw(b"null")  # in lists null if it is large
    payload_bytes: int | None = None
    idempotency_key: str | None = None
    deliver_at: datetime | None = None
    deliveries: dict[DeliveryState, int] = {}

    @property
    def body(self) -> bytes:
        """The payload, byte for byte as it was published; raises ClientError in a list that left it out."""
        body = bytes(self.payload)
        if self.payload_bytes is not None and len(body) != self.payload_bytes:
            raise ClientError(
                f"The list has left out {self.payload_bytes:,} bytes; event({self.id!r}) has them."
            )
        return body

    def json(self) -> JsonValue:
        """The payload, decoded."""
        value: JsonValue = msgspec.json.decode(self.body)
        return value


class Replayed(ApiObject, frozen=True, kw_only=True):
    """The deliveries of an event that are pending again."""

    replayed: int
    deliveries: list[str]


class Circuit(ApiObject, frozen=True, kw_only=True):
    """An endpoint's health gate."""

    state: CircuitState
    consecutive_failures: int = 0
    opened_at: datetime | None = None
    cooldown_s: float | None = None
    next_probe_at: datetime | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    reason: str | None = None


class OldSecret(ApiObject, frozen=True, kw_only=True):
    """The previous secret, while it still signs."""

    secret: str
    signature: str | None = None
    public_key: str | None = None
    valid_until: datetime | None = None

    def __repr__(self) -> str:
        return without_secrets(self, "secret")


class Secret(ApiObject, frozen=True, kw_only=True):
    """The secret that signs an endpoint's requests."""

    secret: str
    signature: str | None = None
    public_key: str | None = None  # for ed25519: all that the receiver needs
    old: OldSecret | None = None

    def __repr__(self) -> str:
        return without_secrets(self, "secret")


class Failure(ApiObject, frozen=True, kw_only=True):
    """Why an attempt was not accepted."""

    kind: ErrorKind
    detail: str | None = None


class Death(ApiObject, frozen=True, kw_only=True):
    """Why and when a delivery died before it was replayed."""

    reason: Reason
    at: datetime | None = None
    attempts: int = 0


class Delivery(ApiObject, frozen=True, kw_only=True):
    """A delivery and what it is waiting for; one in state `dead` is a dead letter."""

    id: str
    event_id: str
    endpoint_id: str
    account: str
    event_type: str
    state: DeliveryState
    attempts: int = 0
    max_attempts: int | None = None
    due_at: datetime | None = None
    in_flight: bool = False
    waiting_for: WaitingFor | None = None
    last_status: int | None = None
    last_duration_ms: float | None = None
    last_error: Failure | None = None
    reason: Reason | None = None
    created_at: datetime | None = None
    delivered_at: datetime | None = None
    dead_at: datetime | None = None
    replays: int = 0
    last_death: Death | None = None


class Phases(ApiObject, frozen=True, kw_only=True):
    """Milliseconds of each phase; None is a phase that did not happen."""

    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    first_byte: float | None = None


class Sent(ApiObject, frozen=True, kw_only=True):
    """What was sent; headers only for an attempt that was not accepted, secrets masked."""

    url: str | None = None
    headers: dict[str, str] | None = None


class Attempt(ApiObject, frozen=True, kw_only=True):
    """One request made for a delivery, and its answer."""

    id: str
    number: int
    delivery_id: str | None = None
    at: datetime | None = None
    status: int | None = None
    duration_ms: float | None = None
    phases_ms: Phases | None = None
    error: Failure | None = None
    request: Sent | None = None
    response_headers: dict[str, str] | None = None
    response_body: str = ""
    response_truncated: bool = False
    final_url: str | None = None
    late: bool = False


class Latencies(ApiObject, frozen=True, kw_only=True):
    """Percentiles in milliseconds; None without samples."""

    samples: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    mean_ms: float | None = None


class LatencyPhases(ApiObject, frozen=True, kw_only=True):
    """The phases of requests; the first three happen on new connections only."""

    dns: Latencies = Latencies()
    connect: Latencies = Latencies()
    tls: Latencies = Latencies()
    first_byte: Latencies = Latencies()


class StatsPoint(ApiObject, frozen=True, kw_only=True):
    """The attempts from `at` until the next point of the series."""

    at: datetime
    samples: int = 0
    accepted: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


class Stats(ApiObject, frozen=True, kw_only=True):
    """The attempts of an endpoint in a window."""

    endpoint_id: str
    samples: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    mean_ms: float | None = None
    success_rate: float | None = None
    slow: bool = False
    pending: int = 0
    dead: int = 0
    by_status: dict[str, int] = {}
    queue_wait: Latencies = Latencies()
    end_to_end: Latencies = Latencies()
    phases: LatencyPhases = LatencyPhases()
    series: list[StatsPoint] = []
    step_s: int | None = None
    precision_s: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None


class Trial(ApiObject, frozen=True, kw_only=True):
    """The delivery of a test event."""

    id: str  # the delivery's
    event_id: str
    endpoint_id: str | None = None
    account: str | None = None
    event_type: str | None = None


class Job(ApiObject, frozen=True, kw_only=True):
    """A bulk replay or discard; a dry run has no id."""

    state: JobState
    matched: int
    id: str | None = None
    done: int = 0
    failed: int = 0
    dry_run: bool = False
    filter: dict[str, JsonValue] = {}
    created_at: datetime | None = None
    finished_at: datetime | None = None
    reason: str | None = None  # why it failed


def without_secrets(answer: ApiObject, *hidden: str) -> str:
    """What `repr` may show of an answer."""
    shown = (
        f"{name}={MASK if name in hidden and value is not None else repr(value)}"
        for name, value in ((name, getattr(answer, name)) for name in answer.__struct_fields__)
    )
    return f"{type(answer).__name__}({', '.join(shown)})"
