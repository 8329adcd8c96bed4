"""Keeps the secret of an installation in PostgreSQL."""

from hookline.store.postgres.driver.links import Links

KEEP = "INSERT INTO installation (one, secret) VALUES (true, $1) ON CONFLICT DO NOTHING"
READ = "SELECT secret FROM installation"


class PostgresInstallation:
    """The contract's verb about the installation."""

    _desk: Links

    async def installation_secret(self, fresh: bytes) -> bytes:
        """See the contract."""
        found = await self._desk.fetch(READ)
        if not found:
            await self._desk.fetch(KEEP, fresh)
            found = await self._desk.fetch(READ)  # another process may have been faster
        secret: bytes = found[0]["secret"]
        return secret
