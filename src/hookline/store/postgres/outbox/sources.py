"""Notes in PostgreSQL what is known of the sources of rows."""

from hookline.model import AuditEntry
from hookline.store.contract.outbox import SourceRow
from hookline.store.postgres.access.audit import note_audit
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction
from hookline.store.postgres.driver.values import printable

NOTE_SOURCE = """
INSERT INTO outbox_sources AS s (name, clear_at, looked_at, waiting, oldest_at, trouble)
VALUES ($1, to_timestamp($2), to_timestamp($3), $4, to_timestamp($5), $6)
ON CONFLICT (name) DO UPDATE SET clear_at = greatest(s.clear_at, excluded.clear_at),
  looked_at = greatest(s.looked_at, excluded.looked_at), waiting = excluded.waiting, oldest_at = excluded.oldest_at,
  trouble = excluded.trouble
"""
READ_SOURCES = """
SELECT name, date_part('epoch', clear_at) AS clear_at, date_part('epoch', looked_at) AS looked_at, waiting,
  date_part('epoch', oldest_at) AS oldest_at, trouble FROM outbox_sources ORDER BY name COLLATE "C"
"""
FORGET_SOURCE = "DELETE FROM outbox_sources WHERE name = $1 RETURNING name"


class PostgresSources(PostgresSessions):
    """The contract's verbs about sources."""

    async def note_source(self, source: SourceRow) -> None:
        """See the contract."""
        await self._general.fetch(
            NOTE_SOURCE,
            source.name,
            source.clear_at,
            source.looked_at,
            source.waiting,
            source.oldest_at,
            None if source.trouble is None else printable(source.trouble),
        )

    async def outbox_sources(self) -> list[SourceRow]:
        """See the contract."""
        return [SourceRow(*row) for row in await self._general.fetch(READ_SOURCES)]

    @in_transaction
    async def forget_source(
        self, connection: Connection, name: str, *, audit: AuditEntry | None = None
    ) -> bool:
        """See the contract."""
        found = await connection.fetch(FORGET_SOURCE, name)
        await note_audit(connection, audit if found else None)
        return bool(found)
