"""Defines the nouns of hookline.

All are frozen values: a change makes a new value. Times are seconds since 1970 (UTC, the store's clock). Ids are 16
bytes inside and prefixed text outside (`ids`).
"""

from enum import StrEnum
from typing import Any, NewType

import msgspec

from hookline.words.signing import Signature as Signature
from hookline.words.signing import Signing as Signing

EventId = NewType("EventId", bytes)
EndpointId = NewType("EndpointId", bytes)
DeliveryId = NewType("DeliveryId", bytes)
AttemptId = NewType("AttemptId", bytes)
WorkerId = NewType("WorkerId", bytes)
JobId = NewType("JobId", bytes)
KeyId = NewType("KeyId", bytes)
AlertId = NewType("AlertId", bytes)
AuditId = NewType("AuditId", bytes)

DEFAULT_ACCOUNT = "default"
OWN_ACCOUNT = "hookline"  # whose endpoints get hookline's own events
FOREVER = float("inf")
LONG_AGO = float("-inf")


class State(StrEnum):
    """A delivery's state; the value is what the database stores."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Queue(StrEnum):
    """Which of a lane's two queues a pending delivery waits in."""

    READY = "ready"  # never tried, due at once, in publish order
    TIMED = "timed"  # retries, scheduled events, replays, in order of due time


class Outcome(StrEnum):
    """What an attempt's answer means."""

    ACCEPTED = "accepted"
    TRANSIENT = "transient"
    THROTTLED = "throttled"
    REJECTED = "rejected"
    GONE = "gone"


class Reason(StrEnum):
    """Why a delivery is dead or cancelled."""

    EXHAUSTED = "exhausted"
    REJECTED = "rejected"
    GONE = "gone"
    CRASH_LIMIT = "crash_limit"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    ENDPOINT_DELETED = "endpoint_deleted"


class ErrorKind(StrEnum):
    """Why an attempt was not accepted."""

    DNS = "dns"
    BLOCKED_ADDRESS = "blocked_address"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_FAILED = "connect_failed"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    PROTOCOL = "protocol"
    INTERNAL = "internal"
    HTTP_3XX = "http_3xx"
    HTTP_4XX = "http_4xx"
    HTTP_410 = "http_410"
    HTTP_429 = "http_429"
    HTTP_5XX = "http_5xx"


class Ordering(StrEnum):
    """Whether a lane's deliveries may overtake each other."""

    PARALLEL = "parallel"
    STRICT = "strict"


class CircuitState(StrEnum):
    """Whether a lane may send; the value is what the database stores."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Scope(StrEnum):
    """What a key may do; `rules.scopes` decides which scope includes which."""

    PUBLISH = "publish"
    READ = "read"
    ADMIN = "admin"


class RateLimit(msgspec.Struct, frozen=True):
    """The maximum request rate of an endpoint, as a token bucket."""

    per_second: float
    burst: int


class CircuitPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a circuit opens, and how long it stays open."""

    consecutive_failures: int = 5
    failure_rate: float = 0.5
    window_s: float = 600.0
    min_attempts: int = 10
    cooldown_s: float = 300.0
    max_cooldown_s: float = 3_600.0


class CircuitSlice(msgspec.Struct, frozen=True, array_like=True):
    """The results in a tenth of a circuit's window."""

    index: int  # of its start, in slices since 1970
    attempts: int
    failures: int


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """The circuit breaker of a lane."""

    state: CircuitState = CircuitState.CLOSED
    failures: int = 0  # in a row
    slices: tuple[CircuitSlice, ...] = ()
    cooldown: float | None = None  # seconds, of the current opening
    opened_at: float | None = None
    probe_at: float | None = None  # open: no probe before this; half-open: no other worker probes before this
    reason: str | None = None
    last_success_at: float | None = None
    last_failure_at: float | None = None


CLOSED = Circuit()
DEFAULT_RETRY_STATUSES: tuple[str | int, ...] = ("5xx", 408, 425, 429)


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that a producer published."""

    id: EventId
    account: str
    type: str
    payload: bytes  # one JSON value, unchanged
    idempotency_key: str | None = None
    deliver_at: float | None = None
    hops: int = 0  # how many times a hookline sent it on before it was published here
    trace: str | None = None  # that the publish belongs to, see `rules.trace_context`
    created_at: float


class CertificateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown of a certificate."""

    subject: str
    issuer: str
    serial: str  # in hexadecimal
    not_before: str
    not_after: str
    fingerprint: str  # sha256: and hexadecimal


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate with its private key, with which requests prove over TLS who sends them."""

    pem: str  # as stored: sealed if the server has a key for that (`sealing`)
    facts: CertificateFacts

    def __repr__(self) -> str:
        return f"ClientCertificate({self.facts.fingerprint})"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver's URL with its secret, event patterns and limits."""

    id: EndpointId
    account: str
    url: str  # canonical
    events: tuple[str, ...]  # patterns
    secret: str  # as stored: sealed if the server has a key for that (`sealing`)
    old_secret: str | None = None  # signs as well, until `old_secret_until`
    old_secret_until: float | None = None
    signing: Signing = Signing.STANDARD
    signature: Signature = Signature.V1  # the kind that `secret` makes
    description: str = ""
    enabled: bool = True
    disabled_reason: str | None = None
    headers: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    client_certificate: ClientCertificate | None = None
    timeout: float = 10.0
    max_redirects: int = 0
    max_in_flight: int = 5
    rate_limit: RateLimit | None = None
    ordering: Ordering = Ordering.PARALLEL
    paused: bool = False
    filter: str | None = None  # JMESPath over the payload; None: everything passes
    retry: dict[str, Any] | None = None  # as given; None: the server's default
    retry_statuses: tuple[str | int, ...] = DEFAULT_RETRY_STATUSES
    circuit: CircuitPolicy | None = CircuitPolicy()  # None: never trips
    created_at: float
    updated_at: float
    unread: dict[
        str, str
    ] = {}  # fields whose stored value cannot be read, with the reason; the field itself holds a placeholder


class EventType(msgspec.Struct, frozen=True, kw_only=True):
    """An event type with a description; types without one may be published too."""

    name: str
    description: str = ""
    schema: str | None = None  # a JSON Schema, as JSON: payloads that do not fit are refused
    created_at: float
    updated_at: float


class Notify(msgspec.Struct, frozen=True, kw_only=True):
    """Where an account wants to be notified of trouble."""

    email: str | None = None
    webhook: str | None = None
    slack: str | None = None

    def __repr__(self) -> str:
        urls = ", ".join(f"{name}=…" for name in ("webhook", "slack") if getattr(self, name) is not None)
        return (
            f"Notify(email={self.email!r}{', ' if urls else ''}{urls})"  # whoever knows them can write there
        )


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of events and endpoints; an account without settings exists too."""

    id: str
    notify: Notify = Notify()
    updated_at: float | None = None  # None: nothing was ever set for it


class Timings(msgspec.Struct, frozen=True, gc=False):
    """How long each phase of a request took, in seconds; None is a phase that did not happen."""

    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    first_byte: float | None = None


NO_TIMINGS = Timings()


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One HTTP request made for a delivery."""

    id: AttemptId
    delivery_id: DeliveryId
    number: int  # 1 is the first request of this life (a replay begins a new one)
    replays: int  # the life it belongs to
    at: float
    outcome: Outcome
    duration: float
    status: int | None = None
    error: ErrorKind | None = None
    error_detail: str | None = None
    timings: Timings = NO_TIMINGS
    request_url: str | None = None
    request_headers: dict[str, str] | None = None  # secrets masked; only for attempts that were not accepted
    response_headers: dict[str, str] | None = None  # likewise
    response_body: bytes = b""
    response_truncated: bool = False
    final_url: str | None = None
    late: bool = False  # settled by a worker that had lost the lane; it decides nothing


class Death(msgspec.Struct, frozen=True):
    """The death of a delivery that was replayed since."""

    reason: Reason
    at: float
    attempts: int


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The obligation to bring one event to one endpoint, as it is stored."""

    id: DeliveryId
    event_id: EventId
    endpoint_id: EndpointId
    account: str
    event_type: str
    state: State
    queue: Queue
    seq: int
    attempts: int
    replays: int
    due_at: float
    created_at: float
    done_at: float | None = None
    reason: Reason | None = None
    last_status: int | None = None
    last_error: ErrorKind | None = None
    last_error_detail: str | None = None
    last_duration: float | None = None
    last_death: Death | None = None


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An API key as it is stored: without the key itself."""

    id: KeyId
    digest: bytes  # identifies the key
    hint: str  # how it begins: enough to tell keys apart, useless to a thief
    name: str
    scopes: tuple[Scope, ...]
    account: str | None = None  # bound to this account; None: valid for all
    created_at: float
    revoked_at: float | None = None


class SessionKind(StrEnum):
    """What a browser's token is good for; the value is what the database stores."""

    LOGIN = "login"  # the dashboard, with the rights of the key
    LINK = "link"  # opening one portal visit, once
    PORTAL = "portal"  # a visit to one account's portal


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser may do for a while: without its token, which only the browser has."""

    digest: bytes  # SHA-256 of the token: identifies the session
    kind: SessionKind
    key_digest: bytes  # of the API key it came from: a revoked key ends it; empty: it needs no key
    account: str | None = None  # None: the key's own limits hold
    scopes: tuple[Scope, ...] = ()  # of a login empty: the key's own hold
    created_at: float
    seen_at: float
    expires_at: float  # whatever happens meanwhile
    visit_s: float = 0.0  # of a link: how long the visit may last that it opens


class AlertKind(StrEnum):
    """A condition that somebody should know of; the value is what the database stores."""

    DEAD_LETTERS = "dead_letters"
    DEAD_LETTERS_GROWING = "dead_letters_growing"
    OLDEST_DUE = "oldest_due"
    STUCK = "stuck"
    QUEUE_GROWING = "queue_growing"
    ENDPOINT_SLOW = "endpoint_slow"
    CIRCUIT_OPEN = "circuit_open"
    ENDPOINT_DISABLED = "endpoint_disabled"
    OUTBOX_REFUSED = "outbox_refused"
    OUTBOX_LATE = "outbox_late"


class AlertFact(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement that may raise an alert, of an endpoint, an account, an outbox or the installation."""

    kind: AlertKind
    source: str | None = None  # of an outbox
    account: str | None = None
    endpoint_id: EndpointId | None = None
    url: str | None = None  # of the endpoint
    value: float | None = None  # a number, seconds or a time, by its kind
    detail: str | None = None  # why it is so, as it was stored


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that held at some time, and may still hold."""

    id: AlertId
    kind: AlertKind
    subject: str  # what it is about: an id, an account's name, or nothing for the installation
    account: str | None = None
    endpoint_id: EndpointId | None = None
    message: str
    value: float | None = None  # when it fired
    threshold: float | None = None
    since: float
    resolved_at: float | None = None  # None: it is firing
    clear_looks: int = 0  # in a row that did not find it


class AuditAction(StrEnum):
    """What somebody did; the value is what the database stores."""

    ENDPOINT_CREATED = "endpoint.created"
    ENDPOINT_UPDATED = "endpoint.updated"
    ENDPOINT_ENABLED = "endpoint.enabled"
    ENDPOINT_DISABLED = "endpoint.disabled"
    ENDPOINT_PAUSED = "endpoint.paused"
    ENDPOINT_RESUMED = "endpoint.resumed"
    ENDPOINT_DELETED = "endpoint.deleted"
    CIRCUIT_RESET = "circuit.reset"
    SECRET_ROTATED = "secret.rotated"  # noqa: S105 - names of actions
    SECRET_REVEALED = "secret.revealed"  # noqa: S105
    SECRETS_SEALED = "secrets.sealed"
    SECRETS_UNSEALED = "secrets.unsealed"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    PORTAL_LINK_CREATED = "portal_link.created"
    ACCOUNT_UPDATED = "account.updated"
    DELIVERY_RETRIED = "delivery.retried"
    DELIVERY_CANCELLED = "delivery.cancelled"
    DELIVERY_REPLAYED = "delivery.replayed"
    DELIVERY_DISCARDED = "delivery.discarded"
    EVENT_REPLAYED = "event.replayed"
    DEAD_LETTERS_REPLAYED = "dead_letters.replayed"
    DEAD_LETTERS_DISCARDED = "dead_letters.discarded"
    EVENT_TYPE_PUT = "event_type.put"
    EVENT_TYPE_DELETED = "event_type.deleted"
    EVENTS_PRUNED = "events.pruned"
    OUTBOX_ROW_RETRIED = "outbox_row.retried"
    OUTBOX_ROW_DISCARDED = "outbox_row.discarded"
    OUTBOX_FORGOTTEN = "outbox.forgotten"


class ActorKind(StrEnum):
    """What somebody acted with."""

    KEY = "key"
    SETTINGS_KEY = "settings_key"  # HOOKLINE_API_KEY
    PORTAL = "portal"  # a visit to the portal
    DEVELOPMENT = "development"  # no key was needed
    COMMAND_LINE = "command_line"  # a command that works on the database itself
    PROGRAM = "program"  # the one that hookline is embedded in


class Via(StrEnum):
    """The way in that somebody took."""

    API = "api"
    DASHBOARD = "dashboard"
    PORTAL = "portal"
    CLI = "cli"
    LIBRARY = "library"


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts. Of a visit to the portal, the key is the one that its link came from."""

    kind: ActorKind
    key_id: KeyId | None = None
    name: str = ""  # of the key, or of the operating system's user
    hint: str = ""  # the beginning of the key
    account: str | None = None  # the one that the key is bound to


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody did. It is written in the transaction of the change, and never changed."""

    id: AuditId
    at: float
    account: str | None  # whose things it is about; None: nobody's in particular
    action: str  # an AuditAction; text, so that those of a later version can be read
    subject_kind: str
    subject: str  # an id as it is shown, or a name
    actor: Actor
    via: Via
    address: str | None = None  # of the client; of a command, the name of its machine
    request_id: str | None = None
    changes: dict[str, Any] = {}  # by field: the old value and the new one, without secrets
    is_cut: bool = False  # not everything that changed is in `changes`
