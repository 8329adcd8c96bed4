"""Defines how rows of an outbox are read and deleted, and how a store keeps those that were refused.

A part of the contract: see `store.contract` for what holds for every verb. Rows move by LOOK, accept, DROP
(docs/outbox.md): a row is deleted only after its event is stored under the row's id. So a crash anywhere only repeats.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from hookline.model import AuditEntry, EventId

LOOK_ROWS = 500  # LOOK reads at most so many: throughput is flat above
LOOK_BYTES = 4 * 1024 * 1024  # of payloads, but always one row
FAIR_ACCOUNTS, FAIR_ROWS = 100, 5
MOST_COUNTED = 100_000  # rows of a backlog: counting more takes long
OWN_SOURCE = "own"  # hookline's own database


class WaitingRow(msgspec.Struct, frozen=True, gc=False):
    """A row of an outbox, as LOOK reads it."""

    seq: int
    id: EventId
    at: float
    deliver_at: float | None
    account: str
    type: str
    idempotency_key: str | None
    hops: int
    payload: bytes
    fault: str = (
        ""  # what could not be read and is replaced here; possible in SQLite, where columns hold anything
    )


class RowPlace(NamedTuple):
    """What DROP names. A number alone can be another row by now."""

    seq: int
    id: EventId


class LookRequest(msgspec.Struct, frozen=True):
    """What LOOK leaves out, and in which order it reads."""

    floor: int = 0  # no row with this number or a lower one
    moved: tuple[int, ...] = ()  # numbers of rows that are moved and perhaps not dropped yet
    fair_after: str | None = None  # a few rows of each account, from the one after this on; None: by number


class OutboxHead(msgspec.Struct, frozen=True):
    """The rows that one LOOK found, all in one snapshot; those of an account by number."""

    rows: list[WaitingRow]
    is_full: bool  # there may be more
    low: int = 0  # of the snapshot, on PostgreSQL and by number: every transaction below has ended
    high: int = 0  # no transaction from here on had begun
    last_account: str = (
        ""  # of a fair LOOK: the last account that had its turn; "": the next begins with the first
    )


class OutboxBacklog(msgspec.Struct, frozen=True):
    """The rows that wait in an outbox."""

    rows: int  # MOST_COUNTED at most
    oldest_at: float | None


class RefusedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was refused, as it was, with the reason."""

    n: int = 0  # its number among the refused rows; given by the store
    source: str
    seq: int
    id: EventId
    at: float
    deliver_at: float | None = None
    account: str
    type: str
    idempotency_key: str | None = None
    hops: int = 0
    payload: bytes
    payload_bytes: int = 0  # lists leave the payload out
    refused_at: float
    code: str
    detail: str


class RefusedFilter(msgspec.Struct, frozen=True):
    """Which refused rows a list has; None: all."""

    account: str | None = None
    source: str | None = None
    code: str | None = None
    type: str | None = None
    id: EventId | None = None


class RefusedCount(msgspec.Struct, frozen=True):
    """How many refused rows an account has for one reason."""

    account: str
    code: str
    rows: int
    oldest_at: float  # when the first of them was refused


class SourceRow(msgspec.Struct, frozen=True):
    """What the store knows of a source of rows."""

    name: str
    # Everything that was accepted from it before has left its outbox. None: nothing was ever accepted from it.
    clear_at: float | None = None
    looked_at: float | None = None  # the last look that succeeded
    waiting: int = 0  # rows, as of the last note
    oldest_at: float | None = None
    trouble: str | None = None  # why it cannot be read


class OutboxTable(Protocol):
    """The verbs of any source: hookline's own database has them, and so have others with an outbox table."""

    async def look_at_outbox(self, request: LookRequest) -> OutboxHead:
        """LOOK: up to LOOK_ROWS committed rows and LOOK_BYTES of payloads; locks nothing."""

    async def drop_from_outbox(self, rows: Sequence[RowPlace]) -> None:
        """DROP: delete these rows; one that is gone is no error."""

    async def outbox_backlog(self) -> OutboxBacklog:
        """How many committed rows there are, and since when."""


class OutboxStore(OutboxTable, Protocol):
    """The verbs about the outbox that only hookline's own store has."""

    async def outbox_conflicts(self, rows: Sequence[WaitingRow]) -> frozenset[EventId]:
        """The ids among these that name a stored event with other content."""

    async def refuse(self, rows: Sequence[RefusedRow]) -> int:
        """Keep the refused rows; how many are new. A row that is there already (source, seq and id) stays as it is.

        A row refused with `id_conflict` gives back its idempotency key, if its attempt to be accepted took that.
        """

    async def refused_rows(self, filter: RefusedFilter, *, after: int | None, limit: int) -> list[RefusedRow]:
        """Newest first, from below the number `after`, without their payloads."""

    async def refused_row(self, n: int) -> RefusedRow | None:
        """The refused row with its payload."""

    async def count_refused(self) -> list[RefusedCount]:
        """How many refused rows there are, by account and code."""

    async def refuse_again(self, n: int, *, code: str, detail: str, now: float) -> None:
        """A refused row was tried again and refused."""

    async def discard_refused(self, numbers: Sequence[int], *, audit: AuditEntry | None = None) -> int:
        """Delete the refused rows with these numbers; how many there were.

        It ends a retry too: first the event is accepted under the row's id, then the row is deleted.
        """

    async def note_source(self, source: SourceRow) -> None:
        """Note what is known of a source. `clear_at` and `looked_at` never go back, nor become unknown."""

    async def outbox_sources(self) -> list[SourceRow]:
        """All sources, by name. Nothing is pruned that was created after the earliest `clear_at` of them."""

    async def forget_source(self, name: str, *, audit: AuditEntry | None = None) -> bool:
        """Forget a source that is no more; False: there is none of that name."""
