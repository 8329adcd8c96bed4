"""What does an operator want to know about an event, an endpoint or a delivery?

The shapes that the API shows, and the questions that need more than one look into the store.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hookline import ids, rfc3339
from hookline.errors import NotFound
from hookline.headers import MASK
from hookline.model import (
    Attempt,
    Delivery,
    DeliveryId,
    Endpoint,
    EndpointId,
    Event,
    EventId,
    State,
)
from hookline.rules.retry import DEFAULT_POLICY
from hookline.store.contract import DeliveryFilter, Store

_COUNTING_PAGE = 1_000


class EndpointReport(msgspec.Struct, kw_only=True, omit_defaults=False):
    """An endpoint as it is shown; `secret` only to whoever just created it."""

    id: str
    account: str
    url: str
    events: tuple[str, ...]
    description: str
    enabled: bool
    disabled_reason: str | None
    headers: dict[str, str]
    metadata: dict[str, Any]
    signing: str
    timeout_ms: int
    max_in_flight: int
    created_at: str
    updated_at: str
    secret: str | msgspec.UnsetType = msgspec.UNSET


class EventReport(msgspec.Struct, kw_only=True):
    """An event with its payload as it came, and how its deliveries stand."""

    id: str
    type: str
    account: str
    payload: msgspec.Raw
    idempotency_key: str | None
    deliver_at: str | None
    created_at: str
    deliveries: dict[str, int]


class ErrorReport(msgspec.Struct):
    """What kept an attempt from being accepted."""

    kind: str
    detail: str | None


class DeathReport(msgspec.Struct):
    """How a delivery died before it was redriven."""

    reason: str
    at: str | None
    attempts: int


class DeliveryReport(msgspec.Struct, kw_only=True):
    """A delivery and what it is waiting for."""

    id: str
    event_id: str
    endpoint_id: str
    account: str
    event_type: str
    state: str
    attempts: int
    max_attempts: int
    due_at: str | None
    in_flight: bool
    waiting_for: str | None
    last_status: int | None
    last_duration_ms: float | None
    last_error: ErrorReport | None
    reason: str | None
    created_at: str | None
    delivered_at: str | None
    dead_at: str | None
    replays: int
    last_death: DeathReport | None


class PhasesReport(msgspec.Struct):
    """Milliseconds of each phase; null is a phase that did not happen."""

    dns: float | None
    connect: float | None
    tls: float | None
    first_byte: float | None


class RequestReport(msgspec.Struct):
    """What was sent; the headers only of an attempt that was not accepted, secrets masked."""

    url: str | None
    headers: dict[str, str] | None


class AttemptReport(msgspec.Struct, kw_only=True):
    """One request and its answer."""

    id: str
    number: int
    at: str | None
    status: int | None
    duration_ms: float | None
    phases_ms: PhasesReport
    error: ErrorReport | None
    request: RequestReport
    response_headers: dict[str, str] | None
    response_body: str
    response_truncated: bool
    final_url: str | None
    late: bool


def endpoint_report(endpoint: Endpoint, *, reveal: bool = False) -> EndpointReport:
    """An endpoint with its headers' values hidden; `reveal` adds the secret."""
    return EndpointReport(
        id=ids.show("endpoint", endpoint.id),
        account=endpoint.account,
        url=endpoint.url,
        events=endpoint.events,
        description=endpoint.description,
        enabled=endpoint.enabled,
        disabled_reason=endpoint.disabled_reason,
        headers=dict.fromkeys(endpoint.headers, MASK),
        metadata=endpoint.metadata,
        signing=endpoint.signing.value,
        timeout_ms=round(endpoint.timeout * 1_000),
        max_in_flight=endpoint.max_in_flight,
        created_at=rfc3339.show(endpoint.created_at),
        updated_at=rfc3339.show(endpoint.updated_at),
        secret=endpoint.secret if reveal else msgspec.UNSET,
    )


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


async def event_report(store: Store, id: EventId) -> EventReport:
    """An event and the number of its deliveries in each state."""
    found = await event(store, id)
    counts = dict.fromkeys((state.value for state in State), 0)
    after: DeliveryId | None = None
    while True:
        page = await store.list_deliveries(DeliveryFilter(event_id=id), after=after, limit=_COUNTING_PAGE)
        for each in page:
            counts[each.state.value] += 1
        if len(page) < _COUNTING_PAGE:
            break
        after = page[-1].id
    return EventReport(
        id=ids.show("event", found.id),
        type=found.type,
        account=found.account,
        payload=msgspec.Raw(found.payload),
        idempotency_key=found.idempotency_key,
        deliver_at=_time(found.deliver_at),
        created_at=rfc3339.show(found.created_at),
        deliveries=counts,
    )


async def delivery_reports(
    store: Store, deliveries: Sequence[Delivery], *, in_flight: Callable[[DeliveryId], bool], now: float
) -> list[DeliveryReport]:
    """Deliveries with what each is waiting for."""
    lanes = {each.endpoint_id for each in deliveries if each.state is State.PENDING}
    enabled = (
        {each.id for each in await store.endpoints_by_id(sorted(lanes)) if each.enabled} if lanes else set()
    )
    reports = []
    for each in deliveries:
        sending = each.state is State.PENDING and in_flight(each.id)
        waiting = None if sending else _waiting_for(each, enabled=each.endpoint_id in enabled, now=now)
        reports.append(_delivery_report(each, in_flight=sending, waiting_for=waiting))
    return reports


def attempt_report(attempt: Attempt) -> AttemptReport:
    """One attempt; the response's body as text, whatever its bytes."""
    return AttemptReport(
        id=ids.show("attempt", attempt.id),
        number=attempt.number,
        at=_time(attempt.at),
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


def _waiting_for(delivery: Delivery, *, enabled: bool, now: float) -> str | None:
    if delivery.state is not State.PENDING:
        return None
    if not enabled:
        return "disabled"
    return "due" if delivery.due_at > now else "slot"


def _delivery_report(delivery: Delivery, *, in_flight: bool, waiting_for: str | None) -> DeliveryReport:
    done_at = _time(delivery.done_at)
    death = delivery.last_death
    return DeliveryReport(
        id=ids.show("delivery", delivery.id),
        event_id=ids.show("event", delivery.event_id),
        endpoint_id=ids.show("endpoint", delivery.endpoint_id),
        account=delivery.account,
        event_type=delivery.event_type,
        state=delivery.state.value,
        attempts=delivery.attempts,
        max_attempts=DEFAULT_POLICY.attempts,
        due_at=_time(delivery.due_at),
        in_flight=in_flight,
        waiting_for=waiting_for,
        last_status=delivery.last_status,
        last_duration_ms=_ms(delivery.last_duration),
        last_error=None
        if delivery.last_error is None
        else ErrorReport(delivery.last_error.value, delivery.last_error_detail),
        reason=None if delivery.reason is None else delivery.reason.value,
        created_at=_time(delivery.created_at),
        delivered_at=done_at if delivery.state is State.DELIVERED else None,
        dead_at=done_at if delivery.state is State.DEAD else None,
        replays=delivery.replays,
        last_death=None
        if death is None
        else DeathReport(death.reason.value, _time(death.at), death.attempts),
    )


def _time(at: float | None) -> str | None:
    return None if at is None or not math.isfinite(at) else rfc3339.show(at)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1_000, 3)
