"""Keeps workers in PostgreSQL, with the numbered changes that they read."""

from functools import partial
from typing import Any

import asyncpg

from hookline.model import FOREVER, EndpointId, WorkerId
from hookline.store import spoiled_rows
from hookline.store.contract.workers import FREE_CHUNK, Change, Load, Pulse, WorkerRow, WorkerStatusRow
from hookline.store.postgres import sql
from hookline.store.postgres.driver.faults import refuse_read_only
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.rights import NOT_ASKED, VALUES, refusal
from hookline.store.postgres.driver.sessions import PostgresSessions, in_transaction
from hookline.store.postgres.driver.values import printable
from hookline.store.postgres.migrations.schema import own_level, refuse_if_outgrown

RIGHTS_EVERY = 4  # pulses, so about every second: a process that lost a right reports it within two


class PostgresWorkers(PostgresSessions):
    """The contract's verbs about workers."""

    _looks = 0  # of the pulse

    async def register(self, worker: WorkerRow) -> None:
        """See the contract."""
        await self._pulse.run(partial(self._register, worker=worker))

    async def _register(self, connection: Connection, *, worker: WorkerRow) -> None:
        load = worker.load
        found = await connection.fetch(
            sql.REGISTER,
            worker.id,
            worker.kind,
            printable(worker.host),
            worker.pid,
            worker.version,
            worker.started_at,
            worker.seen_at,
            worker.beat,
            load.lanes,
            load.in_flight,
            load.free_slots,
            load.waiting,
            load.draining,
            load.delivered_per_s,
            connection.get_server_pid(),
        )
        if found and found[0]["has_session"]:
            self._session.holds(connection, worker.id)

    async def beat(self, worker: WorkerId, load: Load, *, now: float, status: bytes | None = None) -> bool:
        """See the contract."""
        found = await self._pulse.fetch(
            sql.BEAT,
            worker,
            now,
            load.lanes,
            load.in_flight,
            load.free_slots,
            load.waiting,
            load.draining,
            load.delivered_per_s,
            status,
        )
        return bool(found)

    async def worker_status(self) -> list[WorkerStatusRow]:
        """See the contract."""
        return [WorkerStatusRow(*row) for row in await self._general.fetch(sql.READ_STATUS)]

    async def pulse(
        self, *, seen: int, worker: WorkerId | None = None, outbox_above: int | None = None
    ) -> Pulse:
        """See the contract."""
        return await self._pulse.run(partial(self._look, seen=seen, worker=worker, outbox_above=outbox_above))

    async def _look(
        self, connection: Connection, *, seen: int, worker: WorkerId | None, outbox_above: int | None
    ) -> Pulse:
        number = self._session.number(connection)
        backend = connection.get_server_pid()
        asks = self._looks % RIGHTS_EVERY == 0
        self._looks += 1
        asked = VALUES if asks else NOT_ASKED
        values = (seen, worker, backend, self._session.lacks(worker), *asked)
        has_outbox_rows = None
        try:
            if outbox_above is None:
                found = await connection.fetch(sql.PULSE, *values)
            else:
                found = await connection.fetch(sql.PULSE_AND_OUTBOX, *values, outbox_above)
                has_outbox_rows = found[0]["has_outbox_rows"]
        except (asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedTableError):
            if outbox_above is None:
                raise
            # Without the right to read the outbox everything else goes on.
            found = await connection.fetch(sql.PULSE, *values)
        first = found[0]
        if first["is_read_only"]:
            # A process that cannot write must not send, because it could settle nothing, nor watch heartbeats, because
            # nobody can write them.
            await refuse_read_only(connection)
        is_own = first["backend"] == backend
        has_session = any(row["id"] == worker and row["has_session"] for row in found)
        was_absent = is_own and has_session and self._session.lacks(worker)
        if has_session and not is_own:
            await connection.execute(sql.UNREGISTER_SESSION, worker)
        if first["serves"] > own_level():
            await refuse_if_outgrown(connection, serves=first["serves"])
        if worker is not None and first["took"]:
            self._session.holds(connection, worker)
        return Pulse(
            now=first["now"],
            workers=tuple(read_worker(row) for row in found if row["id"] is not None),
            changes=tuple(Change(*change) for change in first["changes"]),
            wakes_at=FOREVER if first["wakes_at"] is None else first["wakes_at"],
            # A session sees its own locks as free.
            gone=frozenset(row["id"] for row in found if row["is_gone"]) - self._session.held,
            session=number if is_own else None,
            was_absent=was_absent,
            refusal=refusal(first["lacking"]) if asks else None,
            has_outbox_rows=has_outbox_rows,
        )

    async def list_workers(self, *, after: WorkerId | None, limit: int) -> list[WorkerRow]:
        """See the contract."""
        return [read_worker(row) for row in await self._general.fetch(sql.LIST_WORKERS, after, limit)]

    async def bury(self, worker: WorkerId, *, beat: int, now: float) -> bool:
        """See the contract."""
        found = await self._general.fetch(sql.BURY, worker, beat, now)
        return bool(found) and bool(found[0]["buried"])

    async def free(self, worker: WorkerId, *, now: float) -> list[EndpointId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.FREE, worker, now, FREE_CHUNK)
        return [row["endpoint_id"] for row in found]

    @in_transaction
    async def retire(self, connection: Connection, worker: WorkerId) -> None:
        """See the contract."""
        await connection.fetch(sql.LOCK_WORKER, worker)
        await connection.fetch(sql.FORGET_STATUS, worker)
        await connection.fetch(sql.RETIRE, worker)


def read_worker(row: Any) -> WorkerRow:
    return WorkerRow(
        id=row["id"],
        kind=row["kind"],
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        started_at=row["started_at"],
        seen_at=row["seen_at"],
        beat=row["beat"],
        load=Load(
            row["lanes"],
            row["in_flight"],
            row["free_slots"],
            row["waiting"],
            row["draining"],
            spoiled_rows.finite(row["delivered_per_s"]),
        ),
        buried=row["buried"],
    )
