"""Defines how a store keeps what belongs to a whole installation: its secret and its accounts' settings.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol

from hookline.model import Account, AuditEntry


class InstallationStore(Protocol):
    """The verbs about the installation."""

    async def installation_secret(self, fresh: bytes) -> bytes:
        """The secret that all processes on this database share; `fresh` becomes it if there was none."""

    async def mark_sealed(self, mark: str, *, was: str | None = None) -> str:
        """Store the mark if there is none, or if the stored one is `was`; the mark that is stored then."""

    async def put_account(
        self, account: Account, *, now: float, was: float | None = None, audit: AuditEntry | None = None
    ) -> bool:
        """Replace the settings of an account; a change of the kind `account` tells every process.

        With `was`, only those that were read with `updated_at = was`; False if they were changed meanwhile.
        """

    async def account(self, id: str) -> Account | None:
        """The settings of an account; None: it has none."""

    async def accounts(self, *, after: str = "", limit: int) -> list[Account]:
        """Accounts that have settings, by id, from above `after`."""
