"""Answers the calls about endpoints."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from hookline.api.call import Answered, Call, CallRequest, CallScope, Handler, Nothing, Page, Paged
from hookline.api.request.endpoint_fields import ChangedEndpoint, NewEndpoint
from hookline.api.request.parameters import Account, EventType
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.model import CircuitState, Endpoint, EndpointId
from hookline.reports import queries
from hookline.reports.queries import Reports
from hookline.reports.views import EndpointReport
from hookline.rules.fanout import matches
from hookline.rules.slowness import SLOW

_SCAN = 200  # endpoints read at a time for a filter that only their lanes can answer
_URL_PROBLEMS = ("url_invalid", "url_forbidden", "reserved_header")


class Endpoints(Paged, frozen=True, kw_only=True):
    """Which endpoints? `event_type`: those that would get such an event."""

    account: Account | None = None
    enabled: Annotated[
        bool | None, msgspec.Meta(description="only those that are enabled, or only those that are disabled")
    ] = None
    circuit: Annotated[
        CircuitState | None, msgspec.Meta(description="only those whose circuit is in this state")
    ] = None
    slow: Annotated[bool | None, msgspec.Meta(description="only those that are slow, or only the others")] = (
        None
    )
    event_type: Annotated[
        EventType | None, msgspec.Meta(description="only those that would get an event of this type")
    ] = None


class EndpointCalls:
    """The calls under `/v1/endpoints`, except those about deliveries."""

    def __init__(self, hookline: Hookline, shown: Reports, pages: Pages) -> None:
        self._admin = hookline.endpoints
        self._store = hookline.store
        self._reports = shown
        self._pages = pages

    def table(self) -> list[Call]:
        """The calls."""
        one = "/v1/endpoints/{endpoint_id}"
        return [
            Call(
                method="GET",
                path="/v1/endpoints",
                summary="List endpoints",
                scope=CallScope.READ,
                handler=self.list_endpoints,
                query=Endpoints,
                answer=Page[EndpointReport],
            ),
            Call(
                method="POST",
                path="/v1/endpoints",
                summary="Create an endpoint; the response contains its secret",
                scope=CallScope.ADMIN,
                handler=self.create,
                body=NewEndpoint,
                example={"url": "https://acme.example/webhooks", "events": ["order.*"], "account": "acme"},
                answer=EndpointReport,
                status=201,
                problems=_URL_PROBLEMS,
            ),
            Call(
                method="GET",
                path=one,
                summary="Get an endpoint",
                scope=CallScope.READ,
                handler=self.show,
                answer=EndpointReport,
            ),
            Call(
                method="PATCH",
                path=one,
                summary="Update an endpoint with a merge patch",
                scope=CallScope.ADMIN,
                handler=self.update,
                body=ChangedEndpoint,
                example={"description": "Orders of Acme", "max_in_flight": 10},
                answer=EndpointReport,
                problems=_URL_PROBLEMS,
            ),
            Call(
                method="DELETE",
                path=one,
                summary="Delete an endpoint and cancel its pending deliveries",
                scope=CallScope.ADMIN,
                handler=self.delete,
                status=204,
            ),
            self._setting("enable", "Enable an endpoint", enabled=True),
            self._setting(
                "disable",
                "Disable an endpoint: it gets no new events, and pending deliveries wait",
                enabled=False,
            ),
            self._setting(
                "pause", "Pause an endpoint: new and pending deliveries wait until it is resumed", paused=True
            ),
            self._setting("resume", "Resume a paused endpoint", paused=False),
            Call(
                method="POST",
                path=f"{one}/circuit/reset",
                summary="Reset an endpoint's circuit: sending resumes with one request",
                scope=CallScope.ADMIN,
                handler=self.reset_circuit,
                body=Nothing,
                answer=EndpointReport,
            ),
        ]

    async def create(self, asked: CallRequest[Nothing, Any]) -> Answered:
        endpoint = await self._admin.create(asked.fields)
        report = await self._reports.endpoint(endpoint, reveal=True)
        return Answered(report, {"location": f"/v1/endpoints/{report.id}"})

    async def list_endpoints(self, asked: CallRequest[Endpoints, None]) -> Page[EndpointReport]:
        query = asked.query
        if query.slow:
            return await self._list_slow(asked)
        keep = _filter(query)
        after, limit = self._pages.after(asked), query.limit
        found: list[Endpoint] = []
        shown: list[EndpointReport] = []
        last = None if after is None else EndpointId(after)
        while len(found) <= limit:
            size = limit + 1 if keep is None else _SCAN
            rows = await self._store.list_endpoints(
                account=query.account, enabled=query.enabled, after=last, limit=size
            )
            for row, report in zip(rows, await self._reports.endpoints(rows), strict=True):
                if keep is None or keep(row, report):
                    found.append(row)
                    shown.append(report)
            if len(rows) < size:
                break
            last = rows[-1].id
        return self._pages.page(asked, found[: limit + 1], id=lambda row: row.id, shown=shown[:limit])

    async def _list_slow(self, asked: CallRequest[Endpoints, None]) -> Page[EndpointReport]:
        """The slow ones, slowest first; a page continues below what the last one's day says now."""
        query, after = asked.query, self._pages.after(asked)
        keep = _filter(query)
        days = [] if after is None else await self._store.latency_days([EndpointId(after)])
        found: list[Endpoint] = []
        shown: list[EndpointReport] = []
        has_more = after is None or bool(days)
        while has_more and len(found) <= query.limit:
            last = (days[-1].p95 or 0.0, days[-1].endpoint_id) if days else None
            days = await self._store.slowest(after=last, above=SLOW, limit=_SCAN)
            by_id = {
                each.id: each for each in await self._store.endpoints_by_id([day.endpoint_id for day in days])
            }
            rows = [by_id[day.endpoint_id] for day in days if day.endpoint_id in by_id]
            for row, report in zip(rows, await self._reports.endpoints(rows), strict=True):
                if _is_of(row, query) and (keep is None or keep(row, report)):
                    found.append(row)
                    shown.append(report)
            has_more = len(days) == _SCAN
        return self._pages.page(
            asked, found[: query.limit + 1], id=lambda row: row.id, shown=shown[: query.limit]
        )

    async def show(self, asked: CallRequest[Nothing, None]) -> EndpointReport:
        return await self._shown(asked.endpoint_id)

    async def update(self, asked: CallRequest[Nothing, Any]) -> EndpointReport:
        return await self._reports.endpoint(await self._admin.update(asked.endpoint_id, asked.fields))

    async def delete(self, asked: CallRequest[Nothing, None]) -> None:
        await self._admin.delete(asked.endpoint_id)

    async def reset_circuit(self, asked: CallRequest[Nothing, Nothing]) -> EndpointReport:
        id = asked.endpoint_id
        await self._admin.reset_circuit(id)
        return await self._reports.endpoint_after_reset(await queries.endpoint(self._store, id))

    def _setting(self, verb: str, summary: str, **fields: bool) -> Call:
        return Call(
            method="POST",
            path=f"/v1/endpoints/{{endpoint_id}}/{verb}",
            summary=summary,
            scope=CallScope.ADMIN,
            handler=self._change(fields),
            body=Nothing,
            answer=EndpointReport,
        )

    def _change(self, patch: Mapping[str, Any]) -> Handler:
        async def change(asked: CallRequest[Any, Any]) -> EndpointReport:
            return await self._reports.endpoint(await self._admin.update(asked.endpoint_id, patch))

        return change

    async def _shown(self, id: EndpointId) -> EndpointReport:
        return await self._reports.endpoint(await queries.endpoint(self._store, id))


def _is_of(endpoint: Endpoint, query: Endpoints) -> bool:
    """Whether an endpoint that was not read from a list is one of those that the list would contain."""
    return query.account in (None, endpoint.account) and query.enabled in (None, endpoint.enabled)


def _filter(query: Endpoints) -> Callable[[Endpoint, EndpointReport], bool] | None:
    """The filter that no index answers; None when none is asked for."""
    circuit, slow, event_type = query.circuit, query.slow, query.event_type
    if circuit is None and slow is None and event_type is None:
        return None

    def keep(endpoint: Endpoint, report: EndpointReport) -> bool:
        return (
            (circuit is None or report.circuit_state.state == circuit)
            and (slow is None or report.slow == slow)
            and (event_type is None or any(matches(pattern, event_type) for pattern in endpoint.events))
        )

    return keep
