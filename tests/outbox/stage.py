"""Moves rows step by step over a real store, beside an application whose transactions a scene opens and ends.

Nothing runs by itself: the hookline here delivers and moves nothing, and the mover's clock stands still. So a scene is
one interleaving, the same each time. What was accepted is noted in the order in which it was stored.
"""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import psycopg

from hookline.app import Hookline
from hookline.config import Settings
from hookline.model import EventId
from hookline.outbox import Draft, publish_many
from hookline.pipeline.outbox.accepting import Accepted, CheckedRows
from hookline.pipeline.outbox.moving import RowMover
from hookline.pipeline.outbox.source import Source
from hookline.store.contract import (
    LookRequest,
    OutboxBacklog,
    OutboxHead,
    OutboxTable,
    RefusedFilter,
    RowPlace,
    WaitingRow,
)
from hookline.testing.clock import ManualClock

ROUNDS = 20  # of a mover, after which a scene ends that would not
SLOW_LOOK_S = 0.01  # so that a floor is worth while


class Died(Exception):
    """The process is gone in the middle of a step."""


class StepTable(OutboxTable):
    """The store's outbox; LOOK takes time on the mover's clock, and a scene may act between two steps."""

    def __init__(self, table: OutboxTable, clock: ManualClock) -> None:
        self._table = table
        self._clock = clock
        self.after_look: Callable[[], Awaitable[None]] | None = None  # once

    async def look_at_outbox(self, request: LookRequest) -> OutboxHead:
        head = await self._table.look_at_outbox(request)
        self._clock.advance(SLOW_LOOK_S)
        act, self.after_look = self.after_look, None
        if act is not None:
            await act()
        return head

    async def drop_from_outbox(self, rows: Sequence[RowPlace]) -> None:
        await self._table.drop_from_outbox(rows)

    async def outbox_backlog(self) -> OutboxBacklog:
        return await self._table.outbox_backlog()


class StepAcceptor:
    """hookline's own accept; a scene may act before it, or let the process die there."""

    def __init__(self, stage: "Stage") -> None:
        self._stage = stage
        self.before: Callable[[], Awaitable[None]] | None = None  # once

    def check(self, rows: Sequence[WaitingRow], *, source: str) -> CheckedRows:
        return self._stage.hookline.outbox.check(rows, source=source)

    async def accept(self, checked: CheckedRows, *, source: str) -> Accepted:
        act, self.before = self.before, None
        if act is not None:
            await act()
        accepted = await self._stage.hookline.outbox.accept(checked, source=source)
        for row in accepted.done:
            if row.type not in self._stage.accepted:
                self._stage.accepted.append(row.type)
        return accepted


class Stage:
    """A hookline, its outbox and the application. Each row's type is its name."""

    def __init__(self, hookline: Hookline, database: str) -> None:
        self.hookline = hookline
        self.database = database
        self.clock = ManualClock()
        self.is_postgres = database.startswith("postgresql:")
        self.accepted: list[str] = []  # in the order in which they were stored
        self.published: list[str] = []  # that were committed

    # --- the application ---

    def begin(self, *names: str, **fields: Any) -> "Transaction":
        """An open transaction that has published these."""
        return Transaction(self, names, fields)

    def commit(self, *names: str, **fields: Any) -> None:
        """A whole transaction that publishes these."""
        self.begin(*names, **fields).commit()

    # --- movers ---

    def mover(self) -> tuple[RowMover, StepTable, StepAcceptor]:
        """Another mover, as after a restart or beside the others."""
        table, acceptor = StepTable(self.hookline.store, self.clock), StepAcceptor(self)
        source = Source("own", table, is_serial=not self.is_postgres)
        return RowMover(source, acceptor, self.clock), table, acceptor  # type: ignore[arg-type]

    async def move(self, mover: RowMover) -> None:
        """One wake of the mover: rounds until a LOOK finds nothing, but not for ever."""
        rounds = iter(range(ROUNDS))

        async def ready(began: float) -> None:
            pass

        await mover.move_all(may_go_on=lambda: next(rounds, None) is not None, before_first=ready)

    async def rest(self) -> list[str]:
        """What is still in the outbox, by name."""
        head = await self.hookline.store.look_at_outbox(LookRequest())
        return [row.type for row in head.rows]

    async def refused(self) -> dict[str, str]:
        """The codes of what was refused, by name."""
        found = await self.hookline.store.refused_rows(RefusedFilter(), after=None, limit=100)
        return {row.type: row.code for row in found}

    async def stored(self, id: EventId) -> bytes | None:
        """The payload of the event with this id."""
        event = await self.hookline.store.event(id)
        return None if event is None else event.payload

    async def lost(self) -> list[str]:
        """What was committed and is neither accepted nor refused nor there any more."""
        there = {*self.accepted, *await self.refused(), *await self.rest()}
        return [name for name in self.published if name not in there]


class Transaction:
    """One of the application's."""

    def __init__(self, stage: Stage, names: Sequence[str], fields: dict[str, Any]) -> None:
        self._stage = stage
        self._names = names
        if stage.is_postgres:
            self._connection: Any = psycopg.connect(stage.database)
        else:
            path = stage.database.removeprefix("sqlite:///")
            self._connection = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._connection.execute("BEGIN IMMEDIATE")
        publish_many(self._connection, [Draft(name, name, **fields) for name in names])

    def commit(self) -> None:
        with closing(self._connection):
            self._connection.execute("COMMIT")
        self._stage.published += self._names


@asynccontextmanager
async def staged(database: str) -> AsyncIterator[Stage]:
    """A hookline on an empty database."""
    async with Hookline(settings=Settings(database=database), deliver=False) as hookline:
        yield Stage(hookline, database)
