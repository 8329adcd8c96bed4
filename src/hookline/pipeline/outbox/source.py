"""Defines a source of rows: a database with an outbox table."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from hookline.store.contract import OWN_SOURCE, OutboxTable

POLL_S = 0.25  # between two looks at a source that no pulse tells of
# In an SQLite file each DROP is one more commit that the application's transactions wait for, or fail by if they have
# read before they write.
FILE_DROPS_EVERY_S = 1.0


class ForeignOutbox(OutboxTable, Protocol):
    """The outbox of a database that is not hookline's own."""

    drops_every: (
        float  # seconds between two DROPs: in SQLite each one may make a transaction of the application fail
    )

    async def has_outbox_rows(self, *, above: int) -> bool:
        """Whether there may be a row with a higher number."""

    async def close(self) -> None:
        """Close every connection."""


class Source(NamedTuple):
    """A source, under the name that people see."""

    name: str
    table: OutboxTable
    has_rows: Callable[[int], Awaitable[bool]] | None = None  # None: the pulse says
    drops_every: float = 0.0


def own(table: OutboxTable, *, drops_every: float) -> Source:
    """Hookline's own database."""
    return Source(OWN_SOURCE, table, drops_every=drops_every)


def foreign(name: str, table: ForeignOutbox) -> Source:
    """Another database."""

    async def has_rows(above: int) -> bool:
        return await table.has_outbox_rows(above=above)

    return Source(name, table, has_rows, table.drops_every)
