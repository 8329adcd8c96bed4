"""Defines what a store counts.

A part of the contract: see `store.contract` for what holds for every verb. Publishing and settling keep no counters for
this. It is counted when somebody asks, so a frequent caller keeps the answer (`reports.counts`).
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Conservation(msgspec.Struct, frozen=True, kw_only=True):
    """The number of deliveries in each place, over all that were ever accepted."""

    pending: int = 0
    delivered: int = 0
    dead: int = 0
    cancelled: int = 0
    pruned: int = 0

    @property
    def accepted(self) -> int:
        """The sum of the others. Publishing keeps no counter: it would be one more row to write for every event."""
        return self.pending + self.delivered + self.dead + self.cancelled + self.pruned


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who can still see rows that are dead to everybody else, so that these cannot be removed."""

    held_by: str  # "session", "prepared transaction", "replication slot", "standby"
    name: str  # of the application, the transaction or the slot, as its owner gave it
    pid: int | None = None
    seconds: float | None = None  # since it began; None: the database does not say
    transactions: int = 0  # that started since


class Bloat(msgspec.Struct, frozen=True, kw_only=True):
    """What the database keeps although nobody needs it, with those who make it do so."""

    dead_rows: dict[str, int] = {}  # by table, of those that change most
    log_bytes: int | None = None  # SQLite's write-ahead log, which cannot start over while a reader stays
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def oldest_seconds(self) -> float:
        """The age of the oldest one with a known age; 0: there is none."""
        return max((each.seconds for each in self.snapshots if each.seconds is not None), default=0.0)

    @property
    def oldest_transactions(self) -> int:
        """The most transactions since any of them."""
        return max((each.transactions for each in self.snapshots), default=0)


class SessionUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one pool of this process does with its database sessions."""

    role: str  # "accept", "settle" …: the work that the sessions are kept for
    limit: int
    in_use: int
    waiting: int  # calls that wait for a session


class FiguresStore(Protocol):
    """The verbs that count."""

    def sessions(self) -> Sequence[SessionUse]:
        """The pools of this process; none on a store that has no sessions."""

    async def bloat(self) -> Bloat:
        """What cannot be cleaned up and why, as far as this user may know; cheap."""

    async def conservation(self, *, account: str | None = None) -> Conservation:
        """Where all deliveries are, of one account or of all, in one snapshot; slow when there are many."""

    async def circuits_open(self) -> int:
        """How many lanes have a circuit that is not closed."""

    async def oldest_pending(self) -> float | None:
        """When the oldest delivery that is pending was accepted; None: none is. Slow when many are."""

    async def oldest_due(self, *, now: float) -> float | None:
        """When the delivery that has waited longest became due; None: none waits.

        Only lanes that are not held back count: not paused or disabled ones, nor those waiting for a circuit, a
        Retry-After or the head of a strict order.
        """
