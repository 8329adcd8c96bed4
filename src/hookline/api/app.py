"""Handles a request to the API, from its first header to the last byte of the answer.

The request gets an id, and its caller is checked. A publish takes the direct way, all other calls go through the
router. Every exception becomes a problem document. Every answer has a Request-Id.
"""

import itertools
import secrets
from collections.abc import MutableMapping
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.routing import Router

from hookline.admin.key_cache import NOBODY, Caller
from hookline.api.answer import JSON, Send, answer, refuse
from hookline.api.auth import Authenticator, require
from hookline.api.call import CALLER, REQUEST_ID, CallScope
from hookline.api.failures import FailedRequests
from hookline.api.inside import InsideApi
from hookline.api.limits.connections import Clients
from hookline.api.limits.quotas import Quotas
from hookline.api.problem import NOTHING_HERE, Refused, describe
from hookline.api.publishing.publish import Head, Headers, PublishRequest, Way, ways
from hookline.api.request.body import Disconnected, Receive, read_body
from hookline.api.request.query import Query
from hookline.api.router import routes
from hookline.api.routes import table
from hookline.api.tenancy import Reach
from hookline.app import Hookline
from hookline.errors import TooLarge
from hookline.model import Scope as KeyScope
from hookline.pipeline.intake.drafts import Done
from hookline.pipeline.sending import open_files
from hookline.rules.client_connections import limits
from hookline.rules.open_files import most_clients


class Website(Protocol):
    """Pages for people, beside the API."""

    def has(self, path: str) -> bool:
        """Whether a request for this path is theirs."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""


class Api:
    """The ASGI application of one `Hookline`, which must be running."""

    def __init__(self, hookline: Hookline) -> None:
        self.admission = Authenticator(hookline.settings, hookline.key_cache, now=hookline.clock.monotonic)
        self._ways = ways(hookline)
        self.shortcuts = {path.encode("ascii"): way for path, way in self._ways.items()}
        self.heads: dict[bytes, Head] = {}  # of publishes that took the shortcut, keyed by their bytes
        self.failures = FailedRequests(hookline.clock.monotonic)
        self._hookline = hookline
        self.refused, self.loop_lag = hookline.publish_refused, hookline.loop_lag
        settings = hookline.settings
        self.clients = Clients(
            limits(
                most_clients(settings.max_connections, open_files.allowed()),
                settings.max_connections_per_address,
            ),
            hookline.connections_refused,
        )
        self.quotas = Quotas(settings, hookline.clock.monotonic)
        calls = table(hookline)
        self._open = frozenset(call.path for call in calls if call.scope is CallScope.OPEN)
        reach = Reach(hookline.store)
        self._router = Router(routes(calls, reach), redirect_slashes=False)
        self.inside = InsideApi(calls, reach)
        self.pages: Website | None = None
        self._ids = map(f"req_{secrets.token_hex(8)}{{:08x}}".format, itertools.count(1))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        path = scope["path"]
        if self.pages is not None and self.pages.has(path):
            await self.pages(scope, receive, send)
            return
        request_id = self.new_request_id()
        try:
            caller = NOBODY if path in self._open else self.admission.check(scope["headers"])
            if caller is None:
                caller = await self.admission.identify(scope["headers"], (scope["client"] or ("",))[0])
            self.quotas.count_request(caller.digest)
            if b"%" in scope["raw_path"]:
                # No path of the API needs an escape. Without escapes no path has a second spelling.
                raise _nothing_here()
            way = self._ways.get(path)
            if way is None or scope["method"] != "POST":
                scope[CALLER], scope[REQUEST_ID] = caller, request_id
                await self._route(scope, receive, send, request_id)
            else:
                require(caller, KeyScope.PUBLISH)
                await self._publish(way, caller, scope, receive, send, request_id)
        except Disconnected:
            return
        except Exception as error:
            await self._refuse(error, scope, receive, send, request_id)

    def new_request_id(self) -> str:
        """An id that no other request has."""
        return next(self._ids)

    def publish_at_once(self, way: Way, headers: Headers, body: bytes, done: Done) -> PublishRequest | None:
        """Publish a request that arrived whole; None or an error means that it must go the ordinary way."""
        caller = self.admission.check(headers)
        if caller is None or not caller.may_publish:
            return None
        way.check(headers)
        if len(body) > way.limit_bytes:
            return None
        asked = way.read(headers, body, bound_to=caller.account)
        if not asked.drafts:
            return None
        if self.quotas.are_set and not self.quotas.admits(caller, asked.drafts):
            return None
        self._hookline.submit(asked.drafts, done)
        return asked

    async def _publish(
        self,
        way: Way,
        caller: Caller,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        request_id: str,
    ) -> None:
        if scope["query_string"]:
            Query(scope["query_string"], ())
        headers = scope["headers"]
        try:
            way.check(headers)
            body = await read_body(receive, limit_bytes=way.limit_bytes)
        except TooLarge:
            raise way.too_large from None
        asked = way.read(headers, body, bound_to=caller.account)
        self.quotas.count_events(asked.drafts)
        results = await self._hookline.accept(asked.drafts) if asked.drafts else []
        shown = asked.answer(results, request_id=request_id)
        await answer(send, 202, shown, request_id=request_id, headers=[JSON])

    async def _refuse(
        self,
        error: Exception,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        request_id: str,
    ) -> None:
        problem = describe(error, request_id=request_id)
        if scope["path"] in self._ways and scope["method"] == "POST":
            self.refused[problem.code] += 1
        self.failures.note(error, problem, method=scope["method"], path=scope["path"])
        await refuse(error, problem, receive=receive, send=send)

    async def _route(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, request_id: str
    ) -> None:
        async def tagged(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"request-id", request_id.encode())]
            await send(message)

        scope["app"] = self  # makes the router raise what it would otherwise answer by itself
        try:
            await self._router(scope, receive, tagged)
        except HTTPException:
            raise _nothing_here() from None


def _nothing_here() -> Refused:
    return Refused("not_found", NOTHING_HERE)
