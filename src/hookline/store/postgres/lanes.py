"""Carries out the verbs about lanes on PostgreSQL: take, load, settle, release, wake."""

from collections.abc import Sequence
from functools import partial
from struct import pack
from typing import Any

from hookline.model import (
    DeliveryId,
    EndpointId,
    Outcome,
    Queue,
    State,
    WorkerId,
)
from hookline.store.contract.lanes import (
    GONE,
    INLINE_PAYLOAD_BYTES,
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
from hookline.store.postgres import sql
from hookline.store.postgres.driver.pool import Connection
from hookline.store.postgres.driver.sessions import PostgresSessions
from hookline.store.postgres.driver.values import Columns, column, json_text, jsons, texts, unusual

_BEFORE_ALL = EndpointId(bytes(16))
# Calling an enum costs more than the rest of a row.
_QUEUES = {queue.value: queue for queue in Queue}


class PostgresLanes(PostgresSessions):
    """The contract's verbs about lanes."""

    async def take(self, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
        """See the contract."""
        found = await self._lanes.fetch(sql.TAKE, worker, now, limit)
        return sorted(map(read_taken, found), key=lambda lane: lane.woke_at)

    async def take_these(
        self,
        worker: WorkerId,
        lanes: Sequence[EndpointId],
        *,
        copies: Sequence[DeliveryId] = (),
        now: float,
    ) -> list[Taken]:
        """See the contract."""
        found = await self._lanes.fetch(sql.TAKE_THESE, worker, lanes, now, copies)
        return [read_taken(row, copies=untouched) for *row, untouched in found]

    async def owned(self, worker: WorkerId) -> list[Taken]:
        """See the contract."""
        return [read_taken(row) for row in await self._lanes.fetch(sql.OWNED, worker)]

    async def load(self, wants: Sequence[Want], *, known: Sequence[DeliveryId], now: float) -> list[Loaded]:
        """See the contract."""
        found = await self._loads.fetch(
            sql.LOAD,
            [want.endpoint_id for want in wants],
            [want.ready for want in wants],
            [want.timed for want in wants],
            [want.floor for want in wants],
            [want.due_floor for want in wants],
            known,
            now,
            INLINE_PAYLOAD_BYTES,
        )
        return [read_loaded(row) for row in found]

    async def settle(
        self,
        worker: WorkerId,
        batch: Sequence[Settlement],
        *,
        notes: Sequence[LaneNote] = (),
        log: LatencyLog | None = None,
        now: float,
        announce: bool = False,
    ) -> list[Verdict]:
        """See the contract."""
        # Rows are locked in the order of the batch: sorted, two batches cannot wait for each other.
        order = sorted(range(len(batch)), key=lambda n: batch[n].attempt.delivery_id)
        ordered = [batch[n] for n in order]
        values = (worker, *settlement_columns(ordered), now, *note_columns(notes), *_log_values(log, order))
        if all(settlement.gone is None for settlement in ordered):
            missed = await self._settle.fetch(sql.SETTLE_AND_ANNOUNCE if announce else sql.SETTLE, *values)
        else:
            missed = await self._settle.transaction(
                partial(_settle_and_disable, ordered, values, now=now, announce=announce)
            )
        verdicts = [Verdict.APPLIED] * len(batch)
        repeated: list[int] = []
        for n, recorded in missed:
            verdicts[order[n]] = Verdict.LATE
            if not recorded:
                repeated.append(order[n])
        if repeated:
            attempts = [batch[n].attempt for n in repeated]
            found = await self._settle.fetch(
                sql.SETTLE_WAS,
                [attempt.delivery_id for attempt in attempts],
                [attempt.id for attempt in attempts],
            )
            counted = {row["id"] for row in found if not row["late"]}
            for n in repeated:
                if batch[n].attempt.id in counted:
                    verdicts[n] = Verdict.REPEATED
        return verdicts

    async def note(
        self, worker: WorkerId, notes: Sequence[LaneNote], *, now: float, announce: bool = False
    ) -> list[EndpointId]:
        """See the contract."""
        values = (worker, *note_columns(notes))
        if announce:
            found = await self._lanes.fetch(sql.NOTE_AND_ANNOUNCE, *values, now)
        else:
            found = await self._lanes.fetch(sql.NOTE, *values)
        return [row["endpoint_id"] for row in found]

    async def mark(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.MARK, worker, *suspect_columns(suspects))
        return [row["id"] for row in found]

    async def condemn(
        self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float, announce: bool = False
    ) -> list[DeliveryId]:
        """See the contract."""
        statement = sql.CONDEMN_AND_ANNOUNCE if announce else sql.CONDEMN
        found = await self._lanes.fetch(statement, worker, *suspect_columns(suspects), now)
        return [row["id"] for row in found]

    async def release(self, worker: WorkerId, releases: Sequence[Release], *, now: float) -> list[EndpointId]:
        """See the contract."""
        found = await self._lanes.fetch(sql.RELEASE, worker, *release_columns(releases))
        return [row["endpoint_id"] for row in found]

    async def wake(self, lanes: Sequence[EndpointId], *, now: float) -> None:
        """See the contract."""
        await self._lanes.fetch(sql.WAKE, lanes, now)

    async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
        """See the contract."""
        [found] = await self._lanes.fetch(sql.SWEEP, after or _BEFORE_ALL, now, SWEEP_CHUNK)
        return found["last"] if found["looked_at"] == SWEEP_CHUNK else None

    async def lanes(self, ids: Sequence[EndpointId]) -> list[LaneRow]:
        """See the contract."""
        return [read_lane(row) for row in await self._general.fetch(sql.READ_LANES, ids)]


async def _settle_and_disable(
    batch: Sequence[Settlement],
    values: Sequence[object],
    connection: Connection,
    *,
    now: float,
    announce: bool,
) -> list[Any]:
    """Settle, and disable the endpoints that are gone, in one commit; the rows of SETTLE."""
    gone = [(n, each) for n, each in enumerate(batch) if each.gone is not None]
    await connection.fetch(sql.LOCK_GONE, sorted({each.endpoint_id for _, each in gone}))
    missed: list[Any] = await connection.fetch(sql.SETTLE_AND_ANNOUNCE if announce else sql.SETTLE, *values)
    late = {row["n"] for row in missed}
    for id, asked in sorted({(each.endpoint_id, each.gone) for n, each in gone if n not in late}):
        if await connection.fetch(sql.DISABLE_GONE, id, asked, GONE, now):
            await connection.fetch(sql.PAUSE_GONE, id)
            if announce:
                await connection.fetch(sql.ANNOUNCE_DISABLED, id, now)
            await connection.fetch(sql.WRITE_CHANGE, id, "endpoint", now)
    return missed


def _log_values(log: LatencyLog | None, order: Sequence[int]) -> tuple[Any, ...]:
    """What SETTLE logs; it names late attempts by their positions in the batch, which it gets in another order.

    The positions are bound as 16-bit words: as a list they cost ten times as much, and nearly no batch needs them.
    """
    if log is None:
        return None, 0.0, b"", b""
    return log.n, log.minute, log.samples, pack(f"<{len(order)}H", *order)


def settlement_columns(batch: Sequence[Settlement]) -> Columns:
    """The arrays of SETTLE."""
    attempts = [settlement.attempt for settlement in batch]
    timings = [attempt.timings for attempt in attempts]
    return [
        [attempt.id for attempt in attempts],
        [attempt.delivery_id for attempt in attempts],
        [settlement.endpoint_id for settlement in batch],
        [settlement.epoch for settlement in batch],
        unusual([attempt.number for attempt in attempts], 1),
        unusual([attempt.replays for attempt in attempts], 0),
        unusual([settlement.state for settlement in batch], State.DELIVERED),
        column([each.due_at if each.state is State.PENDING else None for each in batch]),
        column([settlement.reason for settlement in batch]),
        [attempt.at for attempt in attempts],
        unusual([attempt.outcome for attempt in attempts], Outcome.ACCEPTED),
        [attempt.duration for attempt in attempts],
        column([attempt.status for attempt in attempts]),
        column([attempt.error for attempt in attempts]),
        texts([attempt.error_detail for attempt in attempts]),
        column([timing.dns for timing in timings]),
        column([timing.connect for timing in timings]),
        column([timing.tls for timing in timings]),
        column([timing.first_byte for timing in timings]),
        texts([attempt.request_url for attempt in attempts]),
        jsons([attempt.request_headers for attempt in attempts]),
        jsons([attempt.response_headers for attempt in attempts]),
        column([attempt.response_body or None for attempt in attempts]),
        column([attempt.response_truncated or None for attempt in attempts]),
        texts([attempt.final_url for attempt in attempts]),
    ]


def note_columns(notes: Sequence[LaneNote]) -> Columns:
    """The arrays of NOTE, which SETTLE ends with; of several notes on one lane the last one wins."""
    last = list({(note.endpoint_id, note.epoch): note for note in notes}.values())
    circuits = [note.circuit for note in last]
    return [
        column([note.endpoint_id for note in last]),
        column([note.epoch for note in last]),
        column([note.hold_until for note in last]),
        column([note.head for note in last]),
        column([circuit.state for circuit in circuits]),
        column([circuit.failures for circuit in circuits]),
        column([json_text(circuit.slices) if circuit.slices else None for circuit in circuits]),
        column([circuit.cooldown for circuit in circuits]),
        column([circuit.opened_at for circuit in circuits]),
        column([circuit.probe_at for circuit in circuits]),
        texts([circuit.reason for circuit in circuits]),
        column([circuit.last_success_at for circuit in circuits]),
        column([circuit.last_failure_at for circuit in circuits]),
        column([note.applied for note in last]),
        column([note.rest_until for note in last]),
    ]


def suspect_columns(suspects: Sequence[Suspect]) -> Columns:
    """The arrays of MARK and CONDEMN."""
    return [
        [suspect.delivery_id for suspect in suspects],
        [suspect.endpoint_id for suspect in suspects],
        [suspect.epoch for suspect in suspects],
        [suspect.replays for suspect in suspects],
    ]


def release_columns(releases: Sequence[Release]) -> Columns:
    """The arrays of RELEASE."""
    return [
        [release.endpoint_id for release in releases],
        [release.epoch for release in releases],
        [release.wake_at for release in releases],
        column([release.tokens for release in releases]),
        column([release.tokens_at for release in releases]),
        [release.suspect for release in releases],
    ]


def read_loaded(row: Any) -> Loaded:
    id, endpoint_id, queue, *rest = row
    return Loaded(id, endpoint_id, _QUEUES[queue], *rest)
