"""Keeps event types, accounts and the mark of sealed secrets in PostgreSQL."""

from functools import partial
from typing import Any

import msgspec

from hookline.model import Account, EventType, Notify
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.postgres import sql
from hookline.store.postgres.driver.links import Connection, Links

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
PUT_ACCOUNT = """
INSERT INTO accounts (id, notify, updated_at) VALUES ($1, $2, to_timestamp($3))
ON CONFLICT (id) DO UPDATE SET notify = excluded.notify, updated_at = excluded.updated_at
"""
READ_ACCOUNT = "SELECT id, notify, date_part('epoch', updated_at) AS updated_at FROM accounts WHERE id = $1"
MARK_SEALED = """
INSERT INTO seal (mark) VALUES ($1)
ON CONFLICT ((true)) DO UPDATE SET mark = CASE WHEN seal.mark = $2 THEN excluded.mark ELSE seal.mark END
RETURNING mark
"""


class PostgresDescribed:
    """The verbs of `EventTypeStore`, on the sessions of the store."""

    _desk: Links

    async def put_event_type(self, event_type: EventType, *, now: float) -> EventType:
        """See the contract."""
        return await self._desk.transaction(partial(_put_event_type, event_type=event_type, now=now))

    async def delete_event_type(self, name: str, *, now: float) -> bool:
        """See the contract."""
        return await self._desk.transaction(partial(_delete_event_type, name=name, now=now))

    async def event_type(self, name: str) -> EventType | None:
        """See the contract."""
        found = await self._desk.fetch(READ_EVENT_TYPE, name)
        return EventType(**found[0]) if found else None

    async def event_types(self, *, after: str = "", limit: int | None = None) -> list[EventType]:
        """See the contract."""
        return [EventType(**row) for row in await self._desk.fetch(EVENT_TYPES, after, limit)]

    async def put_account(self, account: Account, *, now: float) -> None:
        """See the contract."""
        await self._desk.fetch(PUT_ACCOUNT, account.id, msgspec.json.encode(account.notify).decode(), now)

    async def account(self, id: str) -> Account | None:
        """See the contract."""
        found = await self._desk.fetch(READ_ACCOUNT, id)
        return _account(found[0]) if found else None

    async def mark_sealed(self, mark: str, *, was: str | None = None) -> str:
        """See the contract."""
        [[kept]] = await self._desk.fetch(MARK_SEALED, mark, was)
        return str(kept)


async def _put_event_type(connection: Connection, event_type: EventType, *, now: float) -> EventType:
    [row] = await connection.fetch(PUT_EVENT_TYPE, *msgspec.structs.astuple(event_type))
    await connection.fetch(sql.WRITE_CHANGE, NO_ENDPOINT, "event_type", now)
    return EventType(**row)


async def _delete_event_type(connection: Connection, name: str, *, now: float) -> bool:
    if not await connection.fetch(DELETE_EVENT_TYPE, name):
        return False
    await connection.fetch(sql.WRITE_CHANGE, NO_ENDPOINT, "event_type", now)
    return True


def _account(row: Any) -> Account:
    notify = msgspec.json.decode(row["notify"], type=Notify)
    return Account(id=row["id"], notify=notify, updated_at=row["updated_at"])
