"""What must a store be able to count?

A part of the contract: see `store.contract` for what holds for every verb. Nothing here is kept up to date while
publishing or settling: it is counted when it is asked for, so whoever asks often keeps the answer (`figures`).
"""

from typing import Protocol

import msgspec


class Conservation(msgspec.Struct, frozen=True, kw_only=True):
    """Where all deliveries are that were ever accepted."""

    pending: int = 0
    delivered: int = 0
    dead: int = 0
    cancelled: int = 0
    pruned: int = 0

    @property
    def accepted(self) -> int:
        """Publishing keeps no count of its own: it would be one more row to write for every event."""
        return self.pending + self.delivered + self.dead + self.cancelled + self.pruned


class FiguresStore(Protocol):
    """The verbs that count."""

    async def conservation(self, *, account: str | None = None) -> Conservation:
        """Where all deliveries are, of one account or of all, in one snapshot; may take long when there are many."""

    async def oldest_due(self, *, now: float) -> float | None:
        """When the delivery became due that has waited longest; None: none is waiting.

        Of lanes that are not held back: neither paused or disabled, nor waiting for a circuit, a Retry-After or the
        head of a strict order.
        """
