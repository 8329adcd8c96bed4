"""The server's answers about the installation and its accounts."""

from datetime import datetime

import msgspec

from hookline.client.answers import ApiObject, without_secrets
from hookline.client.words import (
    ActorKind,
    AlertKind,
    AlertState,
    AuditAction,
    Channel,
    DeathPattern,
    ErrorKind,
    Scope,
    Via,
    WorkerKind,
    WorkerState,
)
from hookline.validate.payload_encoding import JsonValue


class EndpointDeaths(ApiObject, frozen=True, kw_only=True):
    """The dead letters of one endpoint, what they have in common, and what to do about it."""

    endpoint_id: str
    count: int
    pattern: DeathPattern
    advice: str = ""
    url: str | None = None  # None: the endpoint is deleted
    error: ErrorKind | None = None  # the commonest
    status: int | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    mean_attempts: float | None = None


class Analysis(ApiObject, frozen=True, kw_only=True):
    """The endpoints with the most dead letters of a window, those with the most first."""

    window: str
    data: list[EndpointDeaths]


class Conservation(ApiObject, frozen=True, kw_only=True):
    """The number of deliveries by state. `accepted` counts all that ever were, and is the sum of the others."""

    accepted: int
    pending: int
    delivered: int
    dead: int
    cancelled: int
    pruned: int
    as_of: datetime
    account: str | None = None


class Health(ApiObject, frozen=True, kw_only=True):
    """How much waits, fails and arrives; the counts are as of `as_of`."""

    pending: int
    awaiting_retry: int
    in_flight: int
    dead: int
    delivered_last_hour: int
    failed_last_hour: int
    oldest_pending_age_s: float | None = None
    oldest_due_age_s: float | None = None
    mean_response_ms_last_hour: float | None = None
    delivery_rate: float | None = None
    end_to_end_ms: dict[str, float | None] = msgspec.field(default_factory=dict)
    circuits_open: int = 0
    outbox_refused: int = 0  # rows of outboxes that wait for a decision
    workers: int = 0
    as_of: datetime | None = None  # None: nobody has counted yet


class Alert(ApiObject, frozen=True, kw_only=True):
    """A condition that somebody should know of; `value` and `message` are those of when it fired."""

    id: str
    kind: AlertKind
    state: AlertState
    message: str = ""
    account: str | None = None  # None: it is about the whole installation
    endpoint_id: str | None = None
    since: datetime | None = None
    resolved_at: datetime | None = None
    value: float | None = None
    threshold: float | None = None


class AuditSubject(ApiObject, frozen=True, kw_only=True):
    """What was changed: an id, or the name of an account or an event type."""

    kind: str
    id: str


class Actor(ApiObject, frozen=True, kw_only=True):
    """Who changed it. Of a visit to the portal, the key is the one that its link came from."""

    kind: ActorKind
    key_id: str | None = None
    name: str | None = None  # of the key, or of the operating system's user
    hint: str | None = None  # the beginning of the key


class AuditEntry(ApiObject, frozen=True, kw_only=True):
    """One thing that somebody did."""

    id: str
    at: datetime
    action: AuditAction
    subject: AuditSubject
    actor: Actor
    via: Via
    account: str | None = None  # None: it is about no account in particular
    address: str | None = None  # of the client as the server sees it; of a command, the name of its machine
    request_id: str | None = None
    changes: dict[str, JsonValue] = msgspec.field(
        default_factory=dict
    )  # the old and the new value, without secrets
    truncated: bool = False  # not all changes are shown


class Worker(ApiObject, frozen=True, kw_only=True):
    """A process that publishes or delivers, as of its last heartbeat."""

    id: str
    state: WorkerState
    kind: WorkerKind | None = None
    host: str | None = None
    pid: int | None = None
    version: str | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    lanes: int = 0
    in_flight: int = 0
    delivered_per_s: float | None = None


class FoundIds(ApiObject, frozen=True, kw_only=True):
    """The ids that begin with a prefix, in order."""

    data: list[str]
    has_more: bool = False


class EventType(ApiObject, frozen=True, kw_only=True):
    """The description of an event type."""

    name: str
    description: str = ""
    schema: dict[str, JsonValue] | bool | None = None  # payloads must match it; None: any shape is accepted
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Notify(ApiObject, frozen=True, kw_only=True):
    """Where an account is told of trouble; what follows the host of a URL is masked as `/***`."""

    email: str | None = None
    webhook: str | None = None
    slack: str | None = None


class Account(ApiObject, frozen=True, kw_only=True):
    """An account with its settings."""

    id: str
    notify: Notify = Notify()
    endpoints: int = 0
    updated_at: datetime | None = None  # None: nothing was ever set


class ChannelResult(ApiObject, frozen=True, kw_only=True):
    """What came of a test alert on one channel; `detail` is the receiver's answer or the error."""

    channel: Channel
    ok: bool
    recipient: str = ""
    detail: str = ""


class AlertTest(ApiObject, frozen=True, kw_only=True):
    """What came of a test alert; without a configured channel there are no results."""

    account: str
    results: list[ChannelResult]


class PortalLink(ApiObject, frozen=True, kw_only=True):
    """A link that opens one visit to an account's portal. Whoever has it may use it."""

    url: str
    path: str  # the part of the URL below where people reach the server
    account: str
    expires_at: datetime
    visit_s: int

    def __repr__(self) -> str:
        return without_secrets(self, "url", "path")


class Key(ApiObject, frozen=True, kw_only=True):
    """An API key; `key` itself is only in the answer to its creation."""

    id: str
    scopes: list[Scope]
    name: str = ""
    hint: str = ""
    account: str | None = None  # None: good for all of them
    created_at: datetime | None = None
    revoked_at: datetime | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return without_secrets(self, "key")
