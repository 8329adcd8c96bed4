"""Defines how a store keeps the audit trail.

A part of the contract: see `store.contract` for what holds for every verb. The verbs that change what an operator
manages take an entry as `audit`. It is written in their transaction if they change anything, and not otherwise.
"""

from typing import Protocol

import msgspec

from hookline.model import AuditEntry, AuditId, KeyId


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are listed; None is any. `since` and `until` are the store's times."""

    account: str | None = None
    action: str | None = None
    subject: str | None = None
    actor_key: KeyId | None = None
    actor_account: str | None = None  # only what keys did that are bound to this account
    since: float | None = None
    until: float | None = None


class AuditStore(Protocol):
    """The verbs about the audit trail."""

    async def write_audit(self, entry: AuditEntry) -> None:
        """Add an entry about something that no other verb writes."""

    async def list_audit(self, filter: AuditFilter, *, after: AuditId | None, limit: int) -> list[AuditEntry]:
        """Newest first, from below the id `after`."""

    async def prune_audit(self, *, before: float, limit: int) -> int:
        """Delete up to `limit` entries from before this time; how many."""
