"""Reads the forms of our own pages, and refuses all others."""

from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import FormData, Headers
from starlette.requests import Request

from hookline.api.problem import Refused
from hookline.api.request.body import Receive, read_body
from hookline.dashboard.page import Visitor
from hookline.dashboard.visit.tokens import is_good
from hookline.errors import TooLarge

LIMIT_BYTES = 2 << 20
LIMIT_WITHOUT_VISIT_BYTES = 16 << 10  # a key or a link, and where to go: everybody may send these
MOST_FIELDS = 10_000
WITHOUT_VISIT = frozenset(
    {"/login", "/portal/enter"}
)  # their forms begin a visit and can have no token of one


async def read_form(
    request: Request, receive: Receive, visitor: Visitor | None, *, public_url: str | None
) -> FormData:
    """The fields of a form that one of our own pages sent; raises `Refused` for any other."""
    _refuse_foreign(request.headers, public_url)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused("unsupported_media_type", "Forms are application/x-www-form-urlencoded.")
    limit = LIMIT_WITHOUT_VISIT_BYTES if visitor is None else LIMIT_BYTES
    try:
        content = await read_body(receive, limit_bytes=limit)
    except TooLarge:
        raise Refused("too_large", f"This form has at most {limit:,} bytes.", close=True) from None
    try:
        fields = parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused("bad_request", "The form cannot be read.") from None
    form = FormData([(name, value) for name, value in fields])
    if visitor is not None and request.scope["path"] not in WITHOUT_VISIT:
        token = form.get("token", "")
        if not (isinstance(token, str) and is_good(token, visitor)):
            raise Refused(
                "forbidden", "This form is out of date. Go back, load the page again and repeat it."
            )
    return form


def _refuse_foreign(headers: Headers, public_url: str | None) -> None:
    """Browsers say where a form comes from; nothing is read of one that comes from elsewhere or does not say it."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    is_ours = site == "same-origin" or (site is None and origin is not None)
    if origin is not None:
        # A proxy may name this server differently from what the browser asked for: then `public_url` is known.
        hosts = (headers.get("host"), None if public_url is None else urlsplit(public_url).netloc)
        is_ours = is_ours and origin.partition("://")[2] in hosts
    if not is_ours:
        raise Refused("forbidden", "This form did not come from a page of hookline.")
