"""Which calls does the API answer beside publishing, and with what?"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hookline import ids, reports
from hookline.api.body import check_media, read_body
from hookline.api.cursor import Cursors
from hookline.api.envelope import read_object
from hookline.api.query import Query
from hookline.app import Hookline
from hookline.endpoints import EndpointInput, EndpointPatch, read_fields
from hookline.errors import StoreUnavailable
from hookline.model import AttemptId, Delivery, DeliveryId, EndpointId, EventId
from hookline.store.contract import DeliveryFilter

BODY_LIMIT_BYTES = 1 << 20  # 64 headers of 8 KiB and 16 KiB of metadata, with room

Handler = Callable[[Request], Awaitable[Response]]
_Row = TypeVar("_Row")

_PAGE = ("limit", "cursor")


class Routes:
    """The calls of the API, each a method."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline
        self._store = hookline.store
        self._cursors = Cursors(hookline.settings.api_key)

    def table(self) -> list[Route]:
        """Paths and methods."""
        return [
            _route("/healthz", GET=self.healthz),
            _route("/readyz", GET=self.readyz),
            _route("/v1/endpoints", GET=self.list_endpoints, POST=self.create_endpoint),
            _route(
                "/v1/endpoints/{id}",
                GET=self.show_endpoint,
                PATCH=self.update_endpoint,
                DELETE=self.delete_endpoint,
            ),
            _route("/v1/events/{id}", GET=self.show_event),
            _route("/v1/events/{id}/deliveries", GET=self.list_event_deliveries),
            _route("/v1/deliveries", GET=self.list_deliveries),
            _route("/v1/deliveries/{id}", GET=self.show_delivery),
            _route("/v1/deliveries/{id}/attempts", GET=self.list_attempts),
        ]

    async def healthz(self, request: Request) -> Response:
        """The process is there."""
        _query(request)
        return _json({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """The process can do its work."""
        _query(request)
        if not self._hookline.is_ready:
            raise StoreUnavailable("not ready")
        return _json({"status": "ok"})

    async def create_endpoint(self, request: Request) -> Response:
        fields = read_fields(EndpointInput, await _object(request))
        endpoint = await self._hookline.desk.create_endpoint(_said(fields))
        report = reports.endpoint_report(endpoint, reveal=True)
        return _json(report, status=201, headers={"location": f"/v1/endpoints/{report.id}"})

    async def list_endpoints(self, request: Request) -> Response:
        query = _query(request, "account", "enabled", *_PAGE)
        account, enabled = query.account(), query.flag("enabled")
        after, limit = self._after(query, of="endpoints"), query.limit()
        found = await self._store.list_endpoints(
            account=account,
            enabled=enabled,
            after=None if after is None else EndpointId(after),
            limit=limit + 1,
        )
        return self._page(
            found,
            query,
            of="endpoints",
            id=lambda row: row.id,
            shown=list(map(reports.endpoint_report, found[:limit])),
        )

    async def show_endpoint(self, request: Request) -> Response:
        _query(request)
        return _json(reports.endpoint_report(await reports.endpoint(self._store, _endpoint_id(request))))

    async def update_endpoint(self, request: Request) -> Response:
        id = _endpoint_id(request)
        patch = read_fields(EndpointPatch, await _object(request, patch=True))
        return _json(reports.endpoint_report(await self._hookline.desk.update_endpoint(id, patch)))

    async def delete_endpoint(self, request: Request) -> Response:
        _query(request)
        await self._hookline.desk.delete_endpoint(_endpoint_id(request))
        return Response(status_code=204)

    async def show_event(self, request: Request) -> Response:
        _query(request)
        return _json(await reports.event_report(self._store, _event_id(request)))

    async def list_event_deliveries(self, request: Request) -> Response:
        query = _query(request, "state", *_PAGE)
        event_id = _event_id(request)
        await reports.event(self._store, event_id)
        chosen = DeliveryFilter(event_id=event_id, state=query.state())
        return await self._deliveries(chosen, query, of=f"events/{request.path_params['id']}/deliveries")

    async def list_deliveries(self, request: Request) -> Response:
        names = ("state", "account", "endpoint_id", "event_id", "event_type", "since", "until")
        query = _query(request, *names, *_PAGE)
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
        return await self._deliveries(chosen, query, of="deliveries")

    async def show_delivery(self, request: Request) -> Response:
        _query(request)
        delivery = await reports.delivery(self._store, _delivery_id(request))
        (report,) = await self._reports([delivery])
        return _json(report)

    async def list_attempts(self, request: Request) -> Response:
        query = _query(request, *_PAGE)
        id = _delivery_id(request)
        of = f"deliveries/{request.path_params['id']}/attempts"
        after, limit = self._after(query, of=of), query.limit()
        await reports.delivery(self._store, id)
        newest_first = sorted(await self._store.attempts(id), key=lambda attempt: attempt.id, reverse=True)
        found = [attempt for attempt in newest_first if after is None or attempt.id < AttemptId(after)]
        shown = [reports.attempt_report(attempt) for attempt in found[:limit]]
        return self._page(found[: limit + 1], query, of=of, id=lambda row: row.id, shown=shown)

    async def _deliveries(self, chosen: DeliveryFilter, query: Query, *, of: str) -> Response:
        after, limit = self._after(query, of=of), query.limit()
        found = await self._store.list_deliveries(
            chosen, after=None if after is None else DeliveryId(after), limit=limit + 1
        )
        shown = await self._reports(found[:limit])
        return self._page(found, query, of=of, id=lambda row: row.id, shown=shown)

    async def _reports(self, deliveries: Sequence[Delivery]) -> list[reports.DeliveryReport]:
        return await reports.delivery_reports(
            self._store, deliveries, in_flight=self._hookline.is_under_way, now=self._hookline.clock.now()
        )

    def _after(self, query: Query, *, of: str) -> bytes | None:
        cursor = query.text("cursor")
        return None if cursor is None else self._cursors.read(cursor, of=of, filters=query.filters)

    def _page(
        self,
        found: Sequence[_Row],
        query: Query,
        *,
        of: str,
        id: Callable[[_Row], bytes],
        shown: Sequence[Any],
    ) -> Response:
        """`found` has one row more than is shown when there is a next page."""
        more = len(found) > len(shown)
        cursor = self._cursors.show(id(found[len(shown) - 1]), of=of, filters=query.filters) if more else None
        return _json({"data": shown, "next_cursor": cursor})


def _route(path: str, **handlers: Handler) -> Route:
    async def choose(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, choose, methods=list(handlers))


def _query(request: Request, *known: str) -> Query:
    return Query(request.scope["query_string"], known)


async def _object(request: Request, *, patch: bool = False) -> dict[str, Any]:
    _query(request)
    check_media(request.scope["headers"], limit_bytes=BODY_LIMIT_BYTES, merge_patch=patch)
    return read_object(await read_body(request.receive, limit_bytes=BODY_LIMIT_BYTES))


def _said(fields: msgspec.Struct) -> dict[str, Any]:
    return {
        name: value for name, value in msgspec.structs.asdict(fields).items() if value is not msgspec.UNSET
    }


def _json(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    # Never cached: what is shown changes by itself, and the answer to a creation holds a secret.
    return Response(
        msgspec.json.encode(value),
        status,
        {"cache-control": "no-store", **(headers or {})},
        "application/json",
    )


def _endpoint_id(request: Request) -> EndpointId:
    return EndpointId(ids.read("endpoint", request.path_params["id"]))


def _event_id(request: Request) -> EventId:
    return EventId(ids.read("event", request.path_params["id"]))


def _delivery_id(request: Request) -> DeliveryId:
    return DeliveryId(ids.read("delivery", request.path_params["id"]))
