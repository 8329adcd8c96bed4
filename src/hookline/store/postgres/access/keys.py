"""Keeps API keys in PostgreSQL."""

from typing import Any

from hookline.model import AuditEntry, Key, KeyId
from hookline.store import spoiled_rows
from hookline.store.contract.access.keys import CHANGED_KEYS, WORTHLESS, ChangedKey
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction

_COLUMNS = """id, digest, hint, name, scopes, account,
  date_part('epoch', created_at) AS created_at, date_part('epoch', revoked_at) AS revoked_at"""
_NEXT = "(SELECT coalesce(max(n), 0) + 1 FROM keys)"

# Differs from sqlite: this lock allows one writer at a time, so that the numbers commit in order. Readers do not wait.
LOCK_KEYS = "LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE"
CREATE_KEY = f"""
INSERT INTO keys (n, id, digest, hint, name, scopes, account, created_at, revoked_at)
VALUES ({_NEXT}, $1, $2, $3, $4, $5, $6, to_timestamp($7), to_timestamp($8))
ON CONFLICT (id) DO NOTHING
"""
ANY_KEY = "SELECT EXISTS (SELECT FROM keys WHERE id <> $1)"
REVOKE_KEY = f"""
UPDATE keys SET revoked_at = to_timestamp($2), n = {_NEXT} WHERE id = $1 AND revoked_at IS NULL RETURNING id
"""
READ_KEY = f"SELECT {_COLUMNS} FROM keys WHERE id = $1"
LIST_KEYS = f"SELECT {_COLUMNS} FROM keys WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2"
READ_CHANGED_KEYS = f"SELECT n, {_COLUMNS} FROM keys WHERE n > $1 ORDER BY n LIMIT $2"


class PostgresKeys(PostgresSessions):
    """The contract's verbs about keys."""

    @in_transaction
    async def create_key(self, connection: Connection, key: Key, *, audit: AuditEntry | None = None) -> None:
        """See the contract."""
        await connection.execute(LOCK_KEYS)
        await connection.fetch(CREATE_KEY, *_values(key))
        await note_audit(connection, audit)

    @in_transaction
    async def create_first_key(
        self, connection: Connection, key: Key, *, audit: AuditEntry | None = None
    ) -> bool:
        """See the contract."""
        await connection.execute(LOCK_KEYS)
        if await connection.fetchval(ANY_KEY, key.id):
            return False
        await connection.fetch(CREATE_KEY, *_values(key))
        await note_audit(connection, audit)
        return True

    @in_transaction
    async def revoke_key(
        self, connection: Connection, key: KeyId, *, now: float, audit: AuditEntry | None = None
    ) -> bool:
        """See the contract."""
        await connection.execute(LOCK_KEYS)
        if await connection.fetch(REVOKE_KEY, key, now):
            await note_audit(connection, audit)
        return bool(await connection.fetch(READ_KEY, key))

    async def key(self, key: KeyId) -> Key | None:
        """See the contract."""
        found = await self._general.fetch(READ_KEY, key)
        return read_key(found[0]) if found else None

    async def list_keys(self, *, after: KeyId | None, limit: int) -> list[Key]:
        """See the contract."""
        return spoiled_rows.read_all(map(read_key, await self._general.fetch(LIST_KEYS, after, limit)))

    async def changed_keys(self, *, after: int) -> list[ChangedKey]:
        """See the contract. In the session of the pulse, where nothing takes long: every API call depends on this."""
        found = await self._pulse.fetch(READ_CHANGED_KEYS, after, CHANGED_KEYS)
        read = [(row["n"], read_key(row)) for row in found]
        return [ChangedKey(n, key) for n, key in read if key is not None]


def _values(key: Key) -> list[Any]:
    return [
        key.id,
        key.digest,
        key.hint,
        key.name,
        list(key.scopes),
        key.account,
        key.created_at,
        key.revoked_at,
    ]


def read_key(row: Any) -> Key | None:
    return spoiled_rows.read(Key, dict(row), WORTHLESS)
