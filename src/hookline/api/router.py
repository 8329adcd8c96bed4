"""Routes requests to the handlers of calls.

Each call becomes a route: its parameters and body are read strictly, the handler is called, and its result is
written as JSON. Lists are cut into pages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hookline.admin.audit import Origin, acting
from hookline.admin.key_cache import Caller
from hookline.api.call import CALLER, REQUEST_ID, VIA, Answered, Call, CallRequest, Page, Paged
from hookline.api.cursor import Cursors
from hookline.api.problem import Refused
from hookline.api.request import body_fields, parameters
from hookline.api.tenancy import Reach, filled, narrowed
from hookline.model import Via
from hookline.store.interactive import api_call

_Row = TypeVar("_Row")
_Shown = TypeVar("_Shown")


def routes(table: Iterable[Call], reach: Reach) -> list[Route]:
    """One route for each path, in the table's order."""
    by_path: dict[str, dict[str, Call]] = {}
    for call in table:
        methods = by_path.setdefault(call.path, {})
        if call.method in methods:
            raise ValueError(f"{call.method} {call.path} stands twice in the table")
        methods[call.method] = call
    return [_route(path, methods, reach) for path, methods in by_path.items()]


def _route(path: str, methods: dict[str, Call], reach: Reach) -> Route:
    allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))

    async def choose(request: Request) -> Response:
        call = methods.get("GET" if request.method == "HEAD" else request.method)
        if call is None or call.handler is None:
            raise Refused(
                "method_not_allowed", f"Only {allowed} here.", headers=((b"allow", allowed.encode()),)
            )
        with api_call(request.scope[REQUEST_ID], only_reads=call.method == "GET"):
            return await _answer(call, request, reach)

    # A path's own route answers every method, or GET /v1/events/batch would be taken for an event's.
    route = Route(path, choose)
    route.methods = None
    return route


async def handled(call: Call, request: Request, reach: Reach) -> Any:
    """What the call's handler gives, after every check that the call asks for."""
    caller: Caller = request.scope[CALLER]
    await reach.check(call, request.path_params, caller)
    query, filters = parameters.read(request.scope["query_string"], call.query)
    query, filters = narrowed(query, filters, caller.account)
    fields: dict[str, Any] = {}
    if call.body is not None:
        fields = await body_fields.read_fields(request, call.body)
        fields = filled(fields, call.body, caller.account, is_patch=call.method == "PATCH")
    body = None if call.body is None else body_fields.converted(fields, call.body)
    assert call.handler is not None  # noqa: S101 - publishes never come here
    with acting(_origin(request)):
        return await call.handler(CallRequest(request, query, filters, body, fields))


def _origin(request: Request) -> Origin:
    """Who asks, and from where. The address is the connection's: what a header says of it can be made up."""
    caller: Caller = request.scope[CALLER]
    return Origin(
        actor=caller.actor,
        via=request.scope.get(VIA, Via.API),
        address=request.client.host if request.client else None,
        request_id=request.scope.get(REQUEST_ID),
    )


async def _answer(call: Call, request: Request, reach: Reach) -> Response:
    given = await handled(call, request, reach)
    if isinstance(given, Response):
        return given
    headers: dict[str, str] = {}
    if isinstance(given, Answered):
        given, headers = given.value, given.headers
    if call.answer is None:
        return Response(status_code=call.status, headers=headers)
    return json(given, status=call.status, headers=headers)


def json(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    # Never cached: the objects change by themselves, and the answer to a creation holds a secret.
    return Response(
        msgspec.json.encode(value),
        status,
        {"cache-control": "no-store", **(headers or {})},
        "application/json",
    )


class Pages:
    """Cuts lists into pages."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors

    def after(self, asked: CallRequest[Any, Any]) -> bytes | None:
        """The last id of the page before."""
        query: Paged = asked.query
        if query.cursor is None:
            return None
        return self._cursors.read(query.cursor, of=asked.path, filters=_seen(asked))

    def page(
        self,
        asked: CallRequest[Any, Any],
        found: Sequence[_Row],
        *,
        id: Callable[[_Row], bytes],
        shown: Sequence[_Shown],
    ) -> Page[_Shown]:
        """One page; `found` has one row more than is shown when there is a next page."""
        cursor = None
        if len(found) > len(shown):
            cursor = self._cursors.show(id(found[len(shown) - 1]), of=asked.path, filters=_seen(asked))
        return Page(list(shown), cursor)


def _seen(asked: CallRequest[Any, Any]) -> Mapping[str, str]:
    """What makes the list what it is: its filters, also the one that the caller's key is for."""
    return asked.filters if asked.account is None else {**asked.filters, "account": asked.account}
