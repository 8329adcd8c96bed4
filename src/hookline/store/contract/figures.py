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


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who could still see rows that are dead to everybody else, so that they cannot be taken away."""

    held_by: str  # "session", "prepared transaction", "replication slot", "standby"
    name: str  # of the application, the transaction or the slot, as its owner gave it
    pid: int | None = None
    seconds: float | None = None  # since it began; None: the database does not say
    transactions: int = 0  # that began since


class Bloat(msgspec.Struct, frozen=True, kw_only=True):
    """What the database keeps although nobody needs it, and who makes it do so."""

    dead_rows: dict[str, int] = {}  # by table, of those that change most
    log_bytes: int | None = (
        None  # SQLite's write-ahead log, which a reader that stays keeps from being used again
    )
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def oldest_seconds(self) -> float:
        """Of those that are known to have an age; 0: there are none."""
        return max((each.seconds for each in self.snapshots if each.seconds is not None), default=0.0)

    @property
    def oldest_transactions(self) -> int:
        """Of all of them."""
        return max((each.transactions for each in self.snapshots), default=0)


class FiguresStore(Protocol):
    """The verbs that count."""

    async def bloat(self) -> Bloat:
        """What cannot be cleaned up and why, as far as this user may know; cheap."""

    async def conservation(self, *, account: str | None = None) -> Conservation:
        """Where all deliveries are, of one account or of all, in one snapshot; may take long when there are many."""

    async def oldest_due(self, *, now: float) -> float | None:
        """When the delivery became due that has waited longest; None: none is waiting.

        Of lanes that are not held back: neither paused or disabled, nor waiting for a circuit, a Retry-After or the
        head of a strict order.
        """
