"""Defines how a store keeps the secret that only the processes of one installation know.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol


class InstallationStore(Protocol):
    """The verb for the installation as a whole."""

    async def installation_secret(self, fresh: bytes) -> bytes:
        """The secret that all processes on this database share; `fresh` becomes it if there was none."""
