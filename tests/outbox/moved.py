"""Runs a whole hookline in the test's process, beside an application that publishes through its own database."""

import asyncio
import ipaddress
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from hookline.app import Hookline
from hookline.config import Settings
from hookline.outbox import Draft, ddl, publish_many
from outbox.database import ORDERS, Postgres, Sqlite
from receiver import Receiver

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


class Place(NamedTuple):
    """Hookline's database, and the application's, which may be the same."""

    database: str
    application: Postgres | Sqlite
    is_foreign: bool

    @property
    def settings(self) -> Settings:
        application = self.application
        url = application.url if isinstance(application, Postgres) else f"sqlite:///{application.path}"
        return Settings(
            database=self.database, allow_networks=LOOPBACK, outbox=(url,) if self.is_foreign else ()
        )

    def connect(self) -> Any:
        """A connection of the application, in a transaction."""
        if isinstance(self.application, Postgres):
            return closing(psycopg.connect(self.application.url))
        connection = sqlite3.connect(self.application.path, timeout=60, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        return closing(connection)

    def commit(self, *drafts: Draft) -> list[str]:
        """One transaction of the application that publishes these."""
        with self.connect() as connection:
            ids = publish_many(connection, drafts)
            connection.execute("COMMIT")
        return list(ids)

    def insert(self, **values: Any) -> None:
        """A row by hand, as an application in another language writes it."""
        names, is_postgres = ", ".join(values), isinstance(self.application, Postgres)
        table = "hookline.outbox" if is_postgres else "hookline_outbox"
        marks = ", ".join(["%s" if is_postgres else "?"] * len(values))
        self.application.run(f"INSERT INTO {table} ({names}) VALUES ({marks})", *values.values())


@asynccontextmanager
async def running(
    place: Place, receiver: Receiver, *, accounts: Sequence[str] = ("default",)
) -> AsyncIterator[Hookline]:
    """A hookline with one endpoint in each account, which gets everything."""
    async with Hookline(settings=place.settings) as hookline:
        for account in accounts:
            if not hookline._catalogue.find(account, "a"):
                await hookline.create_endpoint(url=receiver.url(), events=["*"], account=account)
        yield hookline


def stored(place: Place) -> list[tuple[str, bytes]]:
    """Account and payload of every event, in the order in which they were accepted."""
    statement = "SELECT e.account, e.payload FROM deliveries d JOIN events e ON e.id = d.id ORDER BY d.seq"
    if place.database.startswith("sqlite"):
        with closing(sqlite3.connect(place.database.removeprefix("sqlite:///"))) as connection:
            return connection.execute(statement).fetchall()
    with psycopg.connect(place.database, options="-c search_path=hookline") as session:
        return session.execute(statement).fetchall()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.start()
    try:
        yield receiver
    finally:
        await receiver.stop()


async def until(reached: Callable[[], Any], *, seconds: float = 120.0) -> None:
    """Wait until it holds; what it asks may be awaitable."""
    async with asyncio.timeout(seconds):
        while True:
            result = reached()
            if (await result) if asyncio.iscoroutine(result) else result:
                return
            await asyncio.sleep(0.01)


async def emptied(hookline: Hookline) -> None:
    """Wait until every outbox is empty."""

    async def is_empty() -> bool:
        backlogs = [await watch.mover.source.table.outbox_backlog() for watch in hookline.mover.watches]
        return all(backlog.rows == 0 for backlog in backlogs)

    await until(is_empty)


def own_sqlite(folder: Path) -> Place:
    """An application whose tables are in hookline's own file."""
    path = folder / "hookline.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(ddl("sqlite"))
        connection.execute(ORDERS)
    return Place(f"sqlite:///{path}", Sqlite(path), False)
