"""Keeps API keys in an SQLite file."""

import sqlite3
from typing import Any

import msgspec

from hookline.model import AuditEntry, Key, KeyId
from hookline.store import spoiled_rows
from hookline.store.contract.access.keys import CHANGED_KEYS, WORTHLESS, ChangedKey
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_loader, on_writer
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS

_COLUMNS = ", ".join(Key.__struct_fields__)
_NEXT = "(SELECT coalesce(max(n), 0) + 1 FROM keys WHERE n < 9e18)"  # a text would be above all numbers

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


class SqliteKeys(SqliteConnections):
    """The contract's verbs about keys."""

    @on_writer
    def create_key(
        self, connection: sqlite3.Connection, key: Key, *, audit: AuditEntry | None = None
    ) -> None:
        """Add a key."""
        connection.execute(CREATE_KEY, _values(key))
        note_audit(connection, audit)

    @on_writer
    def create_first_key(
        self, connection: sqlite3.Connection, key: Key, *, audit: AuditEntry | None = None
    ) -> bool:
        """Add a key if there has never been one; False when there is one, revoked or not."""
        (exists,) = connection.execute(ANY_KEY, {"id": key.id}).fetchone()
        if exists:
            return False
        connection.execute(CREATE_KEY, _values(key))
        note_audit(connection, audit)
        return True

    @on_writer
    def revoke_key(
        self, connection: sqlite3.Connection, key: KeyId, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """Revoke a key for good; a revoked one stays as it is. False when there is none."""
        if connection.execute(REVOKE_KEY, {"id": key, "now": now}).rowcount:
            note_audit(connection, audit)
        return _one(connection, key) is not None

    @on_lister
    def key(self, connection: sqlite3.Connection, key: KeyId) -> Key | None:
        """One key, revoked or not."""
        return _one(connection, key)

    @on_lister
    def list_keys(self, connection: sqlite3.Connection, *, after: KeyId | None, limit: int) -> list[Key]:
        """Newest first, from below the id `after`, revoked ones too."""
        values = {"before": after or ABOVE_ALL_IDS, "limit": limit}
        return spoiled_rows.read_all(read_key(row) for row in connection.execute(LIST_KEYS, values))

    @on_loader
    def changed_keys(self, connection: sqlite3.Connection, *, after: int) -> list[ChangedKey]:
        """Keys created or revoked after the change numbered `after`, in that order.

        Not on the connection of the lists, which may take long: every API call depends on this.
        """
        rows = connection.execute(READ_CHANGED_KEYS, {"after": after, "limit": CHANGED_KEYS}).fetchall()
        read = [(n, read_key(row)) for n, *row in rows]
        return [ChangedKey(n, key) for n, key in read if key is not None and isinstance(n, int)]


def _one(connection: sqlite3.Connection, key: KeyId) -> Key | None:
    row = connection.execute(READ_KEY, {"id": key}).fetchone()
    return None if row is None else read_key(row)


def _values(key: Key) -> dict[str, Any]:
    return {**msgspec.structs.asdict(key), "scopes": msgspec.json.encode(key.scopes).decode()}


def read_key(row: Any) -> Key | None:
    values = dict(zip(Key.__struct_fields__, row, strict=True))
    values["scopes"] = spoiled_rows.decoded(values["scopes"])
    return spoiled_rows.read(Key, values, WORTHLESS)
