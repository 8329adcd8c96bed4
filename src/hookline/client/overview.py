"""The server's answers about the installation and its accounts."""

from datetime import datetime
from typing import Any

from hookline.client.answers import ApiObject, without_secrets


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
    """The description of an event type."""

    name: str
    description: str = ""
    schema: dict[str, Any] | bool | None = None  # payloads must match it; None: any shape is accepted
    created_at: datetime | None = None
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
