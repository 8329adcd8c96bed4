"""How are endpoints managed over HTTP?"""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hookline import reports
from hookline.api import calls
from hookline.api.calls import Handler, Pages
from hookline.api.query import Query
from hookline.app import Hookline
from hookline.endpoints import EndpointInput, EndpointPatch, read_fields
from hookline.model import Endpoint, EndpointId
from hookline.reports import Reports
from hookline.rules.fanout import matches
from hookline.shapes import EndpointReport

_SCAN = 200  # endpoints looked at in one go for a filter that only their lanes can answer


class EndpointCalls:
    """The calls under `/v1/endpoints`, but for their deliveries."""

    def __init__(self, hookline: Hookline, shown: Reports, pages: Pages) -> None:
        self._desk = hookline.desk
        self._store = hookline.store
        self._reports = shown
        self._pages = pages

    def table(self) -> list[Route]:
        """Paths and methods."""
        return [
            calls.route("/v1/endpoints", GET=self.list_endpoints, POST=self.create),
            calls.route("/v1/endpoints/{id}", GET=self.show, PATCH=self.update, DELETE=self.delete),
            calls.route("/v1/endpoints/{id}/enable", POST=self._setting(enabled=True)),
            calls.route("/v1/endpoints/{id}/disable", POST=self._setting(enabled=False)),
            calls.route("/v1/endpoints/{id}/pause", POST=self._setting(paused=True)),
            calls.route("/v1/endpoints/{id}/resume", POST=self._setting(paused=False)),
            calls.route("/v1/endpoints/{id}/circuit/reset", POST=self.reset_circuit),
        ]

    async def create(self, request: Request) -> Response:
        fields = read_fields(EndpointInput, await calls.read_json(request))
        endpoint = await self._desk.create_endpoint(_said(fields))
        report = await self._reports.endpoint(endpoint, reveal=True)
        return calls.json(report, status=201, headers={"location": f"/v1/endpoints/{report.id}"})

    async def list_endpoints(self, request: Request) -> Response:
        query = calls.query(request, "account", "enabled", "circuit", "slow", "event_type", *calls.PAGE)
        keep = _filter(query)
        account, enabled = query.account(), query.flag("enabled")
        after, limit = self._pages.after(query, of="endpoints"), query.limit()
        found: list[Endpoint] = []
        shown: list[EndpointReport] = []
        last = None if after is None else EndpointId(after)
        while len(found) <= limit:
            size = limit + 1 if keep is None else _SCAN
            rows = await self._store.list_endpoints(account=account, enabled=enabled, after=last, limit=size)
            for row, report in zip(rows, await self._reports.endpoints(rows), strict=True):
                if keep is None or keep(row, report):
                    found.append(row)
                    shown.append(report)
            if len(rows) < size:
                break
            last = rows[-1].id
        return self._pages.answer(
            found[: limit + 1], query, of="endpoints", id=lambda row: row.id, shown=shown[:limit]
        )

    async def show(self, request: Request) -> Response:
        calls.query(request)
        return await self._shown(calls.endpoint_id(request))

    async def update(self, request: Request) -> Response:
        id = calls.endpoint_id(request)
        patch = read_fields(EndpointPatch, await calls.read_json(request, patch=True))
        return calls.json(await self._reports.endpoint(await self._desk.update_endpoint(id, patch)))

    async def delete(self, request: Request) -> Response:
        calls.query(request)
        await self._desk.delete_endpoint(calls.endpoint_id(request))
        return Response(status_code=204)

    async def reset_circuit(self, request: Request) -> Response:
        await calls.read_optional(request)
        id = calls.endpoint_id(request)
        await self._desk.reset_circuit(id)
        return await self._shown(id)

    def _setting(self, **fields: bool) -> Handler:
        patch = EndpointPatch(**fields)

        async def change(request: Request) -> Response:
            await calls.read_optional(request)
            endpoint = await self._desk.update_endpoint(calls.endpoint_id(request), patch)
            return calls.json(await self._reports.endpoint(endpoint))

        return change

    async def _shown(self, id: EndpointId) -> Response:
        return calls.json(await self._reports.endpoint(await reports.endpoint(self._store, id)))


def _filter(query: Query) -> Callable[[Endpoint, EndpointReport], bool] | None:
    """What no index answers; None when nothing of the kind is asked for."""
    circuit, slow, event_type = query.circuit(), query.flag("slow"), query.event_type()
    if circuit is None and slow is None and event_type is None:
        return None

    def keep(endpoint: Endpoint, report: EndpointReport) -> bool:
        return (
            (circuit is None or report.circuit_state.state == circuit)
            and (slow is None or report.slow == slow)
            and (event_type is None or any(matches(pattern, event_type) for pattern in endpoint.events))
        )

    return keep


def _said(fields: msgspec.Struct) -> dict[str, Any]:
    return {
        name: value for name, value in msgspec.structs.asdict(fields).items() if value is not msgspec.UNSET
    }
