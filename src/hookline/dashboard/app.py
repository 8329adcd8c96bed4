"""Answers requests for pages.

It finds the visitor, calls the page and has its answer rendered. Every answer has the headers that keep foreign scripts,
frames and forms out.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from hookline.admin.key_cache import caller
from hookline.api.answer import Send
from hookline.api.app import Api
from hookline.api.auth import require
from hookline.api.call import REQUEST_ID
from hookline.api.inside import AskedBy, CallersApi
from hookline.api.problem import NOTHING_HERE, Refused, describe
from hookline.api.request.body import Disconnected, Receive
from hookline.app import Hookline
from hookline.dashboard.answers import SAID, TIMES, Answers
from hookline.dashboard.live import Live, Regions
from hookline.dashboard.look.assets import PREFIX as ASSETS
from hookline.dashboard.look.assets import Assets
from hookline.dashboard.look.render import Moments, Templates
from hookline.dashboard.page import Answer, Asked, GoTo, Handler, PageRoute, Visitor
from hookline.dashboard.table import all_pages
from hookline.dashboard.visit import tokens
from hookline.dashboard.visit.entrance import DOOR as PORTAL_DOOR
from hookline.dashboard.visit.entrance import PATHS as ENTRANCE
from hookline.dashboard.visit.entrance import Entrance, own_path, preference
from hookline.dashboard.visit.forms import read_form
from hookline.dashboard.visit.portal import Portal
from hookline.dashboard.visit.visits import Visits
from hookline.model import Scope, Via

Parts = dict[str, tuple[str, Mapping[str, Any]]]  # template and data by the id of its place
Gathering = Callable[[CallersApi, str | None, float], Awaitable[Parts]]

_IS_PORTAL = "hookline.is_portal"  # in the scope of a request
_OWN_FIRST = frozenset({"assets", "live", "login", "logout", "portal", "theme", "times"})


class Dashboard:
    """The pages of one `Hookline`, beside its API."""

    def __init__(self, hookline: Hookline, api: Api, *, sources: Mapping[str, str] | None = None) -> None:
        self._hookline = hookline
        self._api = api
        self._assets = Assets()
        self._templates = Templates(self._assets)
        self._portal = Portal(hookline.settings)
        self._visits = Visits(
            hookline.store, hookline.key_cache, api.admission, hookline.clock, hookline.settings
        )
        self._answers = Answers(hookline, self._templates, self._portal)
        self._entrance = Entrance(self._visits, self._portal, self._answers)
        pages = all_pages(hookline, sources or {})
        self._routes = [_Compiled(route) for page in pages for route in page.routes()]
        self._live = {name: parts for page in pages for name, parts in getattr(page, "live", {}).items()}
        self._live_of = {
            name: parts for page in pages for name, parts in getattr(page, "live_of", {}).items()
        }
        self._streams = Live(hookline.clock)
        self._first = (_OWN_FIRST | {each.route.path.split("/")[1] for each in self._routes}) - {""}

    def has(self, path: str) -> bool:
        """Whether a request for this path is for a page."""
        first = path[1:].partition("/")[0]  # also of OPTIONS *, which has no slash
        return path == "/" or first in self._first

    def leave(self) -> None:
        """End the streams: the server stops."""
        self._streams.leave()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        request_id = scope[REQUEST_ID] = self._api.new_request_id()
        try:
            response = await self._answered(request, receive, request_id)
        except Disconnected:
            return
        response.headers["request-id"] = request_id
        self._protect(response, is_portal=request.scope.get(_IS_PORTAL, False))
        await response(scope, receive, send)

    async def _answered(self, request: Request, receive: Receive, request_id: str) -> Response:
        path = request.scope["path"]
        if path.startswith(ASSETS):
            found = self._assets.response(path, request.headers)
            return found or Response("Not found.", 404, media_type="text/plain")
        visitor: Visitor | None = None
        try:
            if self._hookline.settings.dev:
                self._api.admission.check(request.scope["headers"])  # refuses foreign names for this machine
            visitor = await self._visits.visitor(request.cookies, secret=self._hookline.secret)
            # Others than customers are never framed: whoever may show the portal must not have them click on anything.
            is_customer = visitor is not None and visitor.kind == "portal"
            request.scope[_IS_PORTAL] = is_customer or path == PORTAL_DOOR
            return await self._visited(request, receive, visitor)
        except Disconnected:
            raise
        except Exception as error:
            problem = describe(error, request_id=request_id)
            self._api.failures.note(error, problem, method=request.method, path=path)
            response = self._answers.problem(request, visitor, problem)
            if isinstance(error, Refused):
                response.headers.update({name.decode(): value.decode() for name, value in error.headers})
                if error.close:
                    response.headers["connection"] = "close"
            return response

    async def _visited(self, request: Request, receive: Receive, visitor: Visitor | None) -> Response:
        path, method = request.scope["path"], "GET" if request.method == "HEAD" else request.method
        if method not in ("GET", "POST"):
            raise Refused(
                "method_not_allowed", "Only GET and POST here.", headers=((b"allow", b"GET, POST"),)
            )
        form = FormData()
        if method == "POST":
            form = await read_form(request, receive, visitor, public_url=self._hookline.settings.public_url)
        if path in ENTRANCE:
            return await self._entrance.answer(request, form)
        if visitor is None:
            return self._entrance.to_login(request, method)
        # A customer's visit counts by itself: it must not use up what the key may ask for that made its link.
        self._api.quotas.count_request(visitor.secret if visitor.kind == "portal" else visitor.caller.digest)
        if path == "/logout" and method == "POST":
            return await self._entrance.log_out(request, visitor)
        require(visitor.caller, Scope.READ)  # pages and streams also show what no call of the API checks
        if path in ("/theme", "/times") and method == "POST":
            return preference(path, form)
        if path == "/live" and request.method == "GET":
            return await self._stream(request, visitor)
        handler, parts = self._route(method, path, visitor)
        clock = self._hookline.clock
        asked = Asked(
            request=request,
            visitor=visitor,
            api=self._api.inside.of(visitor.caller, _asked_by(request, visitor)),
            parts=parts,
            query=_query(request),
            form=form,
            now=clock.shown(clock.now()),
        )
        return await self._rendered(asked, await handler(asked))

    def _route(self, method: str, path: str, visitor: Visitor) -> tuple[Handler, Mapping[str, str]]:
        is_known = False
        for each in self._routes:
            parts = each.match(path)
            if parts is None or (visitor.account is not None and not each.route.for_accounts):
                continue
            if each.route.method == method:
                return each.route.handler, parts
            is_known = True
        if is_known:
            raise Refused("method_not_allowed", "This page cannot be asked for in this way.")
        raise Refused("not_found", NOTHING_HERE)

    async def _rendered(self, asked: Asked, answer: Answer) -> Response:
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, GoTo):
            response = RedirectResponse(own_path(answer.url), 303)
            if answer.said:
                said = tokens.pack_said(answer, asked.visitor)
                response.set_cookie(SAID, said, max_age=60, httponly=True, samesite="lax")
            return response
        return await self._answers.page(asked.request, asked.visitor, answer)

    async def _stream(self, request: Request, visitor: Visitor) -> Response:
        name = request.query_params.get("page", "")
        gather = self._gathering(name)
        is_exact = request.cookies.get(TIMES) == "utc"
        reader = caller(frozenset({Scope.READ}), account=visitor.account)
        api = self._api.inside.of(reader)
        channel = f"{name}:{visitor.account or ''}:{visitor.kind}:{visitor.may_act}:{visitor.may_publish}:{is_exact}"
        shared = Visitor(caller=visitor.caller, name="", kind=visitor.kind, secret=b"")

        async def regions() -> Regions:
            clock = self._hookline.clock
            times = Moments(clock.shown(clock.now()), is_exact=is_exact)
            parts = await gather(api, visitor.account, times.now)
            return {
                id: self._templates.render(template, data, times=times, visitor=shared)
                for id, (template, data) in parts.items()
            }

        if ":" in name:
            await regions()  # raises for a thing that is not there or not theirs
        holder = f"account {visitor.account}" if visitor.account is not None else visitor.secret.hex()
        if self._streams.is_full(holder):
            return Response("", 503, headers={"retry-after": "30"})

        async def is_good() -> bool:
            found = await self._visits.visitor(request.cookies, secret=self._hookline.secret)
            return found is not None and found.caller == visitor.caller

        return StreamingResponse(
            self._streams.stream(channel, holder, regions, is_good),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    def _gathering(self, name: str) -> Gathering:
        """What gathers the regions of a page, by its name, or by its name and the id of the thing it shows."""
        kind, _, id = name.partition(":")
        if not id and name in self._live:
            found: Gathering = self._live[name]
            return found
        if not id or kind not in self._live_of:
            raise Refused("not_found", NOTHING_HERE)
        gather_of = self._live_of[kind]

        async def gather(api: CallersApi, account: str | None, now: float) -> Parts:
            parts: Parts = await gather_of(api, account, now, id)
            return parts

        return gather

    def _protect(self, response: Response, *, is_portal: bool) -> None:
        ancestors = (" ".join(self._portal.ancestors) if is_portal else "") or "'none'"
        response.headers.setdefault(
            "content-security-policy",
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
            f"form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}",
        )
        response.headers["referrer-policy"] = "same-origin"
        response.headers["cross-origin-opener-policy"] = "same-origin"
        response.headers.setdefault("cache-control", "no-store")


def _asked_by(request: Request, visitor: Visitor) -> AskedBy:
    return AskedBy(
        via=Via.PORTAL if visitor.kind == "portal" else Via.DASHBOARD,
        address=request.client.host if request.client else None,
        request_id=request.scope[REQUEST_ID],
    )


def _query(request: Request) -> dict[str, str]:
    """The parameters in the address; PostgreSQL takes no text with a NUL, so that is shown as what it is."""
    pairs = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return {name: value.replace("\0", "\N{REPLACEMENT CHARACTER}") for name, value in pairs}


class _Compiled:
    """A route whose path can be matched."""

    def __init__(self, route: PageRoute) -> None:
        self.route = route
        pattern = re.sub(r"\\{([a-z_]+)\\}", r"(?P<\1>[^/]+)", re.escape(route.path))
        self._pattern = re.compile(pattern)

    def match(self, path: str) -> Mapping[str, str] | None:
        found = self._pattern.fullmatch(path)
        if (
            found is None or "\0" in path
        ):  # nothing has a name with NUL, and PostgreSQL cannot be asked for one
            return None
        return found.groupdict()
