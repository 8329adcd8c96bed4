"""Keeps what belongs to a whole installation in PostgreSQL: its secret and its accounts' settings."""

from typing import Any

import msgspec

from hookline.model import Account, AuditEntry
from hookline.store.account_row import notify_of
from hookline.store.contract.workers import NO_ENDPOINT
from hookline.store.postgres import sql
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction

KEEP_INSTALLATION = "INSERT INTO installation (one, secret) VALUES (true, $1) ON CONFLICT DO NOTHING"
READ_INSTALLATION = "SELECT secret FROM installation"
MARK_SEALED = """
INSERT INTO seal (mark) VALUES ($1)
ON CONFLICT ((true)) DO UPDATE SET mark = CASE WHEN seal.mark = $2 THEN excluded.mark ELSE seal.mark END
RETURNING mark
"""
PUT_ACCOUNT = """
INSERT INTO accounts (id, notify, updated_at) VALUES ($1, $2, to_timestamp($3))
ON CONFLICT (id) DO UPDATE SET notify = excluded.notify, updated_at = excluded.updated_at
"""
REPLACE_ACCOUNT = """
UPDATE accounts SET notify = $2, updated_at = to_timestamp($3)
WHERE id = $1 AND updated_at = to_timestamp($4) RETURNING id
"""
_ACCOUNTS = "SELECT id, notify, date_part('epoch', updated_at) AS updated_at FROM accounts"
READ_ACCOUNT = f"{_ACCOUNTS} WHERE id = $1"
READ_ACCOUNTS = f'{_ACCOUNTS} WHERE id COLLATE "C" > $1 ORDER BY id COLLATE "C" LIMIT $2'


class PostgresInstallation(PostgresSessions):
    """The contract's verbs about the installation."""

    async def installation_secret(self, fresh: bytes) -> bytes:
        """See the contract."""
        found = await self._general.fetch(READ_INSTALLATION)
        if not found:
            await self._general.fetch(KEEP_INSTALLATION, fresh)
            found = await self._general.fetch(READ_INSTALLATION)  # another process may have been faster
        secret: bytes = found[0]["secret"]
        return secret

    async def mark_sealed(self, mark: str, *, was: str | None = None) -> str:
        """See the contract."""
        [[kept]] = await self._general.fetch(MARK_SEALED, mark, was)
        return str(kept)

    @in_transaction
    async def put_account(
        self,
        connection: Connection,
        account: Account,
        *,
        now: float,
        was: float | None = None,
        audit: AuditEntry | None = None,
    ) -> bool:
        """See the contract."""
        values = (account.id, msgspec.json.encode(account.notify).decode(), now)
        if was is None:
            await connection.fetch(PUT_ACCOUNT, *values)
        elif not await connection.fetch(REPLACE_ACCOUNT, *values, was):
            return False
        await note_audit(connection, audit)
        await connection.fetch(sql.WRITE_CHANGE, NO_ENDPOINT, "account", now)
        return True

    async def account(self, id: str) -> Account | None:
        """See the contract."""
        found = await self._general.fetch(READ_ACCOUNT, id)
        return read_account(found[0]) if found else None

    async def accounts(self, *, after: str = "", limit: int) -> list[Account]:
        """See the contract."""
        return [read_account(row) for row in await self._general.fetch(READ_ACCOUNTS, after, limit)]


def read_account(row: Any) -> Account:
    return Account(
        id=row["id"], notify=notify_of(row["notify"], account=row["id"]), updated_at=row["updated_at"]
    )
