"""What do all processes of one installation know that nobody else does?

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol


class InstallationStore(Protocol):
    """What belongs to the installation as a whole."""

    async def installation_secret(self, fresh: bytes) -> bytes:
        """The secret that all processes on this database share; `fresh` becomes it if there was none."""
