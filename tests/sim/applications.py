"""The applications of a simulated world that publish in their own transactions, through the outbox.

Their transactions overlap, as on PostgreSQL: a row's number is drawn when it is inserted, and everybody sees it when its
transaction commits. So each row is inserted through hookline's own statement into a table that only gives numbers, and
waits in memory; a commit writes the rows into the store's outbox under these numbers, and a rollback or a death forgets
them. What a row may become is checked in `outbox_rows`.
"""

import asyncio
import json
import sqlite3
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

from hookline.ids import Ids
from hookline.outbox import blocking, ddl
from hookline.outbox.table import OutboxRow
from tests.sim.clients import TYPES
from tests.sim.outbox_rows import PublishedRow, Transaction

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sim.world import World

SHARE = (5, 6)  # of eight worlds, those that have applications
MOST = 40  # rows of one run
CLIENTS = 3
NO_TYPE = "no type!"  # inserted by hand: hookline's own checks would refuse it before
_COLUMNS = "seq, id, deliver_at, account, type, idempotency_key, hops, payload"
COMMIT = f"INSERT INTO hookline_outbox ({_COLUMNS}, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Applications:
    """All applications."""

    def __init__(self, world: "World", rng: Random, path: "Path", *, publish: bool) -> None:
        self._world = world
        self._rng = rng
        self._path = path
        self.publish = publish
        self.every = rng.choice((0.4, 1.0, 2.0))  # seconds between two transactions of one client
        self._ids = Ids(world.database.clock, rng)
        self._made = 0
        self._used: list[OutboxRow] = []  # with keys
        self._running = 0
        self._numbers: sqlite3.Connection | None = None
        self._file: sqlite3.Connection | None = None

    @property
    def is_done(self) -> bool:
        return not self._running

    def begin(self) -> None:
        """Start them, if this world has any."""
        if not self.publish:
            return
        self._numbers = sqlite3.connect(":memory:")
        self._numbers.executescript(ddl("sqlite"))
        self._file = sqlite3.connect(self._path)
        self._file.execute("PRAGMA synchronous = OFF")
        for _ in range(CLIENTS):
            self._running += 1
            self._world.loop.create_task(self._run(), context=self._world.owner.context)

    def close(self) -> None:
        for connection in (self._numbers, self._file):
            if connection is not None:
                connection.close()

    def left(self) -> int:
        """The rows in the table."""
        if self._file is None:
            return 0
        (rows,) = self._file.execute("SELECT count(*) FROM hookline_outbox").fetchone()
        return int(rows)

    async def _run(self) -> None:
        """One client: a transaction after the other, until the end of the run."""
        rng = self._rng
        while not self._world.faults.is_over and self._made < MOST:
            await asyncio.sleep(rng.expovariate(1 / self.every))
            await self._transact()
        self._running -= 1

    async def _transact(self) -> None:
        rng, rows = self._rng, self._world.checks.outbox
        transaction = Transaction(rng.choice(self._world.operators.accounts))
        for _ in range(rng.choice((1, 1, 2, 3, 5))):
            if rng.random() < 0.3:
                await asyncio.sleep(rng.choice((0.002, 0.05, 0.3)))
            self._insert(transaction)
        await asyncio.sleep(rng.choice((0.0, 0.001, 0.02, 0.2, 1.0)))
        end = rng.random()
        if end < 0.2:  # rolled back, or the application dies: the database sees no difference
            self._world.log("rolled back", len(transaction.rows))
            return
        self._commit(transaction)
        if end < 0.3:
            return  # it dies before it knows, or the answer is lost
        await asyncio.sleep(rng.uniform(0.0005, 0.004))
        rows.acknowledged(transaction)
        if rng.random() < 0.3:
            self._nudge()

    def _insert(self, transaction: Transaction) -> None:
        """One row, through the statement that applications use."""
        row = self._row(transaction.account)
        numbers = self._numbers
        assert numbers is not None
        began = self._world.checks.outbox.tick()
        blocking.insert(numbers, [row], None)
        (values,) = numbers.execute(f"SELECT {_COLUMNS} FROM hookline_outbox").fetchall()
        numbers.execute("DELETE FROM hookline_outbox")
        numbers.commit()
        published = PublishedRow(
            seq=values[0],
            id=row.id,
            deliver_at=values[2],
            account=row.account,
            type=row.type,
            key=row.idempotency_key,
            payload=row.payload,
            values=(*values, self._world.database.now()),
            began=began,
            transaction=transaction,
            code="invalid_type" if row.type == NO_TYPE else None,
        )
        transaction.rows.append(published)
        self._world.checks.outbox.published(published)

    def _row(self, account: str) -> OutboxRow:
        rng = self._rng
        now = self._world.database.now()
        id = self._ids.event()
        again = [row for row in self._used if row.account == account]
        if again and rng.random() < 0.2:
            row = rng.choice(again)._replace(id=id)
            return row._replace(payload=b'{"other": true}') if rng.random() < 0.2 else row
        self._made += 1
        at = datetime.fromtimestamp(now + rng.uniform(-1.0, 6.0), UTC) if rng.random() < 0.1 else None
        key = f"outbox-{self._made}" if rng.random() < 0.4 else None
        type = NO_TYPE if rng.random() < 0.04 else rng.choice(TYPES)
        row = OutboxRow(id, account, type, key, at, 0, json.dumps({"outbox": self._made}).encode())
        if key is not None and type != NO_TYPE:
            self._used.append(row)
        return row

    def _commit(self, transaction: Transaction) -> None:
        assert self._file is not None
        with self._file:
            self._file.executemany(COMMIT, [row.values for row in transaction.rows])
        self._world.log("committed", [row.seq for row in transaction.rows])
        self._world.checks.outbox.committed(transaction)

    def _nudge(self) -> None:
        """The application runs in one of the processes, and tells it of the commit."""
        up = [process for process in self._world.processes if process.is_up]
        if up:
            process = self._rng.choice(up)
            process.owner.context.run(process.hooks.mover._nudged)
