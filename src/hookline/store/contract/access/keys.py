"""Defines how a store keeps API keys.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol

import msgspec

from hookline.model import AuditEntry, Key, KeyId

CHANGED_KEYS = 1_000  # keys read at once by a process that keeps a copy of them
# Of a stored key what cannot be read gives it no right: it is listed, and opens nothing.
WORTHLESS = {"scopes": (), "account": "", "revoked_at": 0.0}


class ChangedKey(msgspec.Struct, frozen=True):
    """A key with the number of its last change; the numbers commit in order."""

    n: int
    key: Key


class KeyStore(Protocol):
    """The verbs about keys."""

    async def create_key(self, key: Key, *, audit: AuditEntry | None = None) -> None:
        """Add a key."""

    async def create_first_key(self, key: Key, *, audit: AuditEntry | None = None) -> bool:
        """Add a key if there has never been one; False when there is one, revoked or not."""

    async def revoke_key(self, key: KeyId, *, now: float, audit: AuditEntry | None = None) -> bool:
        """Revoke a key for good; a revoked one stays as it is. False when there is none."""

    async def key(self, key: KeyId) -> Key | None:
        """One key, revoked or not."""

    async def list_keys(self, *, after: KeyId | None, limit: int) -> list[Key]:
        """Newest first, from below the id `after`, revoked ones too."""

    async def changed_keys(self, *, after: int) -> list[ChangedKey]:
        """Keys created or revoked after the change numbered `after`, in that order, at most CHANGED_KEYS."""
