"""Defines how a store finds ids by their beginning.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol


class IdRangeStore(Protocol):
    """The verb that finds ids."""

    async def ids_between(
        self, noun: str, low: bytes, high: bytes, *, account: str | None = None, limit: int
    ) -> list[bytes]:
        """The ids of a noun from `low` to `high`, both included, in order.

        With an account only its own. Keys, workers and deliveries name no account: for them it must be None.
        """
