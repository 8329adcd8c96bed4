"""Keeps the secret of an installation in an SQLite file."""

import sqlite3
from functools import partial

from hookline.store.sqlite.keys import Connected

KEEP = "INSERT INTO installation (one, secret) VALUES (1, :secret) ON CONFLICT DO NOTHING"
READ = "SELECT secret FROM installation"


class SqliteInstallation:
    """The contract's verb about the installation."""

    async def installation_secret(self: Connected, fresh: bytes) -> bytes:
        """The secret that all processes on this database share; `fresh` becomes it if there was none."""
        return await self._write(partial(_secret, fresh=fresh))


def _secret(connection: sqlite3.Connection, *, fresh: bytes) -> bytes:
    connection.execute(KEEP, {"secret": fresh})
    (secret,) = connection.execute(READ).fetchone()
    return bytes(secret)
