"""Keeps the descriptions of event types in SQLite."""

import sqlite3

import msgspec

from hookline.model import AuditEntry, EventType
from hookline.store import spoiled_rows
from hookline.store.contract.event_types import UNREADABLE_TYPE
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer
from hookline.store.sqlite.workers import write_change

PUT_EVENT_TYPE = """
INSERT INTO event_types (name, description, schema, created_at, updated_at)
VALUES (:name, :description, :schema, :created_at, :updated_at)
ON CONFLICT (name) DO UPDATE SET
  description = excluded.description, schema = excluded.schema, updated_at = excluded.updated_at
RETURNING name, description, schema, created_at, updated_at
"""
DELETE_EVENT_TYPE = "DELETE FROM event_types WHERE name = :name"
READ_EVENT_TYPE = (
    "SELECT name, description, schema, created_at, updated_at FROM event_types WHERE name = :name"
)
EVENT_TYPES = """
SELECT name, description, schema, created_at, updated_at FROM event_types
WHERE name > :after ORDER BY name LIMIT :limit
"""


class SqliteEventTypes(SqliteConnections):
    """The contract's verbs about event types."""

    @on_writer
    def put_event_type(
        self,
        connection: sqlite3.Connection,
        event_type: EventType,
        *,
        now: float,
        audit: AuditEntry | None = None,
    ) -> EventType:
        """Create or replace a type's description."""
        values = msgspec.structs.asdict(event_type)
        [row] = connection.execute(PUT_EVENT_TYPE, values).fetchall()
        note_audit(connection, audit)
        write_change(connection, NO_ENDPOINT, kind="event_type", now=now)
        return read_event_type(row) or event_type

    @on_writer
    def delete_event_type(
        self, connection: sqlite3.Connection, name: str, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """Delete a type's description. False when there was none."""
        if connection.execute(DELETE_EVENT_TYPE, {"name": name}).rowcount == 0:
            return False
        note_audit(connection, audit)
        write_change(connection, NO_ENDPOINT, kind="event_type", now=now)
        return True

    @on_lister
    def event_type(self, connection: sqlite3.Connection, name: str) -> EventType | None:
        """The description of one type."""
        row = connection.execute(READ_EVENT_TYPE, {"name": name}).fetchone()
        return None if row is None else read_event_type(row)

    @on_lister
    def event_types(
        self, connection: sqlite3.Connection, *, after: str = "", limit: int | None = None
    ) -> list[EventType]:
        """By name, from above `after`; all of them without a limit."""
        values = {"after": after, "limit": -1 if limit is None else limit}
        return spoiled_rows.read_all(map(read_event_type, connection.execute(EVENT_TYPES, values)))


def read_event_type(row: Row) -> EventType | None:
    values = dict(zip(EventType.__struct_fields__, row, strict=True))
    return spoiled_rows.read(EventType, values, UNREADABLE_TYPE, names="name")
