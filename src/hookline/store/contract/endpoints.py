"""Defines how a store keeps endpoints.

A part of the contract: see `store.contract` for what holds for every verb. A verb that changes an endpoint
also writes one change.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.model import AuditEntry, Endpoint, EndpointId


class EndpointSnapshot(msgspec.Struct, frozen=True):
    """All endpoints, and the number of the last change they include."""

    n: int
    endpoints: tuple[Endpoint, ...]


class EndpointStore(Protocol):
    """The verbs about endpoints."""

    async def create_endpoint(
        self, endpoint: Endpoint, *, now: float, audit: AuditEntry | None = None
    ) -> None:
        """Add an endpoint and its lane."""

    async def update_endpoint(
        self,
        endpoint: Endpoint,
        *,
        was: float,
        now: float,
        announce: bool = False,
        audit: AuditEntry | None = None,
    ) -> bool:
        """Replace the endpoint that was read with `updated_at = was`; a disabled or paused one has its lane paused.

        False when it is gone, or was changed meanwhile. To announce is to write, in the same commit, that it is
        disabled; never about the account `hookline`.
        """

    async def delete_endpoint(
        self, endpoint: EndpointId, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """Delete an endpoint, keeping its lane as a paused tombstone; `cancel_deleted` cancels its pending rows."""

    async def reset_circuit(
        self, endpoint: EndpointId, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """Ask the lane's owner to close its circuit; a free lane is made ready to be taken. False without a lane."""

    async def catalogue(self) -> EndpointSnapshot:
        """All endpoints and the change number they include, in one snapshot."""

    async def endpoints_by_id(self, ids: Sequence[EndpointId]) -> list[Endpoint]:
        """The ones of these that exist."""

    async def list_endpoints(
        self, *, account: str | None, enabled: bool | None, after: EndpointId | None, limit: int
    ) -> list[Endpoint]:
        """Newest first, from below the id `after`."""
