"""Makes calls of the API from within the server, with the checks that a request from outside gets.

The dashboard shows and changes everything in this way: what a key may not do with the API, it cannot do with a page.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from hookline.admin.key_cache import Caller
from hookline.api.call import CALLER, REQUEST_ID, VIA, Answered, Call
from hookline.api.router import handled
from hookline.api.tenancy import Reach
from hookline.model import Via

_JSON = [(b"content-type", b"application/json")]


class AskedBy(msgspec.Struct, frozen=True):
    """The request from outside that calls are made for."""

    via: Via = Via.DASHBOARD
    address: str | None = None
    request_id: str | None = None


_BY_ITSELF = AskedBy()


class InsideApi:
    """The calls of the API, for callers within the server."""

    def __init__(self, calls: Iterable[Call], reach: Reach) -> None:
        self._calls: dict[tuple[str, str], Call] = {(call.method, call.path): call for call in calls}
        self._reach = reach

    def of(self, caller: Caller, asked_by: AskedBy = _BY_ITSELF) -> "CallersApi":
        """The calls as this caller may make them."""
        return CallersApi(self, caller, asked_by)

    async def make(
        self,
        caller: Caller,
        method: str,
        path: str,
        *,
        parts: Mapping[str, str],
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        asked_by: AskedBy = _BY_ITSELF,
    ) -> Any:
        """The value that the call answers; raises what an outside caller would be told as a problem."""
        return await self.answer(
            self._calls[method, path],
            caller,
            parts=parts,
            query=urlencode(query),
            content=b"" if body is None else msgspec.json.encode(body),
            headers=headers,
            asked_by=asked_by,
        )

    async def answer(
        self,
        call: Call,
        caller: Caller,
        *,
        parts: Mapping[str, str],
        query: str,
        content: bytes,
        headers: Mapping[str, str],
        asked_by: AskedBy = _BY_ITSELF,
    ) -> Any:
        """The value that the call answers to a request with this query and content; raises likewise."""
        request = Request(
            {
                "type": "http",
                "method": call.method,
                "scheme": "http",
                "server": ("127.0.0.1", 0),  # nobody reached it from outside
                "path": call.path.format_map(parts),
                "path_params": dict(parts),
                "query_string": query.encode("ascii"),
                "headers": [
                    *_JSON,
                    *((name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()),
                ],
                "client": None if asked_by.address is None else (asked_by.address, 0),
                CALLER: caller,
                REQUEST_ID: asked_by.request_id,
                VIA: asked_by.via,
            },
            _receiving(content),
        )
        given = await handled(call, request, self._reach)
        return given.value if isinstance(given, Answered) else given


class CallersApi:
    """The calls as one caller may make them. A path is written as in the table of calls, its parts by name."""

    def __init__(self, inside: InsideApi, caller: Caller, asked_by: AskedBy) -> None:
        self._inside = inside
        self._caller = caller
        self._asked_by = asked_by

    async def get(self, path: str, query: Mapping[str, str] | None = None, /, **parts: str) -> Any:
        """Read something. Empty parameters are left out, as an HTML form sends its empty fields too."""
        given = {name: value for name, value in (query or {}).items() if value != ""}
        return await self._make("GET", path, parts, query=given)

    async def post(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        /,
        *,
        idempotency_key: str | None = None,
        **parts: str,
    ) -> Any:
        """Change something, or create it."""
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        return await self._make("POST", path, parts, body=body or {}, headers=headers)

    async def patch(self, path: str, body: Mapping[str, Any], /, **parts: str) -> Any:
        """Change some fields."""
        return await self._make("PATCH", path, parts, body=body)

    async def put(self, path: str, body: Mapping[str, Any], /, **parts: str) -> Any:
        """Replace something."""
        return await self._make("PUT", path, parts, body=body)

    async def delete(self, path: str, /, **parts: str) -> Any:
        """Delete something."""
        return await self._make("DELETE", path, parts)

    async def _make(
        self,
        method: str,
        path: str,
        parts: Mapping[str, str],
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        return await self._inside.make(
            self._caller,
            method,
            path,
            parts=parts,
            query=query or {},
            body=body,
            headers=headers or {},
            asked_by=self._asked_by,
        )


def _receiving(content: bytes) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    return receive
