"""Carries out the verbs about workers on SQLite."""

import sqlite3

from hookline.model import FOREVER, EndpointId, WorkerId
from hookline.store.contract import FREE_CHUNK, SWEEP_CHUNK, Change, Load, Taken, WorkerRow
from hookline.store.sqlite import sql
from hookline.store.sqlite.rows import ABOVE_ALL_IDS, load_values, read_taken, read_worker, worker_values
from hookline.store.sqlite.schema import refuse_if_outgrown


def register(connection: sqlite3.Connection, worker: WorkerRow) -> None:
    connection.execute(sql.REGISTER, worker_values(worker))


def beat(connection: sqlite3.Connection, worker: WorkerId, load: Load, *, now: float) -> bool:
    connection.execute(sql.BEAT_CLOCK, {"now": now})
    return connection.execute(sql.BEAT, {"worker": worker, "now": now, **load_values(load)}).rowcount == 1


class Look:
    """What a pulse reads; `version` is SQLite's count of the commits of other connections."""

    def __init__(self, connection: sqlite3.Connection, *, seen: int) -> None:
        refuse_if_outgrown(connection)
        (self.version,) = connection.execute(sql.PULSE_FOREIGN).fetchone()
        (self.written,) = connection.execute(sql.PULSE_CLOCK).fetchone()
        self.workers = tuple(map(read_worker, connection.execute(sql.PULSE_WORKERS).fetchall()))
        changes = connection.execute(sql.PULSE_CHANGES, {"seen": seen}).fetchall()
        self.changes = tuple(Change(*row) for row in changes)
        wakes = connection.execute(sql.PULSE_WAKES).fetchone()
        self.wakes_at: float = FOREVER if wakes is None else wakes[0]


def listed(connection: sqlite3.Connection, *, after: WorkerId | None, limit: int) -> list[WorkerRow]:
    values = {"before": after or ABOVE_ALL_IDS, "limit": limit}
    return [read_worker(row) for row in connection.execute(sql.LIST_WORKERS, values)]


def owned(connection: sqlite3.Connection, worker: WorkerId) -> list[Taken]:
    return [read_taken(row) for row in connection.execute(sql.OWNED, {"worker": worker}).fetchall()]


def bury(connection: sqlite3.Connection, worker: WorkerId, *, beat: int, now: float) -> bool:
    connection.execute(sql.BURY, {"worker": worker, "beat": beat, "now": now})
    (buried,) = connection.execute(sql.IS_BURIED, {"worker": worker}).fetchone()
    return bool(buried)


def free(connection: sqlite3.Connection, worker: WorkerId, *, now: float) -> list[EndpointId]:
    rows = connection.execute(sql.FREE, {"worker": worker, "limit": FREE_CHUNK, "now": now}).fetchall()
    return [row[0] for row in rows]


def sweep(connection: sqlite3.Connection, *, after: EndpointId | None, now: float) -> EndpointId | None:
    start = after or b""
    found, last = connection.execute(sql.SWEEP_RANGE, {"after": start, "limit": SWEEP_CHUNK}).fetchone()
    if found:
        connection.execute(sql.SWEEP, {"after": start, "last": last, "now": now})
    return last if found == SWEEP_CHUNK else None


def retire(connection: sqlite3.Connection, worker: WorkerId) -> None:
    connection.execute(sql.RETIRE, {"worker": worker})
