"""Answers the calls about deliveries."""

from typing import Annotated, Any

import msgspec

from hookline.api.call import Call, CallRequest, CallScope, Nothing, Page, Paged
from hookline.api.request.parameters import (
    Account,
    CreatedSince,
    CreatedUntil,
    EventType,
    OfEndpoint,
    OfEvent,
)
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.model import AttemptId, DeliveryId, State
from hookline.reports import queries
from hookline.reports.queries import Reports
from hookline.reports.views import AttemptReport, DeliveryReport
from hookline.store.contract import DeliveryFilter


class Deliveries(Paged, frozen=True, kw_only=True):
    """Which deliveries? `since` and `until` are of their events' creation."""

    state: Annotated[State | None, msgspec.Meta(description="only those in this state")] = None
    account: Account | None = None
    endpoint_id: OfEndpoint | None = None
    event_id: OfEvent | None = None
    event_type: EventType | None = None
    since: CreatedSince | None = None
    until: CreatedUntil | None = None


class DeliveriesOfEndpoint(Paged, frozen=True, kw_only=True):
    """Which of an endpoint's deliveries? `since` and `until` are of their events' creation."""

    state: Annotated[State | None, msgspec.Meta(description="only those in this state")] = None
    event_type: EventType | None = None
    since: CreatedSince | None = None
    until: CreatedUntil | None = None


class DeliveryCalls:
    """The calls under `/v1/deliveries`, and the list of an endpoint's deliveries."""

    def __init__(self, hookline: Hookline, shown: Reports, pages: Pages) -> None:
        self._admin = hookline.deliveries
        self._store = hookline.store
        self._clock = hookline.clock
        self._reports = shown
        self._pages = pages

    def table(self) -> list[Call]:
        """The calls."""
        return [
            Call(
                method="GET",
                path="/v1/endpoints/{endpoint_id}/deliveries",
                summary="List an endpoint's deliveries",
                scope=CallScope.READ,
                handler=self.list_of_endpoint,
                query=DeliveriesOfEndpoint,
                answer=Page[DeliveryReport],
            ),
            Call(
                method="GET",
                path="/v1/deliveries",
                summary="List deliveries",
                scope=CallScope.READ,
                handler=self.list_deliveries,
                query=Deliveries,
                answer=Page[DeliveryReport],
            ),
            Call(
                method="GET",
                path="/v1/deliveries/{delivery_id}",
                summary="Get a delivery",
                scope=CallScope.READ,
                handler=self.show,
                answer=DeliveryReport,
            ),
            Call(
                method="GET",
                path="/v1/deliveries/{delivery_id}/attempts",
                summary="List a delivery's attempts",
                scope=CallScope.READ,
                handler=self.list_attempts,
                query=Paged,
                answer=Page[AttemptReport],
            ),
            Call(
                method="POST",
                path="/v1/deliveries/{delivery_id}/retry",
                summary="Retry a pending delivery now; its attempt count continues",
                scope=CallScope.ADMIN,
                handler=self.retry,
                body=Nothing,
                answer=DeliveryReport,
                status=202,
                problems=("wrong_state",),
            ),
            Call(
                method="POST",
                path="/v1/deliveries/{delivery_id}/cancel",
                summary="Cancel a pending delivery",
                scope=CallScope.ADMIN,
                handler=self.cancel,
                body=Nothing,
                answer=DeliveryReport,
                problems=("wrong_state",),
            ),
        ]

    async def list_of_endpoint(self, asked: CallRequest[DeliveriesOfEndpoint, None]) -> Page[DeliveryReport]:
        query, endpoint_id = asked.query, asked.endpoint_id
        await queries.endpoint(self._store, endpoint_id)
        chosen = DeliveryFilter(
            endpoint_id=endpoint_id,
            state=query.state,
            event_type=query.event_type,
            since=query.since,
            until=query.until,
        )
        return await self.page(asked, chosen)

    async def list_deliveries(self, asked: CallRequest[Deliveries, None]) -> Page[DeliveryReport]:
        query = asked.query
        chosen = DeliveryFilter(
            state=query.state,
            account=query.account,
            endpoint_id=query.endpoint_id,
            event_id=query.event_id,
            event_type=query.event_type,
            since=query.since,
            until=query.until,
        )
        return await self.page(asked, chosen)

    async def show(self, asked: CallRequest[Nothing, None]) -> DeliveryReport:
        return await self.report(asked.delivery_id)

    async def list_attempts(self, asked: CallRequest[Paged, None]) -> Page[AttemptReport]:
        id, limit = asked.delivery_id, asked.query.limit
        after = self._pages.after(asked)
        await queries.delivery(self._store, id)
        newest_first = sorted(await self._store.attempts(id), key=lambda attempt: attempt.id, reverse=True)
        found = [attempt for attempt in newest_first if after is None or attempt.id < AttemptId(after)]
        shown = [queries.attempt_report(attempt, shown=self._clock.shown) for attempt in found[:limit]]
        return self._pages.page(asked, found[: limit + 1], id=lambda row: row.id, shown=shown)

    async def retry(self, asked: CallRequest[Nothing, Nothing]) -> DeliveryReport:
        id = asked.delivery_id
        await self._admin.retry(id)
        return await self.report(id)

    async def cancel(self, asked: CallRequest[Nothing, Nothing]) -> DeliveryReport:
        id = asked.delivery_id
        await self._admin.cancel(id)
        return await self.report(id)

    async def page(self, asked: CallRequest[Any, Any], chosen: DeliveryFilter) -> Page[DeliveryReport]:
        """A page of the deliveries that the filters choose; times are as people give them."""
        after, limit = self._pages.after(asked), asked.query.limit
        found = await self._store.list_deliveries(
            chosen.by(self._clock.asked), after=None if after is None else DeliveryId(after), limit=limit + 1
        )
        shown = await self._reports.deliveries(found[:limit], now=self._clock.now())
        return self._pages.page(asked, found, id=lambda row: row.id, shown=shown)

    async def report(self, id: DeliveryId) -> DeliveryReport:
        """One delivery in its present state."""
        delivery = await queries.delivery(self._store, id)
        (report,) = await self._reports.deliveries([delivery], now=self._clock.now())
        return report
