"""Keeps API keys in an SQLite file."""

import sqlite3
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from hookline.model import Key, KeyId, Scope
from hookline.store.contract.keys import CHANGED_KEYS, ChangedKey
from hookline.store.sqlite.driver.writer import Work
from hookline.store.sqlite.rows import ABOVE_ALL_IDS

T = TypeVar("T")

_COLUMNS = "id, digest, hint, name, scopes, account, created_at, revoked_at"
_NEXT = "(SELECT coalesce(max(n), 0) + 1 FROM keys)"

CREATE_KEY = f"""
INSERT INTO keys (n, {_COLUMNS})
VALUES ({_NEXT}, :id, :digest, :hint, :name, :scopes, :account, :created_at, :revoked_at)
ON CONFLICT (id) DO NOTHING
"""
ANY_KEY = "SELECT EXISTS (SELECT 1 FROM keys WHERE id <> :id)"
REVOKE_KEY = f"UPDATE keys SET revoked_at = :now, n = {_NEXT} WHERE id = :id AND revoked_at IS NULL"
READ_KEY = f"SELECT {_COLUMNS} FROM keys WHERE id = :id"
LIST_KEYS = f"SELECT {_COLUMNS} FROM keys WHERE id < :before ORDER BY id DESC LIMIT :limit"
READ_CHANGED_KEYS = f"SELECT n, {_COLUMNS} FROM keys WHERE n > :after ORDER BY n LIMIT :limit"

_SCOPES = msgspec.json.Decoder(tuple[Scope, ...])


class Connected(Protocol):
    """A store that can run work on its connections."""

    async def _write(self, work: Work[T]) -> T: ...

    async def _load(self, work: Work[T]) -> T: ...

    async def _read(self, work: Work[T]) -> T: ...


class SqliteKeys:
    """The contract's verbs about keys."""

    async def create_key(self: Connected, key: Key) -> None:
        """Add a key."""
        await self._write(partial(_create, key=key))

    async def create_first_key(self: Connected, key: Key) -> bool:
        """Add a key if there has never been one; False when there is one, revoked or not."""
        return await self._write(partial(_create_first, key=key))

    async def revoke_key(self: Connected, key: KeyId, *, now: float) -> bool:
        """Revoke a key for good; a revoked one stays as it is. False when there is none."""
        return await self._write(partial(_revoke, key=key, now=now))

    async def key(self: Connected, key: KeyId) -> Key | None:
        """One key, revoked or not."""
        return await self._read(partial(_one, key=key))

    async def list_keys(self: Connected, *, after: KeyId | None, limit: int) -> list[Key]:
        """Newest first, from below the id `after`, revoked ones too."""
        return await self._read(partial(_list, after=after, limit=limit))

    async def changed_keys(self: Connected, *, after: int) -> list[ChangedKey]:
        """Keys created or revoked after the change numbered `after`, in that order.

        Not on the connection of the lists, which may take long: every API call depends on this.
        """
        return await self._load(partial(_changed, after=after))


def _create(connection: sqlite3.Connection, key: Key) -> None:
    connection.execute(CREATE_KEY, _values(key))


def _create_first(connection: sqlite3.Connection, key: Key) -> bool:
    (exists,) = connection.execute(ANY_KEY, {"id": key.id}).fetchone()
    if exists:
        return False
    connection.execute(CREATE_KEY, _values(key))
    return True


def _revoke(connection: sqlite3.Connection, key: KeyId, *, now: float) -> bool:
    connection.execute(REVOKE_KEY, {"id": key, "now": now})
    return _one(connection, key) is not None


def _one(connection: sqlite3.Connection, key: KeyId) -> Key | None:
    row = connection.execute(READ_KEY, {"id": key}).fetchone()
    return None if row is None else _read(row)


def _list(connection: sqlite3.Connection, *, after: KeyId | None, limit: int) -> list[Key]:
    values = {"before": after or ABOVE_ALL_IDS, "limit": limit}
    return [_read(row) for row in connection.execute(LIST_KEYS, values)]


def _changed(connection: sqlite3.Connection, *, after: int) -> list[ChangedKey]:
    rows = connection.execute(READ_CHANGED_KEYS, {"after": after, "limit": CHANGED_KEYS}).fetchall()
    return [ChangedKey(n, _read(row)) for n, *row in rows]


def _values(key: Key) -> dict[str, Any]:
    return {**msgspec.structs.asdict(key), "scopes": msgspec.json.encode(key.scopes).decode()}


def _read(row: Any) -> Key:
    id, digest, hint, name, scopes, account, created_at, revoked_at = row
    return Key(
        id=id,
        digest=digest,
        hint=hint,
        name=name,
        scopes=_SCOPES.decode(scopes),
        account=account,
        created_at=created_at,
        revoked_at=revoked_at,
    )
