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

    is_file: bool  # of SQLite

    async def has_outbox_rows(self, *, above: int) -> bool:
        """Whether there may be a row with a higher number."""

    async def close(self) -> None:
        """Close every connection."""


class Source(NamedTuple):
    """A source, under the name that people see."""

    name: str
    table: OutboxTable
    has_rows: Callable[[int], Awaitable[bool]] | None = None  # None: the pulse says
    drops_every: float = 0.0  # seconds between two DROPs
    is_serial: bool = False  # rows commit in the order of their numbers, as in SQLite


def own(table: OutboxTable, *, is_file: bool) -> Source:
    """Hookline's own database."""
    return Source(OWN_SOURCE, table, drops_every=FILE_DROPS_EVERY_S if is_file else 0.0, is_serial=is_file)


def foreign(name: str, table: ForeignOutbox) -> Source:
    """Another database."""

    async def has_rows(above: int) -> bool:
        return await table.has_outbox_rows(above=above)

    drops_every = FILE_DROPS_EVERY_S if table.is_file else 0.0
    return Source(name, table, has_rows, drops_every, table.is_file)
