"""Keeps the audit trail in an SQLite file."""

import sqlite3
from typing import Any

import msgspec

from hookline.model import Actor, ActorKind, AuditEntry, AuditId, Via
from hookline.store.contract.access.audit import AuditFilter
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer
from hookline.store.sqlite.driver.values import json_text
from hookline.store.sqlite.lists.conditions import SqliteConditions

_COLUMNS = """id, at, account, action, subject_kind, subject, actor, actor_key, actor_name, actor_hint, actor_account,
  via, address, request_id, changes, is_cut"""

WRITE_AUDIT = f"""
INSERT INTO audit ({_COLUMNS}) VALUES (:id, :at, :account, :action, :subject_kind, :subject, :actor, :actor_key,
  :actor_name, :actor_hint, :actor_account, :via, :address, :request_id, :changes, :is_cut)
ON CONFLICT (id) DO NOTHING
"""
LIST_AUDIT = f"SELECT {_COLUMNS} FROM audit WHERE {{conditions}} ORDER BY id DESC LIMIT :limit"
PRUNE_AUDIT = """
DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < :before ORDER BY at LIMIT :limit)
"""

_CHANGES = msgspec.json.Decoder(dict[str, Any])


class SqliteAudit(SqliteConnections):
    """The contract's verbs about the audit trail."""

    @on_writer
    def write_audit(self, connection: sqlite3.Connection, entry: AuditEntry) -> None:
        """Add an entry about something that no other verb writes."""
        note_audit(connection, entry)

    @on_lister
    def list_audit(
        self, connection: sqlite3.Connection, filter: AuditFilter, *, after: AuditId | None, limit: int
    ) -> list[AuditEntry]:
        """Newest first, from below the id `after`."""
        asked = SqliteConditions()
        asked.add("account = :account", "account", filter.account)
        asked.add("action = :action", "action", filter.action)
        asked.add("subject = :subject", "subject", filter.subject)
        asked.add("actor_key = :actor_key", "actor_key", filter.actor_key)
        asked.add("actor_account = :actor_account", "actor_account", filter.actor_account)
        asked.add("at >= :since", "since", filter.since)
        asked.add("at < :until", "until", filter.until)
        asked.add("id < :after", "after", after)
        asked.values["limit"] = limit
        found = connection.execute(LIST_AUDIT.format(conditions=asked.also()), asked.values)
        return [_read(row) for row in found]

    @on_writer
    def prune_audit(self, connection: sqlite3.Connection, *, before: float, limit: int) -> int:
        """Delete up to `limit` entries from before this time; how many."""
        return connection.execute(PRUNE_AUDIT, {"before": before, "limit": limit}).rowcount


def note_audit(connection: sqlite3.Connection, entry: AuditEntry | None) -> None:
    """Write the entry in the transaction of what it tells of; None: nothing is told."""
    if entry is None:
        return
    actor = entry.actor
    values = {
        "id": entry.id,
        "at": entry.at,
        "account": entry.account,
        "action": str(entry.action),
        "subject_kind": entry.subject_kind,
        "subject": entry.subject,
        "actor": actor.kind.value,
        "actor_key": actor.key_id,
        "actor_name": actor.name,
        "actor_hint": actor.hint,
        "actor_account": actor.account,
        "via": entry.via.value,
        "address": entry.address,
        "request_id": entry.request_id,
        "changes": json_text(entry.changes),
        "is_cut": entry.is_cut,
    }
    connection.execute(WRITE_AUDIT, values)


def _read(row: tuple[Any, ...]) -> AuditEntry:
    (
        id,
        at,
        account,
        action,
        subject_kind,
        subject,
        kind,
        key,
        name,
        hint,
        bound,
        via,
        address,
        request,
        *rest,
    ) = row
    changes, is_cut = rest
    return AuditEntry(
        id=id,
        at=at,
        account=account,
        action=action,
        subject_kind=subject_kind,
        subject=subject,
        actor=Actor(kind=ActorKind(kind), key_id=key, name=name, hint=hint, account=bound),
        via=Via(via),
        address=address,
        request_id=request,
        changes=_CHANGES.decode(changes),
        is_cut=bool(is_cut),
    )
