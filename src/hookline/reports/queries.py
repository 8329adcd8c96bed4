"""Answers what operators ask about events, endpoints, deliveries, jobs and workers.

These are the questions that need more than one read of the store. `views` has the shapes of the answers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from hookline import ids, rfc3339
from hookline.crypto.sealing import Sealer
from hookline.errors import NotFound
from hookline.model import (
    CLOSED,
    Attempt,
    Circuit,
    Delivery,
    DeliveryId,
    Endpoint,
    EndpointId,
    Event,
    EventId,
    JobId,
    State,
)
from hookline.reports.owners import LaneOwners
from hookline.reports.views import (
    AttemptReport,
    CircuitReport,
    DeathReport,
    DeliveryCounts,
    DeliveryReport,
    EndpointCountsReport,
    EndpointProblem,
    ErrorReport,
    EventReport,
    JobReport,
    PhasesReport,
    RequestReport,
    WorkerReport,
)
from hookline.reports.views import EndpointReport as EndpointReport
from hookline.reports.waiting import waiting_for
from hookline.rules.circuit import reset as closed_by_operator
from hookline.rules.liveness import condition
from hookline.rules.retry import DEFAULT_PRESET, PRESETS, Policy, policy_of
from hookline.rules.slowness import is_slow_day
from hookline.store.contract import EndpointCounts, Job, JobKind, LaneRow, Store, WorkerRow
from hookline.store.contract.events import ListedEvent
from hookline.validate.endpoint_fields import shown_as, shown_fields
from hookline.validate.stored_endpoint import EndpointJudge, retry_of

Shown = Callable[[float], float]  # the moment to show for a time of the store (`Clock.shown`)

_NO_FAULTS: Mapping[str, str] = {}


class Reports:
    """Answers from the store and, for lanes owned here, from their owner."""

    def __init__(
        self,
        store: Store,
        owners: LaneOwners,
        *,
        shown: Shown,
        default_retry: str = DEFAULT_PRESET,
        judge: EndpointJudge | None = None,
    ) -> None:
        self._judge = judge or EndpointJudge(Sealer())
        self._store = store
        self._owners = owners
        self._shown = shown
        self._default_retry = default_retry
        self._default_policy = PRESETS[default_retry]

    async def endpoint(self, endpoint: Endpoint, *, reveal: bool = False) -> EndpointReport:
        """One endpoint; `reveal` adds its secret."""
        (report,) = await self.endpoints([endpoint])
        return msgspec.structs.replace(report, secret=endpoint.secret) if reveal else report

    async def endpoint_after_reset(self, endpoint: Endpoint) -> EndpointReport:
        """One endpoint whose circuit was just reset. Its lane's owner closes it a moment later."""
        (report,) = await self.endpoints([endpoint], is_reset=True)
        return report

    async def endpoints(
        self, endpoints: Sequence[Endpoint], *, is_reset: bool = False
    ) -> list[EndpointReport]:
        """Endpoints with the state of their circuits and what waits for them."""
        of = [each.id for each in endpoints]
        lanes = await self._lanes(of)
        circuits = self._circuits(lanes)
        if is_reset:
            circuits = {id: closed_by_operator(circuit) for id, circuit in circuits.items()}
        owners = await self._owners.of(lanes.values())
        counted = {each.endpoint_id: each for each in await self._store.endpoint_counts(of)} if of else {}
        days = await self._store.latency_days(of) if of else []
        slow = {day.endpoint_id for day in days if is_slow_day(day.attempts, day.p95)}
        return [
            endpoint_report(
                each,
                circuit=circuits.get(each.id, CLOSED),
                is_slow=each.id in slow,
                counts=counted.get(each.id),
                in_flight=owners.in_flight(each.id),
                default_retry=self._default_retry,
                faults=self._judge.faults(each),
                shown=self._shown,
            )
            for each in endpoints
        ]

    async def deliveries(self, deliveries: Sequence[Delivery], *, now: float) -> list[DeliveryReport]:
        """Deliveries with what each is waiting for."""
        of = sorted({each.endpoint_id for each in deliveries})
        endpoints = {each.id: each for each in await self._store.endpoints_by_id(of)} if of else {}
        waiting = sorted({each.endpoint_id for each in deliveries if each.state is State.PENDING})
        lanes = await self._lanes(waiting)
        circuits = self._circuits(lanes)
        owners = await self._owners.of(lanes.values())
        shown = []
        for each in deliveries:
            endpoint = endpoints.get(each.endpoint_id)
            sending = each.state is State.PENDING and owners.is_under_way(each.id, each.endpoint_id)
            reason = waiting_for(
                each,
                endpoint=endpoint,
                lane=lanes.get(each.endpoint_id),
                circuit=circuits.get(each.endpoint_id, CLOSED),
                owner_says=owners.waiting_reason(each.endpoint_id),
                now=now,
            )
            policy = self._default_policy if endpoint is None else self.retry_policy(endpoint)
            shown.append(
                _delivery_report(
                    each,
                    in_flight=sending,
                    waiting_for=None if sending else reason,
                    max_attempts=policy.attempts,
                    at=self._shown,
                )
            )
        return shown

    async def circuits(self, ids: Sequence[EndpointId]) -> dict[EndpointId, Circuit]:
        """The circuits of those that exist."""
        return self._circuits(await self._lanes(ids))

    def retry_policy(self, endpoint: Endpoint) -> Policy:
        """When its deliveries are tried again."""
        return policy_of(retry_of(endpoint), self._default_policy)

    async def _lanes(self, ids: Sequence[EndpointId]) -> dict[EndpointId, LaneRow]:
        return {each.endpoint_id: each for each in await self._store.lanes(ids)} if ids else {}

    def _circuits(self, lanes: dict[EndpointId, LaneRow]) -> dict[EndpointId, Circuit]:
        return {id: self._owners.here.circuit_of(id) or lane.circuit for id, lane in lanes.items()}


async def endpoint(store: Store, id: EndpointId) -> Endpoint:
    """One endpoint, or `NotFound`."""
    found = await store.endpoints_by_id([id])
    if not found:
        raise NotFound("endpoint", ids.show("endpoint", id))
    return found[0]


async def event(store: Store, id: EventId) -> Event:
    """One event, or `NotFound`."""
    found = await store.event(id)
    if found is None:
        raise NotFound("event", ids.show("event", id))
    return found


async def delivery(store: Store, id: DeliveryId) -> Delivery:
    """One delivery, or `NotFound`."""
    found = await store.delivery(id)
    if found is None:
        raise NotFound("delivery", ids.show("delivery", id))
    return found


async def job(store: Store, id: JobId, kind: JobKind) -> Job:
    """One job of this kind, or `NotFound`."""
    found = await store.job(id)
    if found is None or found.kind is not kind:
        raise NotFound(kind.value, ids.show(kind.value, id))
    return found


async def event_report(store: Store, id: EventId, *, shown: Shown) -> EventReport:
    """An event and the number of its deliveries in each state."""
    found = await event(store, id)
    (report,) = await event_reports(store, [found], shown=shown)
    return report


async def event_reports(
    store: Store, events: Sequence[Event | ListedEvent], *, shown: Shown
) -> list[EventReport]:
    """Events and the number of their deliveries in each state."""
    counts = await store.count_by_state([each.id for each in events]) if events else {}
    return [
        EventReport(
            id=ids.show("event", each.id),
            type=each.type,
            account=each.account,
            payload=msgspec.Raw(b"null" if each.payload is None else each.payload),
            payload_bytes=each.payload_bytes if isinstance(each, ListedEvent) else len(each.payload),
            idempotency_key=each.idempotency_key,
            deliver_at=None if each.deliver_at is None else rfc3339.show(each.deliver_at),
            created_at=rfc3339.show(shown(each.created_at)),
            deliveries=DeliveryCounts(**{state.value: n for state, n in counts[each.id].items()}),
        )
        for each in events
    ]


def endpoint_report(
    endpoint: Endpoint,
    *,
    shown: Shown,
    circuit: Circuit = CLOSED,
    is_slow: bool = False,
    counts: EndpointCounts | None = None,
    in_flight: int = 0,
    default_retry: str = DEFAULT_PRESET,
    reveal: bool = False,
    faults: Mapping[str, str] = _NO_FAULTS,
) -> EndpointReport:
    """An endpoint with its headers' values hidden; `reveal` adds the secret."""
    fields = shown_fields(endpoint) | {"retry": endpoint.retry or {"preset": default_retry}}
    if reveal:
        fields["secret"] = endpoint.secret
    return EndpointReport(
        **fields,
        id=ids.show("endpoint", endpoint.id),
        disabled_reason=endpoint.disabled_reason,
        circuit_state=_circuit_report(CLOSED if endpoint.circuit is None else circuit, shown),
        slow=is_slow,
        counts=EndpointCountsReport(
            pending=0 if counts is None else counts.pending,
            awaiting_retry=0 if counts is None else counts.awaiting_retry,
            in_flight=in_flight,
            dead=0 if counts is None else counts.dead,
        ),
        problems=tuple(EndpointProblem(shown_as(field), why) for field, why in faults.items()),
        created_at=rfc3339.show(shown(endpoint.created_at)),
        updated_at=rfc3339.show(shown(endpoint.updated_at)),
    )


def attempt_report(attempt: Attempt, *, shown: Shown) -> AttemptReport:
    """One attempt; the response's body as text, whatever its bytes."""
    return AttemptReport(
        id=ids.show("attempt", attempt.id),
        delivery_id=ids.show("delivery", attempt.delivery_id),
        number=attempt.number,
        at=_time(attempt.at, shown),
        status=attempt.status,
        duration_ms=_ms(attempt.duration),
        phases_ms=PhasesReport(
            dns=_ms(attempt.timings.dns),
            connect=_ms(attempt.timings.connect),
            tls=_ms(attempt.timings.tls),
            first_byte=_ms(attempt.timings.first_byte),
        ),
        error=None if attempt.error is None else ErrorReport(attempt.error.value, attempt.error_detail),
        request=RequestReport(attempt.request_url, attempt.request_headers),
        response_headers=attempt.response_headers,
        response_body=attempt.response_body.decode("utf-8", "replace"),
        response_truncated=attempt.response_truncated,
        final_url=attempt.final_url,
        late=attempt.late,
    )


def job_report(job: Job, *, shown: Shown, dry_run: bool = False) -> JobReport:
    """A job; a dry run is shown as done with nothing done, and is stored nowhere."""
    return JobReport(
        id=None if dry_run else ids.show(job.kind.value, job.id),
        state=job.state.value,
        matched=job.matched,
        done=job.done,
        failed=job.failed,
        dry_run=dry_run,
        filter=_filter_report(job, shown),
        created_at=rfc3339.show(shown(job.created_at)),
        finished_at=_time(job.finished_at, shown),
        reason=job.reason,
    )


def worker_report(worker: WorkerRow, *, shown: Shown, now: float, heartbeat: float) -> WorkerReport:
    """A worker that should send a heartbeat every `heartbeat` seconds."""
    load = worker.load
    return WorkerReport(
        id=ids.show("worker", worker.id),
        kind=worker.kind,
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        started_at=rfc3339.show(shown(worker.started_at)),
        heartbeat_at=rfc3339.show(shown(worker.seen_at)),
        lanes=load.lanes,
        in_flight=load.in_flight,
        delivered_per_s=round(load.delivered_per_s, 3),
        state=condition(
            silent=now - worker.seen_at,
            is_draining=load.draining,
            is_buried=worker.buried,
            heartbeat=heartbeat,
        ).value,
    )


def _filter_report(job: Job, shown: Shown) -> dict[str, Any]:
    if job.ids:
        return {"ids": [ids.show("delivery", id) for id in job.ids]}
    chosen = job.filter
    named = {
        "account": chosen.account,
        "endpoint_id": None if chosen.endpoint_id is None else ids.show("endpoint", chosen.endpoint_id),
        "event_type": chosen.event_type,
        "reason": None if chosen.reason is None else chosen.reason.value,
        "since": _time(chosen.died_since, shown),
        "until": _time(chosen.died_until, shown),
    }
    return {name: value for name, value in named.items() if value is not None}


def _circuit_report(circuit: Circuit, shown: Shown) -> CircuitReport:
    return CircuitReport(
        state=circuit.state.value,
        consecutive_failures=circuit.failures,
        opened_at=_time(circuit.opened_at, shown),
        cooldown_s=circuit.cooldown,
        next_probe_at=_time(circuit.probe_at, shown),
        last_success_at=_time(circuit.last_success_at, shown),
        last_failure_at=_time(circuit.last_failure_at, shown),
        reason=circuit.reason,
    )


def _delivery_report(
    delivery: Delivery, *, in_flight: bool, waiting_for: str | None, max_attempts: int, at: Shown
) -> DeliveryReport:
    done_at = _time(delivery.done_at, at)
    death = delivery.last_death
    return DeliveryReport(
        id=ids.show("delivery", delivery.id),
        event_id=ids.show("event", delivery.event_id),
        endpoint_id=ids.show("endpoint", delivery.endpoint_id),
        account=delivery.account,
        event_type=delivery.event_type,
        state=delivery.state.value,
        attempts=delivery.attempts,
        max_attempts=max_attempts,
        due_at=_time(delivery.due_at, at),
        in_flight=in_flight,
        waiting_for=waiting_for,
        last_status=delivery.last_status,
        last_duration_ms=_ms(delivery.last_duration),
        last_error=None
        if delivery.last_error is None
        else ErrorReport(delivery.last_error.value, delivery.last_error_detail),
        reason=None if delivery.reason is None else delivery.reason.value,
        created_at=_time(delivery.created_at, at),
        delivered_at=done_at if delivery.state is State.DELIVERED else None,
        dead_at=done_at if delivery.state is State.DEAD else None,
        replays=delivery.replays,
        last_death=None
        if death is None
        else DeathReport(death.reason.value, _time(death.at, at), death.attempts),
    )


def _time(at: float | None, shown: Shown) -> str | None:
    return None if at is None or not math.isfinite(at) else rfc3339.show(shown(at))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 3)
