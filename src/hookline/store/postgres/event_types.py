"""Keeps the descriptions of event types in PostgreSQL."""

from typing import Any

import msgspec

from hookline.model import AuditEntry, EventType
from hookline.store import spoiled_rows
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.postgres import sql
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction

_COLUMNS = """name, description, schema,
  date_part('epoch', created_at) AS created_at, date_part('epoch', updated_at) AS updated_at"""

PUT_EVENT_TYPE = f"""
INSERT INTO event_types (name, description, schema, created_at, updated_at)
VALUES ($1, $2, $3, to_timestamp($4), to_timestamp($5))
ON CONFLICT (name) DO UPDATE SET
  description = excluded.description, schema = excluded.schema, updated_at = excluded.updated_at
RETURNING {_COLUMNS}
"""
DELETE_EVENT_TYPE = "DELETE FROM event_types WHERE name = $1 RETURNING name"
READ_EVENT_TYPE = f"SELECT {_COLUMNS} FROM event_types WHERE name = $1"
# Differs from sqlite: names are sorted by their bytes only with this collation.
EVENT_TYPES = f"""
SELECT {_COLUMNS} FROM event_types WHERE name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2
"""


class PostgresEventTypes(PostgresSessions):
    """The contract's verbs about event types."""

    @in_transaction
    async def put_event_type(
        self, connection: Connection, event_type: EventType, *, now: float, audit: AuditEntry | None = None
    ) -> EventType:
        """See the contract."""
        [row] = await connection.fetch(PUT_EVENT_TYPE, *msgspec.structs.astuple(event_type))
        await note_audit(connection, audit)
        await connection.fetch(sql.WRITE_CHANGE, NO_ENDPOINT, "event_type", now)
        return read_event_type(row) or event_type

    @in_transaction
    async def delete_event_type(
        self, connection: Connection, name: str, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """See the contract."""
        if not await connection.fetch(DELETE_EVENT_TYPE, name):
            return False
        await note_audit(connection, audit)
        await connection.fetch(sql.WRITE_CHANGE, NO_ENDPOINT, "event_type", now)
        return True

    async def event_type(self, name: str) -> EventType | None:
        """See the contract."""
        found = await self._general.fetch(READ_EVENT_TYPE, name)
        return read_event_type(found[0]) if found else None

    async def event_types(self, *, after: str = "", limit: int | None = None) -> list[EventType]:
        """See the contract."""
        found = await self._general.fetch(EVENT_TYPES, after, limit)
        return spoiled_rows.read_all(map(read_event_type, found))


def read_event_type(row: Any) -> EventType | None:
    return spoiled_rows.read(EventType, dict(row), names="name")
