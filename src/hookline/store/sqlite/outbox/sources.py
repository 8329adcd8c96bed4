"""Notes in an SQLite file what is known of the sources of rows."""

import sqlite3

import msgspec

from hookline.model import AuditEntry
from hookline.store.contract.outbox import SourceRow
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer

# max() of two values is NULL if one of them is.
NOTE_SOURCE = """
INSERT INTO outbox_sources (name, clear_at, looked_at, waiting, oldest_at, trouble)
VALUES (:name, :clear_at, :looked_at, :waiting, :oldest_at, :trouble)
ON CONFLICT (name) DO UPDATE SET
  clear_at = coalesce(max(clear_at, excluded.clear_at), clear_at, excluded.clear_at),
  looked_at = coalesce(max(looked_at, excluded.looked_at), looked_at, excluded.looked_at),
  waiting = excluded.waiting, oldest_at = excluded.oldest_at, trouble = excluded.trouble
"""
READ_SOURCES = (
    "SELECT name, clear_at, looked_at, waiting, oldest_at, trouble FROM outbox_sources ORDER BY name"
)
FORGET_SOURCE = "DELETE FROM outbox_sources WHERE name = :name"


class SqliteSources(SqliteConnections):
    """The contract's verbs about sources."""

    @on_writer
    def note_source(self, connection: sqlite3.Connection, source: SourceRow) -> None:
        """Note what is known of a source. `clear_at` and `looked_at` never go back, nor become unknown."""
        connection.execute(NOTE_SOURCE, msgspec.structs.asdict(source))

    @on_lister
    def outbox_sources(self, connection: sqlite3.Connection) -> list[SourceRow]:
        """All sources, by name. Nothing is pruned that was created after the earliest `clear_at` of them."""
        return [SourceRow(*row) for row in connection.execute(READ_SOURCES)]

    @on_writer
    def forget_source(
        self, connection: sqlite3.Connection, name: str, *, audit: AuditEntry | None = None
    ) -> bool:
        """Forget a source that is no more; False: there is none of that name."""
        is_gone = connection.execute(FORGET_SOURCE, {"name": name}).rowcount == 1
        note_audit(connection, audit if is_gone else None)
        return is_gone
