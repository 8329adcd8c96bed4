"""The part of the reference that people use.

The second half of `reference`: endpoints, single deliveries, bulk jobs. Each writes numbered changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from hookline.errors import NotFound, WrongState
from hookline.ids import event_of, show
from hookline.model import DeliveryId, Endpoint, EndpointId, EventId, JobId, Ordering, Queue, Reason, State
from hookline.store.contract import DeliveryFilter, Job, JobKind, JobState, JobStep
from tests.model.reference import DeliveryRow, LaneRow, Reference


@dataclass
class OperatedReference(Reference):
    """The reference with everything that people do."""

    def tell(self, endpoints: Iterable[EndpointId], kind: str) -> None:
        for endpoint in sorted(set(endpoints)):
            self.changes.append((endpoint, kind))
            if kind == "endpoint":
                self.catalogue = len(self.changes)

    # endpoints

    def create_endpoint(self, endpoint: Endpoint) -> None:
        if endpoint.id in self.endpoints:
            return
        self.endpoints[endpoint.id] = endpoint
        self.lanes[endpoint.id] = LaneRow(endpoint.id, _is_paused(endpoint), _is_strict(endpoint))
        self.tell([endpoint.id], "endpoint")

    def update_endpoint(self, endpoint: Endpoint, *, was: float, now: float) -> bool:
        found = self.endpoints.get(endpoint.id)
        if found is None or found.updated_at != was:
            return False
        self.endpoints[endpoint.id] = endpoint
        lane = self.lanes[endpoint.id]
        if lane.owner is None and lane.strict and not _is_strict(endpoint):
            lane.wake_at = min(lane.wake_at, now)
        lane.paused, lane.strict = _is_paused(endpoint), _is_strict(endpoint)
        self.tell([endpoint.id], "endpoint")
        return True

    def delete_endpoint(self, endpoint: EndpointId) -> bool:
        if self.endpoints.pop(endpoint, None) is None:
            return False
        self.lanes[endpoint].paused = self.lanes[endpoint].deleted = True
        self.tell([endpoint], "endpoint")
        return True

    def left_of_deleted(self) -> list[DeliveryRow]:
        return [row for id, lane in self.lanes.items() if lane.deleted for row in self.pending(id)]

    def cancel_deleted(self, *, limit: int, now: float) -> int:
        rows = self.left_of_deleted()[:limit]
        for row in rows:
            row.state, row.reason, row.done_at = State.CANCELLED, Reason.ENDPOINT_DELETED, now
            row.marks = 0
        self.tell((row.endpoint_id for row in rows), "deliveries")
        return len(rows)

    def reset_circuit(self, endpoint: EndpointId, *, now: float) -> bool:
        lane = self.lanes.get(endpoint)
        if lane is None or lane.deleted:
            return False
        if lane.owner is None:
            lane.wake_at = min(lane.wake_at, now)
        self.tell([endpoint], "reset")
        return True

    # deliveries

    def move(self, verb: str, delivery: DeliveryId, *, now: float) -> EndpointId:
        """`retry`, `cancel`, `redrive` or `discard`."""
        row = self.deliveries.get(delivery)
        if row is None:
            raise NotFound("delivery", show("delivery", delivery))
        match verb, row.state:
            case "retry", State.PENDING:
                row.due_at = min(row.due_at, now)
            case "cancel", State.PENDING:
                row.state, row.reason, row.done_at = State.CANCELLED, Reason.CANCELLED, now
                row.marks = 0
            case "redrive", State.DEAD | State.DELIVERED | State.CANCELLED:
                _redrive(row, now=now)
            case "discard", State.DEAD:
                _discard(row, now=now)
            case _:
                raise WrongState(_PARTICIPLES[verb], row.state)
        lane = self.lanes[row.endpoint_id]
        if lane.owner is None and lane.head == delivery:
            lane.wake_at = min(lane.wake_at, now)
        self.tell([row.endpoint_id], "deliveries")
        return row.endpoint_id

    def redrive_event(
        self, event: EventId, *, endpoint: EndpointId | None, states: Sequence[State], now: float
    ) -> list[tuple[DeliveryId, EndpointId]]:
        rows = [row for row in self.of_event(event) if row.state in states and row.state is not State.PENDING]
        rows = [row for row in rows if endpoint in (None, row.endpoint_id)]
        for row in rows:
            _redrive(row, now=now)
        self.tell((row.endpoint_id for row in rows), "deliveries")
        return [(row.id, row.endpoint_id) for row in rows]

    # jobs

    def matches(self, row: DeliveryRow, filter: DeliveryFilter) -> bool:
        event = self.events[event_of(row.id)]
        return (
            filter.state in (None, row.state)
            and filter.account in (None, event.account)
            and filter.endpoint_id in (None, row.endpoint_id)
            and filter.event_type in (None, event.type)
        )

    def dead(self, filter: DeliveryFilter, *, before: float) -> list[DeliveryRow]:
        dead = [row for _, row in sorted(self.deliveries.items()) if row.state is State.DEAD]
        return [row for row in dead if self.matches(row, filter) and (row.done_at or 0) < before]

    def create_job(self, job: Job) -> Job:
        for first, _ in self.jobs.values():
            is_repeat = job.idempotency_key is not None and (
                (first.account, first.kind, first.idempotency_key)
                == (job.account, job.kind, job.idempotency_key)
            )
            if first.id == job.id or is_repeat:
                return first
        ids = tuple(sorted(set(job.ids)))
        matched = len(ids) if ids else len(self.dead(job.filter, before=job.created_at))
        job = msgspec.structs.replace(job, ids=ids, matched=matched)
        self.jobs[job.id] = (job, None)
        return job

    def advance_job(self, id: JobId, *, limit: int, now: float) -> JobStep | None:
        if id not in self.jobs or self.jobs[id][0].state is not JobState.RUNNING:
            return None
        job, cursor = self.jobs[id]
        if job.ids:
            left = [delivery for delivery in job.ids if cursor is None or delivery > cursor]
            picked, is_last = left[:limit], len(left) <= limit
        else:
            dead = [row.id for row in self.dead(job.filter, before=job.created_at)]
            picked = [delivery for delivery in dead if cursor is None or delivery > cursor][:limit]
            is_last = len(picked) < limit
        mine = [delivery for delivery in picked if self._is_theirs(job, delivery)]
        rows = [self.deliveries[delivery] for delivery in mine if delivery in self.deliveries]
        rows = [row for row in rows if row.state is State.DEAD]
        for row in rows:
            (_redrive if job.kind is JobKind.REPLAY else _discard)(row, now=now)
        job = msgspec.structs.replace(
            job,
            done=job.done + len(rows),
            failed=job.failed + (len(picked) - len(rows) if job.ids else 0),
            state=JobState.DONE if is_last else job.state,
            finished_at=now if is_last else None,
        )
        self.jobs[id] = (job, picked[-1] if picked else cursor)
        lanes = sorted({row.endpoint_id for row in rows})
        self.tell(lanes, "deliveries")
        return JobStep(job, tuple(lanes) if job.kind is JobKind.REPLAY else ())

    def _is_theirs(self, job: Job, delivery: DeliveryId) -> bool:
        event = self.events.get(event_of(delivery))
        return job.account is None or (event is not None and event.account == job.account)


_PARTICIPLES = {"retry": "retried", "cancel": "cancelled", "redrive": "redriven", "discard": "discarded"}


def _is_paused(endpoint: Endpoint) -> bool:
    return endpoint.paused or not endpoint.enabled


def _is_strict(endpoint: Endpoint) -> bool:
    return endpoint.ordering is Ordering.STRICT


def _redrive(row: DeliveryRow, *, now: float) -> None:
    if row.state is State.DEAD:
        row.death = (row.reason, row.done_at, row.attempts)
    row.state, row.queue, row.due_at = State.PENDING, Queue.TIMED, now
    row.done_at = row.reason = None
    row.attempts = row.marks = 0
    row.replays += 1


def _discard(row: DeliveryRow, *, now: float) -> None:
    row.state, row.reason, row.done_at = State.CANCELLED, Reason.DISCARDED, now
