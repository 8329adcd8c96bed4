"""What became of events, over HTTP, and what can be done about their deliveries?"""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hookline import ids, reports
from hookline.api import calls
from hookline.api.calls import Pages
from hookline.api.query import Query
from hookline.app import Hookline
from hookline.desk import REPLAYED_BY_DEFAULT
from hookline.errors import Invalid, NotFound
from hookline.model import AttemptId, DeliveryId, EndpointId, EventId, State
from hookline.reports import Reports
from hookline.shapes import DeliveryReport
from hookline.store.contract import DeliveryFilter


class DeliveryCalls:
    """The calls about events that were published, and about deliveries."""

    def __init__(self, hookline: Hookline, shown: Reports, pages: Pages) -> None:
        self._desk = hookline.desk
        self._store = hookline.store
        self._clock = hookline.clock
        self._reports = shown
        self._pages = pages

    def table(self) -> list[Route]:
        """Paths and methods."""
        return [
            calls.route("/v1/events/{id}", GET=self.show_event),
            calls.route("/v1/events/{id}/deliveries", GET=self.list_of_event),
            calls.route("/v1/events/{id}/replay", POST=self.replay_event),
            calls.route("/v1/endpoints/{id}/deliveries", GET=self.list_of_endpoint),
            calls.route("/v1/deliveries", GET=self.list_deliveries),
            calls.route("/v1/deliveries/{id}", GET=self.show),
            calls.route("/v1/deliveries/{id}/attempts", GET=self.list_attempts),
            calls.route("/v1/deliveries/{id}/retry", POST=self.retry),
            calls.route("/v1/deliveries/{id}/cancel", POST=self.cancel),
        ]

    async def show_event(self, request: Request) -> Response:
        calls.query(request)
        return calls.json(await reports.event_report(self._store, calls.event_id(request)))

    async def replay_event(self, request: Request) -> Response:
        fields = await calls.read_optional(request, "endpoint_id", "states")
        event = calls.event_id(request)
        replayed = await self._desk.replay_event(
            event, endpoint=_endpoint(fields.get("endpoint_id")), states=_states(fields.get("states"))
        )
        shown = [ids.show("delivery", id) for id in replayed]
        return calls.json({"replayed": len(shown), "deliveries": shown}, status=202)

    async def list_of_event(self, request: Request) -> Response:
        query = calls.query(request, "state", *calls.PAGE)
        event_id = calls.event_id(request)
        await reports.event(self._store, event_id)
        chosen = DeliveryFilter(event_id=event_id, state=query.state())
        return await self.page(chosen, query, of=f"events/{request.path_params['id']}/deliveries")

    async def list_of_endpoint(self, request: Request) -> Response:
        query = calls.query(request, "state", "event_type", "since", "until", *calls.PAGE)
        endpoint_id = calls.endpoint_id(request)
        await reports.endpoint(self._store, endpoint_id)
        chosen = DeliveryFilter(
            endpoint_id=endpoint_id,
            state=query.state(),
            event_type=query.event_type(),
            since=query.moment("since"),
            until=query.moment("until"),
        )
        return await self.page(chosen, query, of=f"endpoints/{request.path_params['id']}/deliveries")

    async def list_deliveries(self, request: Request) -> Response:
        names = ("state", "account", "endpoint_id", "event_id", "event_type", "since", "until")
        query = calls.query(request, *names, *calls.PAGE)
        endpoint_id, event_id = query.id("endpoint_id", "endpoint"), query.id("event_id", "event")
        chosen = DeliveryFilter(
            state=query.state(),
            account=query.account(),
            endpoint_id=None if endpoint_id is None else EndpointId(endpoint_id),
            event_id=None if event_id is None else EventId(event_id),
            event_type=query.event_type(),
            since=query.moment("since"),
            until=query.moment("until"),
        )
        return await self.page(chosen, query, of="deliveries")

    async def show(self, request: Request) -> Response:
        calls.query(request)
        return calls.json(await self.report(calls.delivery_id(request)))

    async def list_attempts(self, request: Request) -> Response:
        query = calls.query(request, *calls.PAGE)
        id = calls.delivery_id(request)
        of = f"deliveries/{request.path_params['id']}/attempts"
        after, limit = self._pages.after(query, of=of), query.limit()
        await reports.delivery(self._store, id)
        newest_first = sorted(await self._store.attempts(id), key=lambda attempt: attempt.id, reverse=True)
        found = [attempt for attempt in newest_first if after is None or attempt.id < AttemptId(after)]
        shown = [reports.attempt_report(attempt) for attempt in found[:limit]]
        return self._pages.answer(found[: limit + 1], query, of=of, id=lambda row: row.id, shown=shown)

    async def retry(self, request: Request) -> Response:
        await calls.read_optional(request)
        id = calls.delivery_id(request)
        await self._desk.retry(id)
        return calls.json(await self.report(id), status=202)

    async def cancel(self, request: Request) -> Response:
        await calls.read_optional(request)
        id = calls.delivery_id(request)
        await self._desk.cancel(id)
        return calls.json(await self.report(id))

    async def page(self, chosen: DeliveryFilter, query: Query, *, of: str) -> Response:
        """A page of the deliveries that are chosen."""
        after, limit = self._pages.after(query, of=of), query.limit()
        found = await self._store.list_deliveries(
            chosen, after=None if after is None else DeliveryId(after), limit=limit + 1
        )
        shown = await self._reports.deliveries(found[:limit], now=self._clock.now())
        return self._pages.answer(found, query, of=of, id=lambda row: row.id, shown=shown)

    async def report(self, id: DeliveryId) -> DeliveryReport:
        """One delivery as it stands now."""
        delivery = await reports.delivery(self._store, id)
        (report,) = await self._reports.deliveries([delivery], now=self._clock.now())
        return report


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
    allowed = f"states is a list of {', '.join(REPLAYED_BY_DEFAULT)}; a pending one is retried, not replayed."
    if not isinstance(value, list) or not value:
        raise Invalid(allowed, pointer="/states")
    for place, each in enumerate(value):
        if not isinstance(each, str) or each not in REPLAYED_BY_DEFAULT:
            raise Invalid(allowed, pointer=f"/states/{place}")
    return [State(each) for each in dict.fromkeys(value)]
