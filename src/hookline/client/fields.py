"""Types of the fields of an endpoint, and of a filter of dead letters.

They are for type checkers and editors: the server checks the values, and refuses invalid ones by name.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict


class _Settings(TypedDict, total=False):
    description: str | None
    enabled: bool
    paused: bool
    filter: str | None
    headers: Mapping[str, str | None]  # a value of None removes the header
    metadata: Mapping[str, Any]
    signing: Literal["standard", "classic"]
    timeout_ms: int | None
    max_redirects: int | None
    max_in_flight: int | None
    rate_limit: Mapping[str, float] | None
    ordering: Literal["parallel", "strict"]
    retry: Mapping[str, Any] | None
    retry_statuses: Sequence[str | int] | None
    circuit: Mapping[str, float] | None  # None: no circuit


class EndpointFields(_Settings, total=False):
    """The fields of a new endpoint, besides its URL and its events."""

    account: str
    secret: str
    signature: Literal["v1", "v1a"]  # v1a: ed25519


class EndpointChanges(_Settings, total=False):
    """Changes to an existing endpoint; None resets a field to its default."""

    url: str
    events: Sequence[str]


class DeadLetterFilter(TypedDict, total=False):
    """Chooses dead letters: those that match, or those with these ids. It has at least one field."""

    account: str
    endpoint_id: str
    event_type: str
    reason: str
    since: datetime  # when they died
    until: datetime
    ids: Sequence[str]
