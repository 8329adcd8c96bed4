"""Reads and deletes rows of an outbox in an SQLite file that is not hookline's own."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from hookline.errors import StoreRefused, StoreUnavailable
from hookline.store.contract.outbox import LookRequest, OutboxBacklog, OutboxHead, RowPlace
from hookline.store.sqlite.driver.connection import BUSY_TIMEOUT_S
from hookline.store.sqlite.driver.presence import FilePresence
from hookline.store.sqlite.driver.writer import Threaded, run_each
from hookline.store.sqlite.outbox import table

T = TypeVar("T")


class SqliteForeignOutbox:
    """The table of an application's own file: its settings are the application's, and so is the lock."""

    is_file = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader: Threaded | None = None
        self._writer: Threaded | None = None  # apart: it waits where the application holds the lock
        self._presence: FilePresence | None = None
        self._version: int | None = None

    async def look_at_outbox(self, request: LookRequest) -> OutboxHead:
        """See the contract."""
        return await self._read(partial(table.look, request=request))

    async def drop_from_outbox(self, rows: Sequence[RowPlace]) -> None:
        """See the contract."""
        if self._writer is None:
            self._writer = self._opened()
        await self._writer.run(partial(table.drop, rows=rows))

    async def outbox_backlog(self) -> OutboxBacklog:
        """See the contract."""
        return await self._read(table.backlog)

    async def has_outbox_rows(self, *, above: int) -> bool:
        """Whether anybody has written into the file since the last time."""
        version = await self._read(_version)
        was, self._version = self._version, version
        return version != was

    async def close(self) -> None:
        """Close every connection."""
        for each in (self._reader, self._writer):
            if each is not None:
                await each.stop()
        self._reader = self._writer = self._presence = self._version = None

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._reader is None:
            self._reader = self._opened()
        try:
            if self._presence is not None:
                self._presence.refuse_if_gone()
        except StoreRefused:
            await self.close()  # it was replaced: the next look opens the one that is there
            raise
        return await self._reader.run(work)

    def _opened(self) -> Threaded:
        if not Path(self._path).is_file():
            raise StoreUnavailable(f"There is no file {self._path}.")
        try:
            connection = sqlite3.connect(
                f"file:{quote(self._path)}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise StoreRefused(f"Cannot open {self._path}: {error}.") from error
        self._presence = self._presence or FilePresence(self._path)
        return Threaded(connection, run_each)


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    return int(version)
