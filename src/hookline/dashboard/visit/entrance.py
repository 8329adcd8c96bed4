"""Lets visitors in and out: login, portal links, logout, and how they want colours and times."""

from urllib.parse import quote, unquote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hookline.api.problem import Refused
from hookline.dashboard.answers import THEME, TIMES, Answers, here
from hookline.dashboard.page import Visitor
from hookline.dashboard.visit.portal import Portal
from hookline.dashboard.visit.visits import COOKIE, LONGEST_S, Visits

DOOR = "/portal/enter"  # where portal links lead
PATHS = frozenset({"/login", DOOR, "/portal/theme.css", "/portal/logo"})  # for who has no visit, too
_UNKNOWN_KEY = "This key is not known here, or it was revoked. Nothing else about it can be told."
_YEAR_S = 31_536_000


class Entrance:
    """What a browser without a visit may ask for, and how a visit ends."""

    def __init__(self, visits: Visits, portal: Portal, answers: Answers) -> None:
        self._visits = visits
        self._portal = portal
        self._answers = answers

    async def answer(self, request: Request, form: FormData) -> Response:
        """Answer one of PATHS."""
        match request.scope["path"]:
            case "/portal/theme.css":
                return self._portal.theme()
            case "/portal/logo":
                return self._portal.logo_file()
            case "/portal/enter":
                return await self._enter(request, form)
        return await self._log_in(request, form)

    async def log_out(self, request: Request, visitor: Visitor) -> Response:
        """End the visit."""
        await self._visits.end(request.cookies)
        response = RedirectResponse("/portal/enter?left=1" if visitor.kind == "portal" else "/login", 303)
        # A browser keeps a framed visit's cookie in a jar of its own, and clears it there only if told so.
        response.headers.append(
            "set-cookie", f"{COOKIE}=; Path=/; HttpOnly; Max-Age=0; {self._crossing(request, visitor.kind)}"
        )
        return response

    def to_login(self, request: Request, method: str) -> Response:
        """Send somebody without a visit to the login, and back afterwards."""
        if request.scope["path"] == "/live":
            return Response("", 401)
        ended = "&ended=1" if COOKIE in request.cookies else ""
        if "hx-request" in request.headers:
            return Response("", headers={"hx-redirect": f"/login?next=%2F{ended}"})
        if self._portal.ancestors and request.headers.get("sec-fetch-dest") == "iframe":
            return RedirectResponse(f"{DOOR}?left=1", 303)  # the login is never framed
        wanted = here(request) if method == "GET" else "/"
        return RedirectResponse(f"/login?next={quote(wanted, safe='')}{ended}", 303)

    async def _log_in(self, request: Request, form: FormData) -> Response:
        data = {"title": "Log in", "refused": "", "ended": request.query_params.get("ended") == "1"}
        if request.method != "POST":
            return self._answers.alone(request, "login.html", data)
        key = str(form.get("key", "")).strip()
        try:
            token = await self._visits.log_in(key, request.client.host if request.client else "")
        except (Refused, UnicodeEncodeError) as error:
            is_throttled = isinstance(error, Refused) and error.code == "rate_limited"
            said = str(error) if is_throttled else _UNKNOWN_KEY
            data |= {"refused": said, "ended": False}
            response = self._answers.alone(request, "login.html", data, status=429 if is_throttled else 401)
            if isinstance(error, Refused):
                response.headers.update({name.decode(): value.decode() for name, value in error.headers})
            return response
        response = RedirectResponse(own_path(str(form.get("next", ""))), 303)
        self._give(response, request, token, is_portal=False)
        return response

    async def _enter(self, request: Request, form: FormData) -> Response:
        if request.method != "POST":
            # Only a form opens the visit: what looks at links before people do would use them up.
            has_left = request.query_params.get("left") == "1"
            link = request.query_params.get("token", "")
            title = "You have left" if has_left else "Your webhooks" if link else "This link cannot be used"
            data = {"title": title, "link": link, "has_left": has_left}
            return self._answers.alone(request, "enter.html", data)
        token = await self._visits.enter(str(form.get("link", "")))
        if token is None:
            data = {"title": "This link cannot be used", "link": "", "has_left": False}
            return self._answers.alone(request, "enter.html", data, status=403)
        response = RedirectResponse("/", 303)
        self._give(response, request, token, is_portal=True)
        return response

    def _give(self, response: Response, request: Request, token: str, *, is_portal: bool) -> None:
        """Hand the visit's token to the browser. A framed portal is part of another site, so its cookie must cross."""
        lasts = f"{COOKIE}={token}; Path=/; HttpOnly; Max-Age={int(LONGEST_S)}"
        kind = "portal" if is_portal else "login"
        response.headers.append("set-cookie", f"{lasts}; {self._crossing(request, kind)}")

    def _crossing(self, request: Request, kind: str) -> str:
        """The attributes that say to where the browser takes the cookie."""
        if kind == "portal" and self._portal.ancestors:
            return "SameSite=None; Partitioned; Secure"
        is_encrypted = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        return "SameSite=Strict; Secure" if is_encrypted else "SameSite=Strict"


def preference(path: str, form: FormData) -> Response:
    """Keep how the visitor wants colours (`/theme`) or times (`/times`)."""
    response = RedirectResponse(own_path(str(form.get("back", "/"))), 303)
    name = THEME if path == "/theme" else TIMES
    value = str(form.get(path[1:], ""))
    if value in ("light", "dark", "utc"):
        response.set_cookie(name, value, max_age=_YEAR_S, httponly=True, samesite="lax")
    else:
        response.delete_cookie(name)
    return response


def own_path(text: str) -> str:
    """The text if it is a path of this server; the first page otherwise."""
    plain = unquote(text)
    is_own = plain.startswith("/") and not plain.startswith(("//", "/\\"))
    return text if is_own and plain.isprintable() else "/"
