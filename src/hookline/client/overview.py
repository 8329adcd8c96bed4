"""What does the server tell about itself and about those who use it?"""

from datetime import datetime
from typing import Any

import msgspec

from hookline.client.answers import ApiObject, without_secrets


class Stats(ApiObject, frozen=True, kw_only=True):
    """How an endpoint has been answering; figures of no samples are None."""

    samples: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    mean_ms: float | None = None
    success_rate: float | None = None
    slow: bool = False
    by_status: dict[str, int] = msgspec.field(default_factory=dict)
    pending: int = 0
    dead: int = 0
    series: list[dict[str, Any]] = msgspec.field(default_factory=list)


class Pattern(ApiObject, frozen=True, kw_only=True):
    """What an endpoint's dead letters have in common."""

    endpoint_id: str
    count: int
    url: str | None = None
    error: str | None = None
    status: int | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    mean_attempts: float | None = None
    pattern: str = "mixed"
    advice: str = ""


class Analysis(ApiObject, frozen=True, kw_only=True):
    """Why deliveries died in a window."""

    window: str
    data: list[Pattern]


class Conservation(ApiObject, frozen=True, kw_only=True):
    """Where all deliveries are that were ever accepted: `accepted` is the sum of the others."""

    accepted: int
    pending: int
    delivered: int
    dead: int
    cancelled: int
    pruned: int
    as_of: datetime
    account: str | None = None


class Health(ApiObject, frozen=True, kw_only=True):
    """How the whole installation is doing; counts may be 5 seconds old (`as_of`)."""

    pending: int
    awaiting_retry: int = 0
    in_flight: int = 0
    dead: int = 0
    delivered_last_hour: int = 0
    failed_last_hour: int = 0
    oldest_pending_age_s: float | None = None
    oldest_due_age_s: float | None = None
    mean_response_ms_last_hour: float | None = None
    delivery_rate: float | None = None
    end_to_end_ms: dict[str, float | None] = msgspec.field(default_factory=dict)
    circuits_open: int = 0
    workers: int = 0
    as_of: datetime | None = None


class Alert(ApiObject, frozen=True, kw_only=True):
    """Something an operator should look at."""

    id: str
    kind: str
    state: str
    account: str | None = None
    endpoint_id: str | None = None
    since: datetime | None = None
    resolved_at: datetime | None = None
    value: float | None = None
    threshold: float | None = None
    message: str = ""


class Worker(ApiObject, frozen=True, kw_only=True):
    """A process that publishes or delivers, as of its last heartbeat."""

    id: str
    state: str
    kind: str | None = None
    host: str | None = None
    pid: int | None = None
    version: str | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    lanes: int = 0
    in_flight: int = 0
    delivered_per_s: float | None = None


class EventType(ApiObject, frozen=True, kw_only=True):
    """What was said about a type of events."""

    name: str
    description: str = ""
    schema: dict[str, Any] | bool | None = None  # payloads have to fit it; None: every shape will do
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Notify(ApiObject, frozen=True, kw_only=True):
    """Where an account is told about trouble."""

    email: str | None = None
    webhook: str | None = None
    slack: str | None = None

    def __repr__(self) -> str:
        return without_secrets(self, "webhook", "slack")  # whoever knows them can write there


class Account(ApiObject, frozen=True, kw_only=True):
    """An account and what was said about it."""

    id: str
    notify: Notify = Notify()
    endpoints: int | None = None
    updated_at: datetime | None = None


class Key(ApiObject, frozen=True, kw_only=True):
    """An API key; `key` itself is only in the answer to its creation."""

    id: str
    scopes: list[str]
    name: str = ""
    hint: str = ""
    account: str | None = None  # None: good for all of them
    created_at: datetime | None = None
    revoked_at: datetime | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return without_secrets(self, "key")
