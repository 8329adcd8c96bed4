"""Keeps endpoints in PostgreSQL.

A verb that changes an endpoint writes one numbered change beside its row, from which the owner of its lane learns of
it. The change is written last: a writer of a change blocks all others.
"""

from collections.abc import Sequence

from hookline.model import AuditEntry, Endpoint, EndpointId
from hookline.store.contract.endpoints import EndpointSnapshot
from hookline.store.postgres import columns, sql
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction


class PostgresEndpoints(PostgresSessions):
    """The contract's verbs about endpoints."""

    @in_transaction
    async def create_endpoint(
        self, connection: Connection, endpoint: Endpoint, *, now: float, audit: AuditEntry | None = None
    ) -> None:
        """See the contract."""
        if await connection.fetch(columns.CREATE_ENDPOINT, *columns.endpoint_values(endpoint)):
            await connection.fetch(sql.CREATE_LANE, endpoint.id, *columns.lane_values(endpoint))
            await note_audit(connection, audit)
            await connection.fetch(sql.WRITE_CHANGE, endpoint.id, "endpoint", now)

    @in_transaction
    async def update_endpoint(
        self,
        connection: Connection,
        endpoint: Endpoint,
        *,
        was: float,
        now: float,
        announce: bool = False,
        audit: AuditEntry | None = None,
    ) -> bool:
        """See the contract."""
        if not await connection.fetch(columns.UPDATE_ENDPOINT, *columns.endpoint_values(endpoint), was):
            return False
        await connection.fetch(sql.PAUSE_LANE, endpoint.id, *columns.lane_values(endpoint), now)
        if announce and not endpoint.enabled:
            await connection.fetch(sql.ANNOUNCE_DISABLED, endpoint.id, now)
        await note_audit(connection, audit)
        await connection.fetch(sql.WRITE_CHANGE, endpoint.id, "endpoint", now)
        return True

    @in_transaction
    async def delete_endpoint(
        self, connection: Connection, endpoint: EndpointId, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """See the contract."""
        if not await connection.fetch(sql.DELETE_ENDPOINT, endpoint):
            return False
        await connection.fetch(sql.DELETE_LANE, endpoint)
        await note_audit(connection, audit)
        await connection.fetch(sql.WRITE_CHANGE, endpoint, "endpoint", now)
        return True

    @in_transaction
    async def reset_circuit(
        self, connection: Connection, endpoint: EndpointId, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """See the contract."""
        if not await connection.fetch(sql.RESET_LANE, endpoint, now):
            return False
        await note_audit(connection, audit)
        await connection.fetch(sql.WRITE_CHANGE, endpoint, "reset", now)
        return True

    async def catalogue(self) -> EndpointSnapshot:
        """See the contract."""
        found = await self._general.fetch(sql.CATALOGUE)
        return EndpointSnapshot(
            n=found[0]["n"],
            endpoints=tuple(columns.read_endpoints(row for row in found if row["id"] is not None)),
        )

    async def endpoints_by_id(self, ids: Sequence[EndpointId]) -> list[Endpoint]:
        """See the contract."""
        return columns.read_endpoints(await self._general.fetch(sql.ENDPOINTS_BY_ID, ids))

    async def list_endpoints(
        self, *, account: str | None, enabled: bool | None, after: EndpointId | None, limit: int
    ) -> list[Endpoint]:
        """See the contract."""
        found = await self._general.fetch(sql.LIST_ENDPOINTS, account, enabled, after, limit)
        return columns.read_endpoints(found)
