"""How is a call read and answered, whatever it is about?

Strictly: no unknown parameter, no unknown field, no body where none is expected. Lists are cut into pages.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hookline import ids
from hookline.api.body import check_media, read_body
from hookline.api.cursor import Cursors
from hookline.api.envelope import read_object
from hookline.api.query import Query
from hookline.errors import Invalid
from hookline.model import DeliveryId, EndpointId, EventId
from hookline.names import check_idempotency_key, check_known

BODY_LIMIT_BYTES = 1 << 20  # 64 headers of 8 KiB and 16 KiB of metadata, with room
PAGE = ("limit", "cursor")

Handler = Callable[[Request], Awaitable[Response]]
_Row = TypeVar("_Row")


class Pages:
    """Cuts lists into pages."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors

    def after(self, query: Query, *, of: str) -> bytes | None:
        """The id that the last page ended with."""
        cursor = query.text("cursor")
        return None if cursor is None else self._cursors.read(cursor, of=of, filters=query.filters)

    def answer(
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
        return json({"data": shown, "next_cursor": cursor})


def route(path: str, **handlers: Handler) -> Route:
    """A path and what answers each of its methods."""

    async def choose(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, choose, methods=list(handlers))


def query(request: Request, *known: str) -> Query:
    """The parameters, each of them known."""
    return Query(request.scope["query_string"], known)


async def read_json(request: Request, *, patch: bool = False) -> dict[str, Any]:
    """The body, which is a JSON object; parameters are none."""
    query(request)
    check_media(request.scope["headers"], limit_bytes=BODY_LIMIT_BYTES, merge_patch=patch)
    return read_object(await read_body(request.receive, limit_bytes=BODY_LIMIT_BYTES))


async def read_optional(request: Request, *known: str) -> dict[str, Any]:
    """The body's fields, each of them known; a call that needs nothing said may come without a body."""
    query(request)
    body = await read_body(request.receive, limit_bytes=BODY_LIMIT_BYTES)
    if not body:
        return {}
    check_media(request.scope["headers"], limit_bytes=BODY_LIMIT_BYTES)
    fields = read_object(body)
    check_known(fields, known)
    return fields


def idempotency_key(request: Request) -> str | None:
    """The caller's own name for this call."""
    given = request.headers.getlist("idempotency-key")
    if len(given) > 1:
        raise Invalid("There are two Idempotency-Key headers.")
    return check_idempotency_key(given[0], pointer="") if given else None


def json(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer."""
    # Never cached: what is shown changes by itself, and the answer to a creation holds a secret.
    return Response(
        msgspec.json.encode(value),
        status,
        {"cache-control": "no-store", **(headers or {})},
        "application/json",
    )


def endpoint_id(request: Request) -> EndpointId:
    """The id in the path."""
    return EndpointId(ids.read("endpoint", request.path_params["id"]))


def event_id(request: Request) -> EventId:
    """The id in the path."""
    return EventId(ids.read("event", request.path_params["id"]))


def delivery_id(request: Request) -> DeliveryId:
    """The id in the path."""
    return DeliveryId(ids.read("delivery", request.path_params["id"]))
