"""Turns what a page shows into an answer for the browser."""

import gzip
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hookline.api.problem import Problem
from hookline.app import Hookline
from hookline.dashboard.look.assets import accepts_gzip
from hookline.dashboard.look.render import Moments, Templates
from hookline.dashboard.page import Shown, Visitor
from hookline.dashboard.visit import tokens
from hookline.dashboard.visit.portal import Portal
from hookline.errors import HooklineError
from hookline.version import VERSION

SAID, THEME, TIMES = "hookline_said", "hookline_theme", "hookline_times"  # cookies
_PACKED_FROM_BYTES = 1_000
_PROBLEM_TITLES = {
    "not_found": "There is nothing here.",
    "forbidden": "This is not allowed.",
    "unavailable": "The database does not answer.",
    "internal": "This page could not be shown.",
}


class Answers:
    """Renders pages for visitors."""

    def __init__(self, hookline: Hookline, templates: Templates, portal: Portal) -> None:
        self._hookline = hookline
        self._templates = templates
        self._portal = portal
        self._database = "SQLite" if hookline.settings.database.startswith("sqlite") else "PostgreSQL"

    def times(self, request: Request) -> Moments:
        """How moments are written for this visitor."""
        clock = self._hookline.clock
        return Moments(clock.shown(clock.now()), is_exact=request.cookies.get(TIMES) == "utc")

    async def page(self, request: Request, visitor: Visitor, shown: Shown) -> Response:
        """A page in its frame."""
        said = tokens.unpack_said(request.cookies.get(SAID, ""), visitor) if SAID in request.cookies else None
        text = self._templates.render(
            shown.template,
            shown.data,
            times=self.times(request),
            title=shown.title,
            nav=shown.nav,
            live=shown.live,
            visitor=visitor,
            said=said,
            tally=await self._dead(visitor),
            here=here(request),
            **self._common(request, visitor),
        )
        response = _html(text, request, status=shown.status)
        if SAID in request.cookies:
            response.delete_cookie(SAID)
        return response

    def problem(self, request: Request, visitor: Visitor | None, problem: Problem) -> Response:
        """One clear page for what went wrong."""
        title = _PROBLEM_TITLES.get(problem.code, f"{problem.title}.")
        data = {
            "title": title,
            "detail": problem.detail,
            "status": problem.status,
            "request_id": problem.request_id,
        }
        if visitor is None:
            return self.alone(request, "alone.html", data, status=problem.status)
        text = self._templates.render(
            "problem.html",
            data,
            times=self.times(request),
            nav="",
            live="",
            visitor=visitor,
            said=None,
            tally=None,
            here="/",
            **self._common(request, visitor),
        )
        return _html(text, request, status=problem.status)

    def alone(
        self, request: Request, template: str, data: Mapping[str, Any], *, status: int = 200
    ) -> Response:
        """A page without navigation, for who has no visit."""
        is_portal = request.scope["path"].startswith("/portal/")
        text = self._templates.render(
            template,
            data,
            times=self.times(request),
            live="",
            visitor=None,
            next=request.query_params.get("next", "/"),
            **self._common(request, None, is_portal=is_portal),
        )
        return _html(text, request, status=status)

    async def _dead(self, visitor: Visitor) -> int | None:
        """The number in the navigation; a page without it is better than none."""
        try:
            return (await self._hookline.health.report(visitor.account)).dead
        except HooklineError:
            return None

    def _common(
        self, request: Request, visitor: Visitor | None, *, is_portal: bool = False
    ) -> dict[str, Any]:
        is_portal = is_portal or (visitor is not None and visitor.kind == "portal")
        theme = request.cookies.get(THEME)
        return {
            "product": (self._portal.name or "Webhooks") if is_portal else "hookline",
            "logo": is_portal and self._portal.has_logo,
            "has_portal_theme": is_portal and self._portal.has_theme,
            "is_framed": is_portal and request.headers.get("sec-fetch-dest") == "iframe",
            "theme": theme if theme in ("light", "dark") else "",
            "is_exact": request.cookies.get(TIMES) == "utc",
            "version": VERSION,
            "database": self._database,
            "has_docs": self._hookline.settings.dev,  # elsewhere they want the key itself, not a visit
        }


def here(request: Request) -> str:
    """The path and query of the request."""
    path: str = request.scope["path"]
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _html(text: str, request: Request, *, status: int) -> Response:
    body = text.encode("utf-8", "replace")
    headers = {"content-type": "text/html; charset=utf-8", "vary": "accept-encoding, cookie"}
    if len(body) >= _PACKED_FROM_BYTES and accepts_gzip(request.headers):
        return Response(gzip.compress(body, 5), status, {**headers, "content-encoding": "gzip"})
    return Response(body, status, headers)
