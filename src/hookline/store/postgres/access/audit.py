"""Keeps the audit trail in PostgreSQL."""

from typing import Any

import msgspec

from hookline.model import Actor, ActorKind, AuditEntry, AuditId, Via
from hookline.store.contract.access.audit import AuditFilter
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction
from hookline.store.postgres.driver.values import printable
from hookline.store.postgres.lists.conditions import PostgresConditions

WRITE_AUDIT = """
INSERT INTO audit (id, at, account, action, subject_kind, subject, actor, actor_key, actor_name, actor_hint,
  actor_account, via, address, request_id, changes, is_cut)
VALUES ($1, to_timestamp($2), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
ON CONFLICT (id) DO NOTHING
"""
LIST_AUDIT = """
SELECT id, date_part('epoch', at) AS at, account, action, subject_kind, subject, actor, actor_key, actor_name,
  actor_hint, actor_account, via, address, request_id, changes, is_cut
FROM audit WHERE {conditions} ORDER BY id DESC LIMIT {limit}
"""
PRUNE_AUDIT = """
DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < to_timestamp($1) ORDER BY at LIMIT $2) RETURNING id
"""

_CHANGES = msgspec.json.Decoder(dict[str, Any])


class PostgresAudit(PostgresSessions):
    """The contract's verbs about the audit trail."""

    @in_transaction
    async def write_audit(self, connection: Connection, entry: AuditEntry) -> None:
        """See the contract."""
        await note_audit(connection, entry)

    async def list_audit(self, filter: AuditFilter, *, after: AuditId | None, limit: int) -> list[AuditEntry]:
        """See the contract."""
        asked = PostgresConditions()
        asked.add("account = {}", filter.account, "text")
        asked.add("action = {}", filter.action, "text")
        asked.add("subject = {}", filter.subject, "text")
        asked.add("actor_key = {}", filter.actor_key, "uuid")
        asked.add("actor_account = {}", filter.actor_account, "text")
        asked.add("at >= {}", filter.since, "float8")
        asked.add("at < {}", filter.until, "float8")
        asked.add("id < {}", after, "uuid")
        most = asked.bind(limit, "int")
        statement = LIST_AUDIT.format(conditions=asked.also(), limit=most)
        return [_read(row) for row in await self._lists.fetch(statement, *asked.values)]

    async def prune_audit(self, *, before: float, limit: int) -> int:
        """See the contract."""
        return len(await self._prune.fetch(PRUNE_AUDIT, before, limit))


async def note_audit(connection: Connection, entry: AuditEntry | None) -> None:
    """Write the entry in the transaction of what it tells of; None: nothing is told."""
    if entry is None:
        return
    actor = entry.actor
    await connection.fetch(
        WRITE_AUDIT,
        entry.id,
        entry.at,
        entry.account,
        str(entry.action),
        entry.subject_kind,
        printable(entry.subject),
        actor.kind.value,
        actor.key_id,
        printable(actor.name),
        actor.hint,
        actor.account,
        entry.via.value,
        entry.address,
        entry.request_id,
        msgspec.json.encode(entry.changes).decode(),
        entry.is_cut,
    )


def _read(row: Any) -> AuditEntry:
    return AuditEntry(
        id=row["id"],
        at=row["at"],
        account=row["account"],
        action=row["action"],
        subject_kind=row["subject_kind"],
        subject=row["subject"],
        actor=Actor(
            kind=ActorKind(row["actor"]),
            key_id=row["actor_key"],
            name=row["actor_name"],
            hint=row["actor_hint"],
            account=row["actor_account"],
        ),
        via=Via(row["via"]),
        address=row["address"],
        request_id=row["request_id"],
        changes=_CHANGES.decode(row["changes"]),
        is_cut=row["is_cut"],
    )
