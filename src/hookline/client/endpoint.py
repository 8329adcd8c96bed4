# Generated from validate/endpoint_fields.py and reports/views.py by scripts/mirror_client.py: change those, and run it.
"""An endpoint, and the fields that it is created and changed with.

The types of the fields are for type checkers and editors: the server checks the values, and refuses invalid ones by
name.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypedDict

import msgspec

from hookline.client.answers import ApiObject, Circuit, without_secrets
from hookline.client.words import Ordering, Signature, Signing
from hookline.validate.payload_encoding import JsonValue


class _Settings(TypedDict, total=False):
    description: str | None
    enabled: bool | None
    headers: Mapping[str, str | None] | None
    client_certificate: str | None
    metadata: Mapping[str, object] | None
    filter: str | None
    signing: Signing | Literal["standard", "classic"] | None
    timeout_ms: int | None
    max_in_flight: int | None
    max_redirects: int | None
    rate_limit: Mapping[str, float | None] | None
    ordering: Ordering | Literal["parallel", "strict"] | None
    paused: bool | None
    retry: Mapping[str, object] | None
    retry_statuses: Sequence[int | str] | None
    circuit: Mapping[str, float | None] | None


class EndpointFields(_Settings, total=False):
    """The fields of a new endpoint, besides its URL and its events."""

    account: str | None
    signature: Signature | Literal["v1", "v1a"] | None
    secret: str | None


class EndpointChanges(_Settings, total=False):
    """Changes to an existing endpoint; None resets a field to its default."""

    url: str
    events: Sequence[str]


class Endpoint(ApiObject, frozen=True, kw_only=True):
    """An endpoint; `secret` is only in the answer to its creation."""

    id: str
    account: str
    url: str
    events: list[str]
    description: str = ""
    enabled: bool = True
    disabled_reason: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    client_certificate: dict[str, str] | None = None
    metadata: dict[str, JsonValue] = msgspec.field(default_factory=dict)
    filter: str | None = None
    signing: Signing = Signing("standard")
    signature: Signature = Signature("v1")
    timeout_ms: int = 10000
    max_redirects: int = 0
    max_in_flight: int = 5
    rate_limit: dict[str, float] | None = None
    ordering: Ordering = Ordering("parallel")
    paused: bool = False
    retry: dict[str, JsonValue] = msgspec.field(default_factory=dict)
    retry_statuses: list[str | int] = msgspec.field(default_factory=list)
    circuit: dict[str, float] | None = None
    circuit_state: Circuit | None = None
    slow: bool = False
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    problems: list[dict[str, str]] = msgspec.field(default_factory=list)
    created_at: datetime
    updated_at: datetime
    secret: str | None = None

    def __repr__(self) -> str:
        return without_secrets(self, "secret")
