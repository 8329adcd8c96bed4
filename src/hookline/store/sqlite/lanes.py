"""Carries out the verbs about lanes on SQLite: take, load, settle, release, wake."""

import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter

from hookline.model import (
    Attempt,
    DeliveryId,
    EndpointId,
    Queue,
    Reason,
    State,
    WorkerId,
)
from hookline.store.contract.lanes import (
    GONE,
    SWEEP_CHUNK,
    LaneNote,
    LaneRow,
    Loaded,
    Release,
    Settlement,
    Suspect,
    Taken,
    Verdict,
    Want,
)
from hookline.store.contract.measuring.latency import LatencyLog
from hookline.store.lane_row import read_lane, read_taken
from hookline.store.sqlite import sql
from hookline.store.sqlite.driver.bulk import Row, returned_rows, write_rows
from hookline.store.sqlite.driver.connections import SqliteConnections, on_lister, on_loader, on_writer
from hookline.store.sqlite.driver.values import NO_DURATION, NO_STATUS, NO_TEXT, NO_TIME, json_text, packed
from hookline.store.sqlite.workers import write_change

_phases = attrgetter("dns", "connect", "tls", "first_byte")
_QUEUES = {queue.value: queue for queue in Queue}


class SqliteLanes(SqliteConnections):
    """The contract's verbs about lanes."""

    @on_writer
    def take(
        self, connection: sqlite3.Connection, worker: WorkerId, *, limit: int, now: float
    ) -> list[Taken]:
        """Take up to `limit` free lanes whose `wake_at` has come, earliest first."""
        rows = connection.execute(sql.TAKE, {"worker": worker, "limit": limit, "now": now}).fetchall()
        # Sorted here: RETURNING keeps no order.
        return sorted(map(read_taken, rows), key=lambda lane: (lane.woke_at, lane.endpoint_id))

    @on_writer
    def take_these(
        self,
        connection: sqlite3.Connection,
        worker: WorkerId,
        lanes: Sequence[EndpointId],
        *,
        copies: Sequence[DeliveryId] = (),
        now: float,
    ) -> list[Taken]:
        """Take the ones of these lanes that are free, not paused and not held back."""
        values = {"worker": worker, "ids": packed(lanes), "now": now}
        taken = connection.execute(sql.TAKE_THESE, values).fetchall()
        if not copies:
            return [read_taken(row) for row in taken]
        untouched = dict(connection.execute(sql.COUNT_COPIES, {"ids": packed(copies)}).fetchall())
        return [read_taken(row, copies=untouched.get(row[0], 0)) for row in taken]

    @on_loader
    def owned(self, connection: sqlite3.Connection, worker: WorkerId) -> list[Taken]:
        """The lanes that name this worker as owner."""
        return [read_taken(row) for row in connection.execute(sql.OWNED, {"worker": worker}).fetchall()]

    @on_loader
    def load(
        self,
        connection: sqlite3.Connection,
        wants: Sequence[Want],
        *,
        known: Sequence[DeliveryId],
        now: float,
    ) -> list[Loaded]:
        """Pending deliveries of these lanes, except those in `known`."""
        wanted = [
            (want.endpoint_id, want.ready, want.timed, want.floor, want.due_floor, now) for want in wants
        ]
        rows = returned_rows(connection, sql.LOAD, wanted, first=(packed(known),))
        found = [read_loaded(row) for row in rows]
        ready = [delivery for delivery in found if delivery.queue is Queue.READY]
        timed = [delivery for delivery in found if delivery.queue is Queue.TIMED]
        ready.sort(key=lambda delivery: delivery.seq)
        timed.sort(key=lambda delivery: (delivery.due_at, delivery.id))
        return ready + timed

    @on_writer
    def settle(
        self,
        connection: sqlite3.Connection,
        worker: WorkerId,
        batch: Sequence[Settlement],
        *,
        notes: Sequence[LaneNote] = (),
        log: LatencyLog | None = None,
        now: float,
        announce: bool = False,
    ) -> list[Verdict]:
        """Fenced: attempt, delivery and notes in one commit; one verdict for each settlement, in order."""
        if notes:
            write_notes(connection, worker, notes, now=now, announce=announce)
        verdicts = _settle_all(connection, worker, batch, now=now)
        if log is not None:
            _keep(connection, worker, log, verdicts)
        gone = [n for n, settlement in enumerate(batch) if settlement.gone is not None]
        if gone:
            applied = [batch[n] for n in gone if verdicts[n] is Verdict.APPLIED]
            _disable(connection, applied, now=now, announce=announce)
        if announce:
            _announce_deaths(
                connection,
                [
                    (each.attempt.delivery_id, "" if each.reason is None else each.reason.value)
                    for each, verdict in zip(batch, verdicts, strict=True)
                    if each.state is State.DEAD and verdict is Verdict.APPLIED
                ],
                now=now,
            )
        return verdicts

    @on_writer
    def note(
        self,
        connection: sqlite3.Connection,
        worker: WorkerId,
        notes: Sequence[LaneNote],
        *,
        now: float,
        announce: bool = False,
    ) -> list[EndpointId]:
        """Fenced: store notes alone; the lanes that were still owned."""
        return write_notes(connection, worker, notes, now=now, announce=announce)

    @on_writer
    def mark(
        self, connection: sqlite3.Connection, worker: WorkerId, suspects: Sequence[Suspect], *, now: float
    ) -> list[DeliveryId]:
        """Fenced: add one mark to pending deliveries before they are sent; the ones that were marked."""
        return _change_suspects(connection, sql.MARK, worker, suspects, now=now)

    @on_writer
    def condemn(
        self,
        connection: sqlite3.Connection,
        worker: WorkerId,
        suspects: Sequence[Suspect],
        *,
        now: float,
        announce: bool = False,
    ) -> list[DeliveryId]:
        """Fenced: pending -> dead (`crash_limit`), without an attempt; those that are dead now."""
        if announce:
            pending = _change_suspects(connection, sql.SUSPECTS_PENDING, worker, suspects, now=now)
            reason = Reason.CRASH_LIMIT.value
            _announce_deaths(connection, [(id, reason) for id in pending], now=now)
        return _change_suspects(connection, sql.CONDEMN, worker, suspects, now=now)

    @on_writer
    def release(
        self, connection: sqlite3.Connection, worker: WorkerId, releases: Sequence[Release], *, now: float
    ) -> list[EndpointId]:
        """Fenced: release lanes; the ones that were released."""
        rows = [
            (lane.endpoint_id, lane.epoch, lane.wake_at, lane.tokens, lane.tokens_at, lane.suspect)
            for lane in releases
        ]
        return [row[0] for row in returned_rows(connection, sql.RELEASE, rows, first=(worker,))]

    @on_writer
    def wake(self, connection: sqlite3.Connection, lanes: Sequence[EndpointId], *, now: float) -> None:
        """Lower `wake_at` of the free ones of these lanes to what their rows need."""
        connection.execute(sql.WAKE, {"ids": packed(lanes), "now": now})

    @on_writer
    def sweep(
        self, connection: sqlite3.Connection, *, after: EndpointId | None, now: float
    ) -> EndpointId | None:
        """Wake the free ones of the next SWEEP_CHUNK lanes after this id; the id to continue from."""
        start = after or b""
        found, last = connection.execute(sql.SWEEP_RANGE, {"after": start, "limit": SWEEP_CHUNK}).fetchone()
        if found:
            connection.execute(sql.SWEEP, {"after": start, "last": last, "now": now})
        return last if found == SWEEP_CHUNK else None

    @on_lister
    def lanes(self, connection: sqlite3.Connection, ids: Sequence[EndpointId]) -> list[LaneRow]:
        """The ones of these that exist."""
        return [read_lane(row) for row in connection.execute(sql.READ_LANES, {"ids": packed(ids)})]


def write_notes(
    connection: sqlite3.Connection,
    worker: WorkerId,
    notes: Sequence[LaneNote],
    *,
    now: float,
    announce: bool = False,
) -> list[EndpointId]:
    """Store notes; the lanes that were still owned."""
    if announce:
        last = {(note.endpoint_id, note.epoch): note.circuit for note in notes}
        circuits = [
            (*lane, circuit.state.value, NO_TEXT if circuit.reason is None else circuit.reason, now)
            for lane, circuit in last.items()
        ]
        write_rows(connection, sql.ANNOUNCE_CIRCUITS, circuits, first=(worker,))
    return sorted(row[0] for row in returned_rows(connection, sql.NOTE, note_rows(notes), first=(worker,)))


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


def _keep(
    connection: sqlite3.Connection, worker: WorkerId, log: LatencyLog, verdicts: Sequence[Verdict]
) -> None:
    """Log the attempts of a batch, with the positions of those that were not applied now."""
    late = [str(n) for n, verdict in enumerate(verdicts) if verdict is not Verdict.APPLIED]
    values = {"worker": worker, "n": log.n, "minute": log.minute, "samples": log.samples}
    connection.execute(sql.SETTLE_LOG, {**values, "late": ",".join(late) or None})


def _announce_deaths(
    connection: sqlite3.Connection, dead: Sequence[tuple[DeliveryId, str]], *, now: float
) -> None:
    """Announce deliveries that died just now, with their reasons."""
    write_rows(connection, sql.ANNOUNCE_DEATHS, [(*each, now) for each in dead])


def _disable(
    connection: sqlite3.Connection, gone: Sequence[Settlement], *, now: float, announce: bool
) -> None:
    for id, asked in sorted({(each.endpoint_id, each.gone) for each in gone}):
        values = {"id": id, "asked": asked, "reason": GONE, "now": now}
        if connection.execute(sql.DISABLE_GONE, values).rowcount:
            connection.execute(sql.PAUSE_GONE, {"id": id})
            if announce:
                connection.execute(sql.ANNOUNCE_DISABLED, {"id": id, "now": now})
            write_change(connection, id, kind="endpoint", now=now)


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


def note_rows(notes: Iterable[LaneNote]) -> list[Row]:
    """What NOTE writes; of several notes on one lane the last one wins."""
    last = {(note.endpoint_id, note.epoch): note for note in notes}
    return [
        (
            note.endpoint_id,
            note.epoch,
            note.hold_until,
            note.head,
            note.circuit.state.value,
            note.circuit.failures,
            json_text(note.circuit.slices) if note.circuit.slices else None,
            note.circuit.cooldown,
            note.circuit.opened_at,
            note.circuit.probe_at,
            note.circuit.reason,
            note.circuit.last_success_at,
            note.circuit.last_failure_at,
            note.applied,
            note.rest_until,
        )
        for note in last.values()
    ]


def settled_row(settlement: Settlement, *, now: float) -> Row:
    """The delivery's row after the settlement."""
    attempt, state = settlement.attempt, settlement.state
    return (
        bytearray(attempt.delivery_id),
        bytearray(settlement.endpoint_id),
        settlement.epoch,
        attempt.number,
        attempt.replays,
        state.value,
        settlement.due_at,
        NO_TIME if state is State.PENDING else now,
        NO_TEXT if settlement.reason is None else settlement.reason.value,
        NO_STATUS if attempt.status is None else attempt.status,
        NO_TEXT if attempt.error is None else attempt.error.value,
    )


def attempt_row(attempt: Attempt, *, late: bool) -> Row:
    dns, connect, tls, first_byte = _phases(attempt.timings)
    return (
        bytearray(attempt.delivery_id),
        bytearray(attempt.id),
        attempt.number,
        attempt.replays,
        int(late),
        attempt.at,
        attempt.outcome.value,
        attempt.duration,
        NO_STATUS if attempt.status is None else attempt.status,
        NO_TEXT if attempt.error is None else attempt.error.value,
        NO_TEXT if attempt.error_detail is None else attempt.error_detail,
        NO_DURATION if dns is None else dns,
        NO_DURATION if connect is None else connect,
        NO_DURATION if tls is None else tls,
        NO_DURATION if first_byte is None else first_byte,
        NO_TEXT if attempt.request_url is None else attempt.request_url,
        NO_TEXT if attempt.request_headers is None else json_text(attempt.request_headers),
        NO_TEXT if attempt.response_headers is None else json_text(attempt.response_headers),
        bytearray(attempt.response_body),
        int(attempt.response_truncated),
        NO_TEXT if attempt.final_url is None else attempt.final_url,
    )


def read_loaded(row: Row) -> Loaded:
    id, endpoint_id, queue, *rest = row
    return Loaded(id, endpoint_id, _QUEUES[queue], *rest)
