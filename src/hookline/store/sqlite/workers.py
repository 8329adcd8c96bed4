"""Keeps workers in SQLite, with the numbered changes that they read."""

import sqlite3
from functools import partial
from typing import Any

import msgspec

from hookline.errors import StoreUnavailable
from hookline.model import FOREVER, EndpointId, WorkerId
from hookline.store import spoiled_rows
from hookline.store.contract.workers import FREE_CHUNK, Change, Load, Pulse, WorkerRow, WorkerStatusRow
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.bulk import Row
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_writer
from hookline.store.sqlite.driver.values import ABOVE_ALL_IDS
from hookline.store.sqlite.migrations.schema import refuse_if_outgrown


class SqliteWorkers(SqliteConnections):
    """The contract's verbs about workers."""

    _version: int | None = None  # of other connections' writes, at the last pulse

    @on_writer
    def register(self, connection: sqlite3.Connection, worker: WorkerRow) -> None:
        """Add the process to `workers`."""
        connection.execute(sql.REGISTER, worker_values(worker))

    @on_writer
    def beat(
        self,
        connection: sqlite3.Connection,
        worker: WorkerId,
        load: Load,
        *,
        now: float,
        status: bytes | None = None,
    ) -> bool:
        """Count one heartbeat; False when the worker is buried (or gone)."""
        connection.execute(sql.BEAT_CLOCK, {"now": now})
        values = {"worker": worker, "now": now, **load_values(load)}
        is_alive = connection.execute(sql.BEAT, values).rowcount == 1
        if is_alive and status is not None:
            connection.execute(sql.TELL_STATUS, {"worker": worker, "now": now, "status": status})
        return is_alive

    @on_lister
    def worker_status(self, connection: sqlite3.Connection) -> list[WorkerStatusRow]:
        """The status of every worker that is not buried; empty for one that gave none."""
        rows = connection.execute(sql.READ_STATUS)
        return spoiled_rows.read_all(read_status(WorkerStatusRow.__struct_fields__, row) for row in rows)

    async def pulse(
        self, *, seen: int, worker: WorkerId | None = None, outbox_above: int | None = None
    ) -> Pulse:
        """The store's time, all workers, the changes after number `seen`, and when the first free lane wakes.

        On the writer's connection: only there SQLite does not count our own writes as those of others.
        """
        if self._writer is None or self._presence is None:
            raise StoreUnavailable("The store is not open.")
        self._presence.refuse_if_gone()
        look = await self._writer.run(
            partial(PulseRead, seen=seen, outbox_above=outbox_above), transacts=False
        )
        foreign, self._version = look.version != self._version, look.version
        now = self._time.now(written=look.written)
        time = self._time
        return Pulse(
            now,
            look.workers,
            look.changes,
            foreign=foreign,
            wakes_at=look.wakes_at,
            ahead=time.ahead,
            rate=time.rate,
            has_outbox_rows=look.has_outbox_rows,
        )

    @on_lister
    def list_workers(
        self, connection: sqlite3.Connection, *, after: WorkerId | None, limit: int
    ) -> list[WorkerRow]:
        """Newest first, from below the id `after`, buried ones too."""
        values = {"before": after or ABOVE_ALL_IDS, "limit": limit}
        return spoiled_rows.read_all(map(read_worker, connection.execute(sql.LIST_WORKERS, values)))

    @on_writer
    def bury(self, connection: sqlite3.Connection, worker: WorkerId, *, beat: int, now: float) -> bool:
        """Declare a worker dead if its heartbeat count is still this one; True if it is buried now (or was before)."""
        connection.execute(sql.BURY, {"worker": worker, "beat": beat, "now": now})
        (buried,) = connection.execute(sql.IS_BURIED, {"worker": worker}).fetchone()
        return bool(buried)

    @on_writer
    def free(self, connection: sqlite3.Connection, worker: WorkerId, *, now: float) -> list[EndpointId]:
        """Release up to FREE_CHUNK lanes of a buried worker."""
        rows = connection.execute(sql.FREE, {"worker": worker, "limit": FREE_CHUNK, "now": now}).fetchall()
        return [row[0] for row in rows]

    @on_writer
    def retire(self, connection: sqlite3.Connection, worker: WorkerId) -> None:
        """Delete the worker's row, if no lane names it."""
        connection.execute(sql.FORGET_STATUS, {"worker": worker})
        connection.execute(sql.RETIRE, {"worker": worker})


class PulseRead:
    """What a pulse reads; `version` is SQLite's count of the commits of other connections."""

    def __init__(self, connection: sqlite3.Connection, *, seen: int, outbox_above: int | None) -> None:
        refuse_if_outgrown(connection)
        (self.version,) = connection.execute(sql.PULSE_FOREIGN).fetchone()
        (self.written,) = connection.execute(sql.PULSE_CLOCK).fetchone()
        found = connection.execute(sql.PULSE_WORKERS).fetchall()
        self.workers = tuple(spoiled_rows.read_all(map(read_worker, found)))
        changes = connection.execute(sql.PULSE_CHANGES, {"seen": seen}).fetchall()
        self.changes = tuple(Change(*row) for row in changes)
        wakes = connection.execute(sql.PULSE_WAKES).fetchone()
        self.wakes_at: float = FOREVER if wakes is None else wakes[0]
        self.has_outbox_rows: bool | None = None
        if outbox_above is not None:
            (found,) = connection.execute(sql.PULSE_OUTBOX, {"above": outbox_above}).fetchone()
            self.has_outbox_rows = bool(found)


def write_change(connection: sqlite3.Connection, endpoint: EndpointId, *, kind: str, now: float) -> None:
    """Write one numbered change, for the owners and for every process's catalogue."""
    (n,) = connection.execute(sql.COUNT_CHANGE, {"kind": kind}).fetchone()
    connection.execute(sql.WRITE_CHANGE, {"n": n, "endpoint": endpoint, "kind": kind, "now": now})


def worker_values(worker: WorkerRow) -> dict[str, Any]:
    return {
        "id": worker.id,
        "kind": worker.kind,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "started_at": worker.started_at,
        "seen_at": worker.seen_at,
        "beat": worker.beat,
        **load_values(worker.load),
    }


def load_values(load: Load) -> dict[str, Any]:
    return msgspec.structs.asdict(load)


def read_worker(row: Row) -> WorkerRow | None:
    id, kind, host, pid, version, started_at, seen_at, beat, *load, buried = row
    told = dict(zip(Load.__struct_fields__, load, strict=True))
    told["draining"] = bool(told["draining"])
    told["delivered_per_s"] = spoiled_rows.finite(told["delivered_per_s"])
    values = {
        "id": id,
        "kind": kind,
        "host": host,
        "pid": pid,
        "version": version,
        "started_at": started_at,
        "seen_at": seen_at,
        "beat": beat,
        "load": told,
        "buried": bool(buried),
    }
    return spoiled_rows.read(WorkerRow, values)


def read_status(names: tuple[str, ...], row: Row) -> WorkerStatusRow | None:
    return spoiled_rows.read(WorkerStatusRow, dict(zip(names, row, strict=True)), {"status": b""})
