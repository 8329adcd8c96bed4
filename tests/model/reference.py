"""The store's contract in plain Python.

It is as slow and as plain as it can be: dictionaries, no SQL, one thing at a time. It is the reference for the two
real stores and never replaces them in other tests. What people do to endpoints and deliveries is in
`reference_operators`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hookline.ids import delivery_of, event_of
from hookline.model import (
    CLOSED,
    FOREVER,
    LONG_AGO,
    Attempt,
    AttemptId,
    Circuit,
    CircuitState,
    DeliveryId,
    Endpoint,
    EndpointId,
    Event,
    EventId,
    JobId,
    Queue,
    Reason,
    State,
    WorkerId,
)
from hookline.store.contract import (
    INLINE_PAYLOAD_BYTES,
    Acceptance,
    EventFanout,
    Job,
    LaneNote,
    Loaded,
    Prior,
    Release,
    Settlement,
    Suspect,
    Taken,
    Verdict,
    Want,
    WorkerRow,
)


@dataclass
class LaneRow:
    endpoint_id: EndpointId
    paused: bool
    strict: bool
    owner: WorkerId | None = None
    epoch: int = 0
    wake_at: float = FOREVER
    hold_until: float = LONG_AGO
    deleted: bool = False
    suspect: bool = False
    head: DeliveryId | None = None
    circuit: Circuit = CLOSED
    tokens: float | None = None
    tokens_at: float | None = None
    applied: int = 0
    rest_until: float = LONG_AGO


@dataclass
class DeliveryRow:
    id: DeliveryId
    endpoint_id: EndpointId
    due_at: float
    queue: Queue
    state: State = State.PENDING
    attempts: int = 0
    replays: int = 0
    marks: int = 0
    marked_epoch: int | None = None
    done_at: float | None = None
    reason: Reason | None = None
    last_status: int | None = None
    last_error: str | None = None
    death: tuple[Reason | None, float | None, int | None] = (None, None, None)


@dataclass
class KnownWorker:
    id: WorkerId
    beat: int
    buried_at: float | None = None


@dataclass
class Reference:
    """All rows, in the order they were written."""

    events: dict[EventId, Event] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[EventId, bytes]] = field(default_factory=dict)
    deliveries: dict[DeliveryId, DeliveryRow] = field(default_factory=dict)  # insertion order is `seq`
    attempts: dict[tuple[DeliveryId, AttemptId], tuple[Attempt, bool]] = field(default_factory=dict)
    lanes: dict[EndpointId, LaneRow] = field(default_factory=dict)
    endpoints: dict[EndpointId, Endpoint] = field(default_factory=dict)
    workers: dict[WorkerId, KnownWorker] = field(default_factory=dict)
    jobs: dict[JobId, tuple[Job, DeliveryId | None]] = field(default_factory=dict)  # with its cursor
    changes: list[tuple[EndpointId, str]] = field(default_factory=list)  # number 1 first
    catalogue: int = 0  # the number of the last change of an endpoint

    # accepting

    def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        priors = {}
        for publication in batch:
            event = publication.event
            first = self.keys.get((event.account, event.idempotency_key or ""))
            if event.idempotency_key is not None and first is not None and first[0] != event.id:
                of = self.events[first[0]]
                endpoints = tuple(row.endpoint_id for row in self.of_event(of.id))
                priors[event.id] = Prior(of.id, of.type, of.created_at, first[1], endpoints)
        new = [p for p in batch if p.event.id not in priors and p.event.id not in self.events]
        if new and self.catalogue > catalogue:
            return Acceptance(stale=True)
        for publication in new:
            self._write(publication, now=now)
        return Acceptance(stale=False, priors=priors)

    def _write(self, publication: EventFanout, *, now: float) -> None:
        event = publication.event
        self.events[event.id] = event
        if event.idempotency_key is not None:
            self.keys[event.account, event.idempotency_key] = (event.id, publication.digest)
        is_later = event.deliver_at is not None and event.deliver_at > now
        for ordinal, endpoint in enumerate(publication.endpoints):
            id = delivery_of(event.id, ordinal)
            due_at = event.deliver_at if is_later else now
            self.deliveries[id] = DeliveryRow(id, endpoint, due_at, Queue.TIMED if is_later else Queue.READY)

    def of_event(self, event: EventId) -> list[DeliveryRow]:
        return sorted((d for d in self.deliveries.values() if event_of(d.id) == event), key=lambda d: d.id)

    # lanes

    def lives(self, worker: WorkerId) -> bool:
        row = self.workers.get(worker)
        return row is not None and row.buried_at is None

    def owns(self, worker: WorkerId, endpoint: EndpointId, epoch: int) -> bool:
        """The fence."""
        lane = self.lanes[endpoint]
        return self.lives(worker) and lane.owner == worker and lane.epoch == epoch

    def to_take(self, *, now: float) -> list[LaneRow]:
        free = [x for x in self.lanes.values() if x.owner is None and not x.paused]
        return sorted((x for x in free if x.wake_at <= now), key=lambda x: (x.wake_at, x.endpoint_id))

    def take(self, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
        return self._own(worker, self.to_take(now=now)[:limit])

    def take_these(
        self,
        worker: WorkerId,
        lanes: Sequence[EndpointId],
        *,
        copies: Sequence[DeliveryId],
        now: float,
    ) -> list[Taken]:
        asked = [lane for id, lane in sorted(self.lanes.items()) if id in lanes]
        taken = self._own(
            worker, [x for x in asked if x.owner is None and not x.paused and x.hold_until <= now]
        )
        rows = [self.deliveries[id] for id in copies if id in self.deliveries]
        untouched = Counter(
            row.endpoint_id
            for row in rows
            if row.state is State.PENDING and not row.attempts and not row.replays
        )
        return [msgspec.structs.replace(each, copies=untouched[each.endpoint_id]) for each in taken]

    def _own(self, worker: WorkerId, lanes: Iterable[LaneRow]) -> list[Taken]:
        if not self.lives(worker):
            return []
        taken = []
        for lane in lanes:
            lane.owner = worker
            lane.epoch += 1
            taken.append(self._taken(lane))
        return taken

    def _taken(self, lane: LaneRow) -> Taken:
        return Taken(
            lane.endpoint_id,
            lane.epoch,
            lane.wake_at,
            lane.hold_until,
            lane.suspect,
            lane.head,
            lane.circuit,
            lane.tokens,
            lane.tokens_at,
            lane.applied,
            self.is_reset(lane),
            lane.rest_until,
        )

    def owned(self, worker: WorkerId) -> list[Taken]:
        return [self._taken(lane) for _, lane in sorted(self.lanes.items()) if lane.owner == worker]

    def is_reset(self, lane: LaneRow) -> bool:
        return (lane.endpoint_id, "reset") in self.changes[lane.applied :]

    def pending(self, endpoint: EndpointId) -> list[DeliveryRow]:
        """In the order of publishing."""
        rows = self.deliveries.values()
        return [row for row in rows if row.endpoint_id == endpoint and row.state is State.PENDING]

    def load(
        self, want: Want, *, floor: DeliveryId | None, known: Sequence[DeliveryId], now: float
    ) -> list[Loaded]:
        """Of one lane; `floor` names the delivery whose seq it is."""
        order = list(self.deliveries)
        rows = [row for row in self.pending(want.endpoint_id) if row.id not in known]
        ready = [row for row in rows if row.queue is Queue.READY]
        if floor is not None:
            ready = [row for row in ready if order.index(row.id) >= order.index(floor)]
        timed = [row for row in rows if row.queue is Queue.TIMED and want.due_floor <= row.due_at <= now]
        timed.sort(key=lambda row: (row.due_at, row.id))
        return [self._loaded(row) for row in ready[: want.ready] + timed[: want.timed]]

    def _loaded(self, row: DeliveryRow) -> Loaded:
        event = self.events[event_of(row.id)]
        return Loaded(
            row.id,
            row.endpoint_id,
            row.queue,
            0,
            row.due_at,
            row.attempts,
            row.replays,
            row.marks,
            event.type,
            event.idempotency_key,
            event.created_at,
            event.payload if len(event.payload) <= INLINE_PAYLOAD_BYTES else None,
            event.hops,
            len(event.payload),
            event.trace,
        )

    def settle(
        self, worker: WorkerId, batch: Sequence[Settlement], *, notes: Sequence[LaneNote], now: float
    ) -> list[Verdict]:
        self.note(worker, notes)
        return [self._settle_one(worker, settlement, now=now) for settlement in batch]

    def _settle_one(self, worker: WorkerId, settlement: Settlement, *, now: float) -> Verdict:
        attempt = settlement.attempt
        before = self.attempts.get((attempt.delivery_id, attempt.id))
        if before is not None:
            return Verdict.LATE if before[1] else Verdict.REPEATED
        row = self.deliveries[attempt.delivery_id]
        moves = (
            self.owns(worker, settlement.endpoint_id, settlement.epoch)
            and row.endpoint_id == settlement.endpoint_id
            and (row.state, row.attempts + 1, row.replays) == (State.PENDING, attempt.number, attempt.replays)
        )
        self.attempts[attempt.delivery_id, attempt.id] = (attempt, not moves)
        if not moves:
            return Verdict.LATE
        row.state, row.reason, row.attempts, row.marks = (
            settlement.state,
            settlement.reason,
            attempt.number,
            0,
        )
        row.last_status, row.last_error = attempt.status, attempt.error
        if settlement.state is State.PENDING:
            row.queue, row.due_at = Queue.TIMED, settlement.due_at
        else:
            row.done_at = now
        return Verdict.APPLIED

    def note(self, worker: WorkerId, notes: Sequence[LaneNote]) -> list[EndpointId]:
        written = [note for note in notes if self.owns(worker, note.endpoint_id, note.epoch)]
        for note in written:
            lane = self.lanes[note.endpoint_id]
            lane.hold_until, lane.head, lane.circuit = note.hold_until, note.head, note.circuit
            lane.applied = max(lane.applied, note.applied)
            lane.rest_until = note.rest_until
        return sorted(note.endpoint_id for note in written)

    def mark(self, worker: WorkerId, suspects: Sequence[Suspect]) -> list[DeliveryId]:
        marked = [s for s in suspects if self.owns(worker, s.endpoint_id, s.epoch)]
        rows = [
            (row, s.epoch) for s in marked if (row := self.deliveries[s.delivery_id]).replays == s.replays
        ]
        rows = [(row, epoch) for row, epoch in rows if row.state is State.PENDING]
        for row, epoch in rows:
            if row.marks == 0 or row.marked_epoch != epoch:
                row.marks += 1
            row.marked_epoch = epoch
        return sorted(row.id for row, _ in rows)

    def condemn(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        condemned = []
        for suspect in suspects:
            row = self.deliveries[suspect.delivery_id]
            if not self.owns(worker, suspect.endpoint_id, suspect.epoch) or row.replays != suspect.replays:
                continue
            if row.state is State.PENDING:
                row.state, row.reason, row.done_at = State.DEAD, Reason.CRASH_LIMIT, now
            if (row.state, row.reason) == (State.DEAD, Reason.CRASH_LIMIT):
                condemned.append(row.id)
        return sorted(condemned)

    def release(self, worker: WorkerId, releases: Sequence[Release]) -> list[EndpointId]:
        let_go = [r for r in releases if self.owns(worker, r.endpoint_id, r.epoch)]
        for release in let_go:
            lane = self.lanes[release.endpoint_id]
            lane.owner, lane.wake_at, lane.suspect = None, release.wake_at, release.suspect
            lane.tokens, lane.tokens_at = release.tokens, release.tokens_at
        return sorted(release.endpoint_id for release in let_go)

    def first_send(self, lane: LaneRow, *, now: float) -> float:
        """The first moment at which this lane could send, or its next owner must look at it."""
        if self.is_reset(lane) or self.has_lost_its_head(lane, now=now):
            return now
        rows = self.pending(lane.endpoint_id)
        if any(row.queue is Queue.READY for row in rows):
            return max(now, lane.hold_until)
        return max(min((row.due_at for row in rows), default=FOREVER), lane.hold_until)

    def has_lost_its_head(self, lane: LaneRow, *, now: float) -> bool:
        """The lane no longer waits for it, or it was made due while an owner waited for it."""
        if lane.head is None:
            return False
        head = self.deliveries[lane.head]
        waits = max(head.due_at, lane.rest_until)
        is_moved = lane.circuit.state is CircuitState.CLOSED and waits < lane.hold_until
        return not lane.strict or head.state is not State.PENDING or (is_moved and head.due_at <= now)

    def wake(self, lanes: Iterable[EndpointId], *, now: float) -> None:
        for id in lanes:
            lane = self.lanes[id]
            if lane.owner is None and lane.wake_at > now:
                lane.wake_at = min(lane.wake_at, self.first_send(lane, now=now))

    def sweep(self, *, after: EndpointId | None, now: float) -> None:
        self.wake([id for id in self.lanes if after is None or id > after], now=now)

    # workers

    def register(self, worker: WorkerRow) -> None:
        self.workers.setdefault(worker.id, KnownWorker(worker.id, worker.beat))

    def beat(self, worker: WorkerId) -> bool:
        if self.lives(worker):
            self.workers[worker].beat += 1
        return self.lives(worker)

    def bury(self, worker: WorkerId, *, beat: int, now: float) -> bool:
        if self.lives(worker) and self.workers[worker].beat == beat:
            self.workers[worker].buried_at = now
        return worker in self.workers and not self.lives(worker)

    def free(self, worker: WorkerId, *, now: float) -> list[EndpointId]:
        lanes = [] if self.lives(worker) else [x for x in self.lanes.values() if x.owner == worker]
        for lane in lanes:
            lane.owner, lane.wake_at, lane.suspect = None, FOREVER, True
            lane.epoch += 1
            lane.tokens, lane.tokens_at = 0, now
        return sorted(lane.endpoint_id for lane in lanes)

    def retire(self, worker: WorkerId) -> None:
        if not any(lane.owner == worker for lane in self.lanes.values()):
            self.workers.pop(worker, None)

    # reading

    def counts(self) -> dict[State, int]:
        states = [row.state for row in self.deliveries.values()]
        return {state: states.count(state) for state in State}

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything, as `databases` reads it from a real store."""
        return {
            "deliveries": [
                (
                    *(d.id, d.endpoint_id, d.state, d.queue, d.due_at, d.done_at, d.attempts, d.replays),
                    *(d.marks, d.reason, d.last_status, d.last_error),
                    *d.death,
                )
                for d in self.deliveries.values()
            ],
            "attempts": sorted(
                (a.delivery_id, a.id, a.number, a.replays, late, a.at, a.outcome, a.status)
                for a, late in self.attempts.values()
            ),
            "lanes": [
                (
                    *(x.endpoint_id, x.owner, x.epoch, x.wake_at, x.hold_until, x.paused, x.deleted),
                    *(x.suspect, x.strict, x.head, x.circuit.state, x.circuit.failures, x.circuit.probe_at),
                    *(x.tokens, x.tokens_at, x.applied, x.rest_until),
                )
                for _, x in sorted(self.lanes.items())
            ],
            "events": [
                (e.id, e.account, e.type, e.idempotency_key, e.deliver_at, e.created_at, len(e.payload))
                for _, e in sorted(self.events.items())
            ],
            "idempotency": [
                (account, key, event, digest) for (account, key), (event, digest) in sorted(self.keys.items())
            ],
            "workers": [(w.id, w.beat, w.buried_at) for _, w in sorted(self.workers.items())],
            "changes": [(n, endpoint, kind) for n, (endpoint, kind) in enumerate(self.changes, 1)],
            "change_counter": [(len(self.changes), self.catalogue)],
            "endpoints": [
                (e.id, e.account, e.enabled, e.paused, e.ordering, e.updated_at)
                for _, e in sorted(self.endpoints.items())
            ],
            "jobs": [
                (j.id, j.kind, j.state, j.matched, j.done, j.failed, j.finished_at)
                for _, (j, _) in sorted(self.jobs.items())
            ],
        }
