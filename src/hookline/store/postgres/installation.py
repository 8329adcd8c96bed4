"""Keeps what belongs to a whole installation in PostgreSQL: its secret and its accounts' settings."""

import msgspec

from hookline.model import Account, Notify
from hookline.store.postgres.driver.sessions import PostgresSessions

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
READ_ACCOUNT = "SELECT id, notify, date_part('epoch', updated_at) AS updated_at FROM accounts WHERE id = $1"


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

    async def put_account(self, account: Account, *, now: float) -> None:
        """See the contract."""
        await self._general.fetch(PUT_ACCOUNT, account.id, msgspec.json.encode(account.notify).decode(), now)

    async def account(self, id: str) -> Account | None:
        """See the contract."""
        for row in await self._general.fetch(READ_ACCOUNT, id):
            notify = msgspec.json.decode(row["notify"], type=Notify)
            return Account(id=row["id"], notify=notify, updated_at=row["updated_at"])
        return None
