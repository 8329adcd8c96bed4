"""Keeps refused rows of outboxes in an SQLite file."""

import sqlite3
from collections.abc import Sequence

import msgspec

from hookline.model import AuditEntry, EventId
from hookline.store.contract.outbox import RefusedCount, RefusedFilter, RefusedRow, WaitingRow
from hookline.store.sqlite.access.audit import note_audit
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer
from hookline.store.sqlite.driver.values import json_text
from hookline.store.sqlite.lists.conditions import SqliteConditions

# Differs from postgres: one row at a time. Only repeats ask, which a crash leaves.
IS_CONFLICT = """
SELECT 1 FROM events WHERE id = :id AND NOT (account = :account AND type = :type AND payload = :payload
  AND coalesce(hops, 0) = :hops AND idempotency_key IS :idempotency_key AND deliver_at IS :deliver_at)
"""
_WRITTEN = """source, seq, id, at, deliver_at, account, type, idempotency_key, hops, payload, refused_at, code, detail"""
REFUSE = f"""
INSERT INTO outbox_refused ({_WRITTEN}) VALUES (:source, :seq, :id, :at, :deliver_at, :account, :type,
  :idempotency_key, :hops, :payload, :refused_at, :code, :detail)
ON CONFLICT (source, seq, id) DO NOTHING
"""
_NONE = "x''"
_LISTED = """n, source, seq, id, at, deliver_at, account, type, idempotency_key, hops, {payload},
  length(payload), refused_at, code, detail"""
LIST_REFUSED = f"SELECT {_LISTED.format(payload=_NONE)} FROM outbox_refused WHERE {{conditions}} ORDER BY n DESC LIMIT :limit"
READ_REFUSED = f"SELECT {_LISTED.format(payload='payload')} FROM outbox_refused WHERE n = :n"
COUNT_REFUSED = """
SELECT account, code, count(*), min(refused_at) FROM outbox_refused GROUP BY account, code ORDER BY account, code
"""
REFUSE_AGAIN = "UPDATE outbox_refused SET code = :code, detail = :detail, refused_at = :now WHERE n = :n"
DISCARD_REFUSED = "DELETE FROM outbox_refused WHERE n IN (SELECT value FROM json_each(:numbers))"

_FIELDS = (
    "n",
    "source",
    "seq",
    "id",
    "at",
    "deliver_at",
    "account",
    "type",
    "idempotency_key",
    "hops",
    "payload",
    "payload_bytes",
    "refused_at",
    "code",
    "detail",
)


class SqliteRefused(SqliteConnections):
    """The contract's verbs about refused rows."""

    @on_lister
    def outbox_conflicts(
        self, connection: sqlite3.Connection, rows: Sequence[WaitingRow]
    ) -> frozenset[EventId]:
        """The ids among these that name a stored event with other content."""
        return frozenset(
            row.id for row in rows if connection.execute(IS_CONFLICT, msgspec.structs.asdict(row)).fetchone()
        )

    @on_writer
    def refuse(self, connection: sqlite3.Connection, rows: Sequence[RefusedRow]) -> int:
        """Keep the refused rows; how many are new. A row that is there already (source, seq and id) stays as it is.

        No key has to be given back: ACCEPT writes keys after the events.
        """
        return sum([connection.execute(REFUSE, msgspec.structs.asdict(row)).rowcount for row in rows])

    @on_lister
    def refused_rows(
        self, connection: sqlite3.Connection, filter: RefusedFilter, *, after: int | None, limit: int
    ) -> list[RefusedRow]:
        """Newest first, from below the number `after`, without their payloads."""
        asked = SqliteConditions()
        asked.add("account = :account", "account", filter.account)
        asked.add("source = :source", "source", filter.source)
        asked.add("code = :code", "code", filter.code)
        asked.add("type = :type", "type", filter.type)
        asked.add("id = :id", "id", filter.id)
        asked.add("n < :after", "after", after)
        asked.values["limit"] = limit
        found = connection.execute(LIST_REFUSED.format(conditions=asked.also()), asked.values)
        return [RefusedRow(**dict(zip(_FIELDS, row, strict=True))) for row in found]

    @on_lister
    def refused_row(self, connection: sqlite3.Connection, n: int) -> RefusedRow | None:
        """The refused row with its payload."""
        row = connection.execute(READ_REFUSED, {"n": n}).fetchone()
        return None if row is None else RefusedRow(**dict(zip(_FIELDS, row, strict=True)))

    @on_lister
    def count_refused(self, connection: sqlite3.Connection) -> list[RefusedCount]:
        """How many refused rows there are, by account and code."""
        return [RefusedCount(*row) for row in connection.execute(COUNT_REFUSED)]

    @on_writer
    def refuse_again(
        self, connection: sqlite3.Connection, n: int, *, code: str, detail: str, now: float
    ) -> None:
        """A refused row was tried again and refused."""
        connection.execute(REFUSE_AGAIN, {"n": n, "code": code, "detail": detail, "now": now})

    @on_writer
    def discard_refused(
        self, connection: sqlite3.Connection, numbers: Sequence[int], *, audit: AuditEntry | None = None
    ) -> int:
        """Delete the refused rows with these numbers; how many there were."""
        gone = connection.execute(DISCARD_REFUSED, {"numbers": json_text(list(numbers))}).rowcount
        note_audit(connection, audit if gone else None)
        return gone
