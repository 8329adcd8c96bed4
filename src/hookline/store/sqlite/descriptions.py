"""Keeps event types, accounts and the mark of sealed secrets in SQLite."""

import sqlite3
from functools import partial
from typing import Any, TypeVar

import msgspec

from hookline.model import Account, EventType, Notify
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.writer import Work

T = TypeVar("T")

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
PUT_ACCOUNT = """
INSERT INTO accounts (id, notify, updated_at) VALUES (:id, :notify, :updated_at)
ON CONFLICT (id) DO UPDATE SET notify = excluded.notify, updated_at = excluded.updated_at
"""
READ_ACCOUNT = "SELECT id, notify, updated_at FROM accounts WHERE id = :id"
MARK_SEALED = """
INSERT INTO seal (only, mark) VALUES (1, :mark)
ON CONFLICT (only) DO UPDATE SET mark = iif(seal.mark IS :was, excluded.mark, seal.mark)
RETURNING mark
"""


class SqliteDescribed:
    """The verbs of `EventTypeStore`, on the connections of the store."""

    async def _write(self, work: Work[T]) -> T:
        raise NotImplementedError

    async def _read(self, work: Work[T]) -> T:
        raise NotImplementedError

    async def put_event_type(self, event_type: EventType, *, now: float) -> EventType:
        """Create or replace a type's description."""
        return await self._write(partial(_put_event_type, event_type=event_type, now=now))

    async def delete_event_type(self, name: str, *, now: float) -> bool:
        """Delete a type's description. False when there was none."""
        return await self._write(partial(_delete_event_type, name=name, now=now))

    async def event_type(self, name: str) -> EventType | None:
        """One described type."""
        found = await self._read(partial(_rows, statement=READ_EVENT_TYPE, values={"name": name}))
        return _event_type(found[0]) if found else None

    async def event_types(self, *, after: str = "", limit: int | None = None) -> list[EventType]:
        """By name, from above `after`; all of them without a limit."""
        values = {"after": after, "limit": -1 if limit is None else limit}
        found = await self._read(partial(_rows, statement=EVENT_TYPES, values=values))
        return [_event_type(row) for row in found]

    async def put_account(self, account: Account, *, now: float) -> None:
        """Replace the settings of an account."""
        notify = msgspec.json.encode(account.notify).decode()
        values = {"id": account.id, "notify": notify, "updated_at": now}
        await self._write(partial(_rows, statement=PUT_ACCOUNT, values=values))

    async def account(self, id: str) -> Account | None:
        """The settings of an account."""
        found = await self._read(partial(_rows, statement=READ_ACCOUNT, values={"id": id}))
        for id, notify, updated_at in found:
            return Account(id=id, notify=msgspec.json.decode(notify, type=Notify), updated_at=updated_at)
        return None

    async def mark_sealed(self, mark: str, *, was: str | None = None) -> str:
        """Store the mark if there is none, or if the stored one is `was`; the mark that is stored then."""
        values = {"mark": mark, "was": was}
        [[kept]] = await self._write(partial(_rows, statement=MARK_SEALED, values=values))
        return str(kept)


def _put_event_type(connection: sqlite3.Connection, event_type: EventType, *, now: float) -> EventType:
    values = msgspec.structs.asdict(event_type)
    [row] = connection.execute(PUT_EVENT_TYPE, values).fetchall()
    _note(connection, now=now)
    return _event_type(row)


def _delete_event_type(connection: sqlite3.Connection, name: str, *, now: float) -> bool:
    if connection.execute(DELETE_EVENT_TYPE, {"name": name}).rowcount == 0:
        return False
    _note(connection, now=now)
    return True


def _note(connection: sqlite3.Connection, *, now: float) -> None:
    (n,) = connection.execute(sql.COUNT_CHANGE, {"kind": "event_type"}).fetchone()
    values = {"n": n, "endpoint": NO_ENDPOINT, "kind": "event_type", "now": now}
    connection.execute(sql.WRITE_CHANGE, values)


def _rows(connection: sqlite3.Connection, *, statement: str, values: dict[str, Any]) -> list[Row]:
    return connection.execute(statement, values).fetchall()


def _event_type(row: Row) -> EventType:
    name, description, schema, created_at, updated_at = row
    return EventType(
        name=name, description=description, schema=schema, created_at=created_at, updated_at=updated_at
    )
