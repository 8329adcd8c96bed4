"""Carries out the verbs of a lane's owner on SQLite: take, load, settle, release, wake."""

import sqlite3
from collections.abc import Sequence

from hookline.errors import NotFound
from hookline.ids import show
from hookline.model import DeliveryId, EndpointId, EventId, Queue, WorkerId
from hookline.store.contract import GONE, LaneNote, Loaded, Release, Settlement, Suspect, Taken, Verdict, Want
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.bulk import returned_rows, write_rows
from hookline.store.sqlite.operators import write_change
from hookline.store.sqlite.rows import attempt_row, note_rows, packed, read_loaded, read_taken, settled_row


def take(connection: sqlite3.Connection, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
    """Take lanes, sorted by `wake_at` here: RETURNING keeps no order."""
    rows = connection.execute(sql.TAKE, {"worker": worker, "limit": limit, "now": now}).fetchall()
    return sorted(map(read_taken, rows), key=lambda lane: (lane.woke_at, lane.endpoint_id))


def take_these(
    connection: sqlite3.Connection, worker: WorkerId, lanes: Sequence[EndpointId], *, now: float
) -> list[Taken]:
    values = {"worker": worker, "ids": packed(lanes), "now": now}
    return [read_taken(row) for row in connection.execute(sql.TAKE_THESE, values).fetchall()]


def load(
    connection: sqlite3.Connection, wants: Sequence[Want], *, known: Sequence[DeliveryId], now: float
) -> list[Loaded]:
    wanted = [(want.endpoint_id, want.ready, want.timed, want.floor, want.due_floor, now) for want in wants]
    rows = returned_rows(connection, sql.LOAD, wanted, first=(packed(known),))
    found = [read_loaded(row) for row in rows]
    ready = [delivery for delivery in found if delivery.queue is Queue.READY]
    timed = [delivery for delivery in found if delivery.queue is Queue.TIMED]
    ready.sort(key=lambda delivery: delivery.seq)
    timed.sort(key=lambda delivery: (delivery.due_at, delivery.id))
    return ready + timed


def payload(connection: sqlite3.Connection, event: EventId) -> bytes:
    row = connection.execute(sql.READ_PAYLOAD, {"id": event}).fetchone()
    if row is None:
        raise NotFound("event", show("event", event))
    return row[0]  # type: ignore[no-any-return]


def settle(
    connection: sqlite3.Connection,
    worker: WorkerId,
    batch: Sequence[Settlement],
    *,
    notes: Sequence[LaneNote],
    now: float,
) -> list[Verdict]:
    if notes:
        note(connection, worker, notes)
    verdicts = _settle_all(connection, worker, batch, now=now)
    gone = [n for n, settlement in enumerate(batch) if settlement.gone is not None]
    if gone:
        _disable(connection, [batch[n] for n in gone if verdicts[n] is Verdict.APPLIED], now=now)
    return verdicts


def _disable(connection: sqlite3.Connection, gone: Sequence[Settlement], *, now: float) -> None:
    for id, asked in sorted({(each.endpoint_id, each.gone) for each in gone}):
        values = {"id": id, "asked": asked, "reason": GONE, "now": now}
        if connection.execute(sql.DISABLE_GONE, values).rowcount:
            connection.execute(sql.PAUSE_GONE, {"id": id})
            write_change(connection, id, kind="endpoint", now=now)


def _settle_all(
    connection: sqlite3.Connection, worker: WorkerId, batch: Sequence[Settlement], *, now: float
) -> list[Verdict]:
    """Settle all at once if all of them apply, as they nearly always do; otherwise one by one."""
    connection.execute("SAVEPOINT all_at_once")
    moved = write_rows(
        connection,
        sql.SETTLE_DELIVERIES,
        [settled_row(settlement, now=now) for settlement in batch],
        first=(worker,),
    )
    if moved == len(batch):
        kept = write_rows(
            connection,
            sql.SETTLE_ATTEMPTS,
            [attempt_row(settlement.attempt, late=settlement.attempt.late) for settlement in batch],
        )
        if kept == len(batch):
            connection.execute("RELEASE all_at_once")
            return [Verdict.APPLIED] * len(batch)
    connection.execute("ROLLBACK TO all_at_once")
    connection.execute("RELEASE all_at_once")
    return [_settle_one(connection, worker, settlement, now=now) for settlement in batch]


def _settle_one(
    connection: sqlite3.Connection, worker: WorkerId, settlement: Settlement, *, now: float
) -> Verdict:
    attempt = settlement.attempt
    before = connection.execute(
        sql.SETTLE_WAS, {"delivery": attempt.delivery_id, "id": attempt.id}
    ).fetchone()
    if before is not None:
        return Verdict.LATE if before[0] else Verdict.REPEATED
    moved = write_rows(connection, sql.SETTLE_DELIVERIES, [settled_row(settlement, now=now)], first=(worker,))
    write_rows(connection, sql.SETTLE_ATTEMPTS, [attempt_row(attempt, late=not moved)])
    return Verdict.APPLIED if moved else Verdict.LATE


def note(connection: sqlite3.Connection, worker: WorkerId, notes: Sequence[LaneNote]) -> list[EndpointId]:
    return sorted(row[0] for row in returned_rows(connection, sql.NOTE, note_rows(notes), first=(worker,)))


def mark(
    connection: sqlite3.Connection, worker: WorkerId, suspects: Sequence[Suspect], *, now: float
) -> list[DeliveryId]:
    return _change_suspects(connection, sql.MARK, worker, suspects, now=now)


def condemn(
    connection: sqlite3.Connection, worker: WorkerId, suspects: Sequence[Suspect], *, now: float
) -> list[DeliveryId]:
    return _change_suspects(connection, sql.CONDEMN, worker, suspects, now=now)


def _change_suspects(
    connection: sqlite3.Connection,
    statement: str,
    worker: WorkerId,
    suspects: Sequence[Suspect],
    *,
    now: float,
) -> list[DeliveryId]:
    rows = [
        (suspect.delivery_id, suspect.endpoint_id, suspect.epoch, suspect.replays, now)
        for suspect in suspects
    ]
    return [row[0] for row in returned_rows(connection, statement, rows, first=(worker,))]


def release(
    connection: sqlite3.Connection, worker: WorkerId, releases: Sequence[Release]
) -> list[EndpointId]:
    rows = [
        (lane.endpoint_id, lane.epoch, lane.wake_at, lane.tokens, lane.tokens_at, lane.suspect)
        for lane in releases
    ]
    return [row[0] for row in returned_rows(connection, sql.RELEASE, rows, first=(worker,))]


def wake(connection: sqlite3.Connection, lanes: Sequence[EndpointId], *, now: float) -> None:
    connection.execute(sql.WAKE, {"ids": packed(lanes), "now": now})
