"""Answers the calls about events."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from hookline import ids
from hookline.admin.deliveries import REPLAYED_BY_DEFAULT
from hookline.api.call import Call, CallRequest, CallScope, Nothing, Page, Paged
from hookline.api.calls.deliveries import DeliveryCalls
from hookline.api.request.parameters import (
    ACCOUNT_SCHEMA,
    KEY_SCHEMA,
    MOMENT_SCHEMA,
    TYPE_SCHEMA,
    Account,
    CreatedSince,
    CreatedUntil,
    EventType,
    IdempotencyKey,
    id_schema,
    null_or,
)
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.errors import Invalid, NotFound
from hookline.model import AttemptId, EndpointId, EventId, State
from hookline.reports import queries
from hookline.reports.views import AttemptReport, DeliveryReport, EventReport, PublishedReport, ReplayedReport
from hookline.store.contract import DeliveryFilter
from hookline.store.contract.events import EventFilter

_NAMES = [state.value for state in REPLAYED_BY_DEFAULT]


# Publishing is the hot path: `envelope` reads these two with a decoder of its own that has the same fields.
class Publication(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event to be published."""

    type: Annotated[str, msgspec.Meta(extra_json_schema=TYPE_SCHEMA)]
    payload: Annotated[
        msgspec.Raw, msgspec.Meta(description="Any JSON value; its bytes are delivered as they are.")
    ]
    account: Annotated[Any, null_or(ACCOUNT_SCHEMA)] = None
    idempotency_key: Annotated[Any, null_or(KEY_SCHEMA)] = None
    deliver_at: Annotated[Any, null_or(MOMENT_SCHEMA)] = None


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events to be published together."""

    events: Annotated[list[Publication], msgspec.Meta(min_length=1, max_length=1_000)]


_RESULT = {
    "title": "BatchResult",
    "anyOf": [
        {"$ref": "#/components/schemas/PublishedReport"},
        {
            "title": "BatchError",
            "type": "object",
            "properties": {"error": {"$ref": "#/components/schemas/Problem"}},
            "required": ["error"],
        },
    ],
}


class PublishedBatchReport(msgspec.Struct):
    """The result for each event of a batch, in order."""

    results: Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": _RESULT})]


class Events(Paged, frozen=True, kw_only=True):
    """Which events? `since` and `until` are of their creation."""

    type: EventType | None = None
    account: Account | None = None
    idempotency_key: IdempotencyKey | None = None
    since: CreatedSince | None = None
    until: CreatedUntil | None = None


class OfEvent(Paged, frozen=True, kw_only=True):
    """The parameters that select an event's deliveries."""

    state: Annotated[State | None, msgspec.Meta(description="only those in this state")] = None


class ReplayOfEvent(msgspec.Struct, frozen=True):
    """The deliveries of an event to replay; by default all that are not pending."""

    endpoint_id: Annotated[Any, null_or(id_schema("endpoint"))] = None
    states: Annotated[
        Any,
        null_or({"type": "array", "minItems": 1, "items": {"type": "string", "enum": _NAMES}}),
    ] = None


class EventCalls:
    """The calls under `/v1/events`."""

    def __init__(self, hookline: Hookline, pages: Pages, deliveries: DeliveryCalls) -> None:
        self._admin = hookline.deliveries
        self._store = hookline.store
        self._clock = hookline.clock
        self._pages = pages
        self._deliveries = deliveries

    def table(self) -> list[Call]:
        """The calls."""
        return [
            Call(
                method="POST",
                path="/v1/events",
                summary="Publish an event",
                scope=CallScope.PUBLISH,
                handler=None,
                body=Publication,
                example={"type": "order.paid", "payload": {"order": 42, "total": "19.90"}, "account": "acme"},
                answer=PublishedReport,
                status=202,
                problems=("idempotency_conflict", "fanout_limit", "loop_detected", "schema_mismatch"),
                takes_key=True,
            ),
            Call(
                method="POST",
                path="/v1/events/batch",
                summary="Publish up to 1,000 events; an invalid one does not stop the others",
                scope=CallScope.PUBLISH,
                handler=None,
                body=Batch,
                example={
                    "events": [
                        {"type": "order.paid", "payload": {"order": 42}, "account": "acme"},
                        {"type": "order.shipped", "payload": {"order": 42}, "account": "acme"},
                    ]
                },
                answer=PublishedBatchReport,
                status=202,
                problems=(
                    "too_many_events",
                    "idempotency_conflict",
                    "fanout_limit",
                    "loop_detected",
                    "schema_mismatch",
                ),
            ),
            Call(
                method="GET",
                path="/v1/events",
                summary="List events, without payloads above 16 KiB",
                scope=CallScope.READ,
                handler=self.list_events,
                query=Events,
                answer=Page[EventReport],
            ),
            Call(
                method="GET",
                path="/v1/events/{event_id}",
                summary="Get an event with its payload",
                scope=CallScope.READ,
                handler=self.show,
                answer=EventReport,
            ),
            Call(
                method="GET",
                path="/v1/events/{event_id}/deliveries",
                summary="List an event's deliveries",
                scope=CallScope.READ,
                handler=self.list_deliveries,
                query=OfEvent,
                answer=Page[DeliveryReport],
            ),
            Call(
                method="GET",
                path="/v1/events/{event_id}/attempts",
                summary="List all attempts of an event's deliveries",
                scope=CallScope.READ,
                handler=self.list_attempts,
                query=Paged,
                answer=Page[AttemptReport],
            ),
            Call(
                method="POST",
                path="/v1/events/{event_id}/replay",
                summary="Replay an event's deliveries",
                scope=CallScope.ADMIN,
                handler=self.replay,
                body=ReplayOfEvent,
                example={"states": ["dead"]},
                answer=ReplayedReport,
                status=202,
            ),
        ]

    async def list_events(self, asked: CallRequest[Events, None]) -> Page[EventReport]:
        query, after = asked.query, self._pages.after(asked)
        chosen = EventFilter(
            type=query.type,
            account=query.account,
            idempotency_key=query.idempotency_key,
            since=None if query.since is None else self._clock.asked(query.since),
            until=None if query.until is None else self._clock.asked(query.until),
            ids_since=query.since,
        )
        found = await self._store.list_events(
            chosen, after=None if after is None else EventId(after), limit=query.limit + 1
        )
        shown = await queries.event_reports(self._store, found[: query.limit], shown=self._clock.shown)
        return self._pages.page(asked, found, id=lambda row: row.id, shown=shown)

    async def show(self, asked: CallRequest[Nothing, None]) -> EventReport:
        return await queries.event_report(self._store, asked.event_id, shown=self._clock.shown)

    async def list_deliveries(self, asked: CallRequest[OfEvent, None]) -> Page[DeliveryReport]:
        event_id = asked.event_id
        await queries.event(self._store, event_id)
        return await self._deliveries.page(asked, DeliveryFilter(event_id=event_id, state=asked.query.state))

    async def list_attempts(self, asked: CallRequest[Paged, None]) -> Page[AttemptReport]:
        event_id, limit, after = asked.event_id, asked.query.limit, self._pages.after(asked)
        await queries.event(self._store, event_id)
        found = await self._store.list_attempts(
            event_id, after=None if after is None else AttemptId(after), limit=limit + 1
        )
        shown = [queries.attempt_report(attempt, shown=self._clock.shown) for attempt in found[:limit]]
        return self._pages.page(asked, found, id=lambda row: row.id, shown=shown)

    async def replay(self, asked: CallRequest[Nothing, ReplayOfEvent]) -> ReplayedReport:
        endpoint, states = _endpoint(asked.body.endpoint_id), _states(asked.body.states)
        if endpoint is not None and asked.account is not None:
            found = await queries.endpoint(self._store, endpoint)
            if found.account != asked.account:
                raise NotFound("endpoint", ids.show("endpoint", endpoint))
        replayed = await self._admin.replay_event(asked.event_id, endpoint=endpoint, states=states)
        return ReplayedReport(len(replayed), [ids.show("delivery", id) for id in replayed])


def _endpoint(value: Any) -> EndpointId | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return EndpointId(ids.read("endpoint", value))
    except NotFound:
        pass
    raise Invalid(
        f"This is not the id of an endpoint, such as {ids.show('endpoint', bytes(16))}.",
        pointer="/endpoint_id",
    )


def _states(value: Any) -> Sequence[State]:
    if value is None:
        return REPLAYED_BY_DEFAULT
    allowed = f"states is a list of {', '.join(_NAMES)}; a pending one is retried, not replayed."
    if not isinstance(value, list) or not value:
        raise Invalid(allowed, pointer="/states")
    for place, each in enumerate(value):
        if not isinstance(each, str) or each not in _NAMES:
            raise Invalid(allowed, pointer=f"/states/{place}")
    return [State(each) for each in dict.fromkeys(value)]
