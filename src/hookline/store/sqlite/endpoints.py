"""Keeps endpoints in SQLite.

A verb that changes an endpoint writes one numbered change beside its row, from which the owner of its lane learns of
it.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from hookline.model import AuditEntry, Endpoint, EndpointId
from hookline.store.contract.endpoints import EndpointSnapshot
from hookline.store.sqlite import columns, sql
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS, packed
from hookline.store.sqlite.workers import write_change


class SqliteEndpoints(SqliteConnections):
    """The contract's verbs about endpoints."""

    @on_writer
    def create_endpoint(
        self,
        connection: sqlite3.Connection,
        endpoint: Endpoint,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> None:
        """Add an endpoint and its lane."""
        values = columns.endpoint_values(endpoint)
        if connection.execute(columns.CREATE_ENDPOINT, values).rowcount == 0:
            return  # a repeat
        connection.execute(sql.CREATE_LANE, columns.lane_values(endpoint))
        note_audit(connection, audit)
        write_change(connection, endpoint.id, kind="endpoint", now=now)

    @on_writer
    def update_endpoint(
        self,
        connection: sqlite3.Connection,
        endpoint: Endpoint,
        *,
        was: float,
        now: float,
        announce: bool = False,
        audit: AuditEntry | None = None,
    ) -> bool:
        """Replace the endpoint that was read with `updated_at = was`; False if it is gone or changed meanwhile."""
        values = columns.endpoint_values(endpoint) | {"was": was}
        if connection.execute(columns.UPDATE_ENDPOINT, values).rowcount == 0:
            return False
        connection.execute(sql.PAUSE_LANE, columns.lane_values(endpoint) | {"now": now})
        if announce and not endpoint.enabled:
            connection.execute(sql.ANNOUNCE_DISABLED, {"id": endpoint.id, "now": now})
        note_audit(connection, audit)
        write_change(connection, endpoint.id, kind="endpoint", now=now)
        return True

    @on_writer
    def delete_endpoint(
        self,
        connection: sqlite3.Connection,
        endpoint: EndpointId,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> bool:
        """Delete an endpoint, keeping its lane as a paused tombstone."""
        if connection.execute(sql.DELETE_ENDPOINT, {"id": endpoint}).rowcount == 0:
            return False
        connection.execute(sql.DELETE_LANE, {"id": endpoint})
        note_audit(connection, audit)
        write_change(connection, endpoint, kind="endpoint", now=now)
        return True

    @on_writer
    def reset_circuit(
        self,
        connection: sqlite3.Connection,
        endpoint: EndpointId,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> bool:
        """Ask the lane's owner to close its circuit; a free lane is made ready to be taken. False without a lane."""
        if connection.execute(sql.RESET_LANE, {"id": endpoint, "now": now}).rowcount == 0:
            return False
        note_audit(connection, audit)
        write_change(connection, endpoint, kind="reset", now=now)
        return True

    @on_lister
    def catalogue(self, connection: sqlite3.Connection) -> EndpointSnapshot:
        """All endpoints and the change number they include, in one snapshot."""
        connection.execute("BEGIN")  # both reads in one snapshot
        try:
            (n,) = connection.execute(sql.CATALOGUE_NUMBER).fetchone()
            endpoints = read_endpoints(connection, sql.CATALOGUE_ENDPOINTS, {})
        finally:
            connection.execute("COMMIT")
        return EndpointSnapshot(n, tuple(endpoints))

    @on_lister
    def endpoints_by_id(self, connection: sqlite3.Connection, ids: Sequence[EndpointId]) -> list[Endpoint]:
        """The ones of these that exist."""
        return read_endpoints(connection, sql.ENDPOINTS_BY_ID, {"ids": packed(ids)})

    @on_lister
    def list_endpoints(
        self,
        connection: sqlite3.Connection,
        *,
        account: str | None,
        enabled: bool | None,
        after: EndpointId | None,
        limit: int,
    ) -> list[Endpoint]:
        """Newest first, from below the id `after`."""
        statement = sql.LIST_ENDPOINTS if account is None else sql.LIST_ENDPOINTS_OF_ACCOUNT
        values = {"account": account, "enabled": enabled, "before": after or ABOVE_ALL_IDS, "limit": limit}
        return read_endpoints(connection, statement, values)


def read_endpoints(connection: sqlite3.Connection, statement: str, values: dict[str, Any]) -> list[Endpoint]:
    """The endpoints that the statement finds; a row without an id is skipped."""
    rows = connection.execute(statement, values).fetchall()
    return [endpoint for row in rows if (endpoint := columns.read_endpoint(row)) is not None]
