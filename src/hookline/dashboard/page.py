"""Defines a page of the dashboard: who asks for what, and what is shown.

A page is a handler, an `async` method that gets `Asked` and returns one of these:

- `Shown`: a template with its data. Its `title` is the sentence that the tab tells.
- `GoTo`: another page, after something was done; `said` is shown there once.
- a Starlette `Response`, for downloads.

It reads and changes everything through `asked.api`, whose calls check what the visitor's key may do. What they raise is
shown as a page of its own. A handler catches `Invalid` only where it can show the message beside its field.

Each class of pages returns its routes from `routes()`. Reading is GET; whatever changes something is POST. Forms carry
`{{ csrf() }}`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from hookline.admin.key_cache import Caller
from hookline.api.inside import CallersApi
from hookline.model import Scope

Tone = Literal["ok", "warn", "bad"]


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks at a page."""

    caller: Caller
    name: str  # of the key
    kind: Literal["development", "login", "portal"]
    secret: bytes  # what the tokens of its forms are made from; nobody else has it
    ends_at: float | None = None  # when the visit ends at the latest

    @property
    def account(self) -> str | None:
        """The only account that is seen; None: all of them."""
        return self.caller.account

    @property
    def may_act(self) -> bool:
        """Whether anything can be changed."""
        return self.caller.may(Scope.ADMIN)

    @property
    def may_publish(self) -> bool:
        """Whether events can be published; a customer in the portal never can."""
        return self.caller.may_publish


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a page, by a visitor who may ask for it."""

    request: Request
    visitor: Visitor
    api: CallersApi
    parts: Mapping[str, str]  # of the path, such as `endpoint_id`
    query: Mapping[str, str]  # the last of each name
    form: FormData
    now: float  # as it is shown to people

    def field(self, name: str) -> str:
        """A field of the form as text; empty if it is missing."""
        value = self.form.get(name, "")
        return value.strip() if isinstance(value, str) else ""

    @property
    def is_swap(self) -> bool:
        """Whether the page's script asks for a part of the page, and not a person for the page."""
        return "hx-request" in self.request.headers


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A template and its data."""

    template: str
    title: str
    data: Mapping[str, Any]
    nav: str = ""  # which of the pages in the navigation it belongs to
    status: int = 200
    live: str = (
        ""  # the name of its stream, with an id as `endpoint:ep_…`; empty: nothing on it changes by itself
    )


class GoTo(msgspec.Struct, frozen=True):
    """Another page; what was done is said there once."""

    url: str
    said: str = ""
    tone: Tone = "ok"


Answer = Shown | GoTo | Response
Handler = Callable[[Asked], Awaitable[Answer]]


class PageRoute(msgspec.Struct, frozen=True):
    """A path and what answers it."""

    method: Literal["GET", "POST"]
    path: str  # such as /endpoints/{endpoint_id}
    handler: Handler
    for_accounts: bool = True  # False: only for keys of the whole installation; for others it does not exist
