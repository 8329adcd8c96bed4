"""Defines a call of the API.

A call is one value of `Call`. Everything that is known about a call is written there once: the route, the checks of
its parameters and its body, HEAD, 405 and the description in `/openapi.json` all come from it.

To add a call:

1. Say what may be asked: a Struct of the query parameters (`Paged` for a list) whose fields are enums, bools
   or the kinds of `parameters`, and a Struct of the body. Unknown names are refused before the handler runs, and the
   refusal suggests the nearest known one. A body may be left out if all its fields have defaults, but not for PATCH.
2. Say what is answered: a Struct (see `hookline.reports.views`), `Page[…]` of one for a list, None for 204.
3. Write the handler, a method of the noun's class: `async def show(self, asked: CallRequest[Nothing, None])`. It gets
   the parameters as `asked.query`, the body as `asked.body` (and `asked.fields`, the fields that were really given),
   ids of the path by `asked.id("endpoint")`, and the account that the caller is bound to as `asked.account`. It
   returns the answer's value, or `Answered` with headers, and raises errors of `hookline.errors`. A field of the body
   that has error messages of its own is `Annotated[Any, msgspec.Meta(extra_json_schema={…})]`, and the handler
   checks it.
4. If the body has fields, give an `example` of it that works when it is sent: the tests send it. The name of the
   operation is made of the path (see `description.operations`); a nested object of the body gets a `title`.
5. Put the `Call` into the list that the class returns as `table()`, fixed paths before those with `{…_id}`, and
   the class, if it is new, into `routes`.

`problems` names the codes beyond those that every call can answer (see `description.document`).
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from starlette.requests import Request

from hookline import ids
from hookline.admin.key_cache import Caller
from hookline.api.request.parameters import Cursor, Limit
from hookline.errors import Invalid
from hookline.model import DeliveryId, EndpointId, EventId
from hookline.validate.names import check_idempotency_key

DEFAULT_LIMIT = 50
CALLER = "hookline.caller"  # in an ASGI scope: the caller of the request
REQUEST_ID = "hookline.request_id"  # and its id
VIA = "hookline.via"  # and the way in that it took, if that is not the API

Query = TypeVar("Query", bound=msgspec.Struct)
Body = TypeVar("Body")
Shown = TypeVar("Shown")


class CallScope(StrEnum):
    """What a key must be good for; OPEN is answered to everybody."""

    OPEN = "open"
    PUBLISH = "publish"
    READ = "read"
    ADMIN = "admin"


class Nothing(msgspec.Struct, frozen=True):
    """No parameters, or no fields."""


class Paged(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that every list has."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


class Page(msgspec.Struct, Generic[Shown], frozen=True):
    """One page of a list, newest first. Pass `next_cursor` as `cursor` to get the next page."""

    data: list[Shown]
    next_cursor: Annotated[str | None, msgspec.Meta(description="null on the last page")]


class CallRequest(msgspec.Struct, Generic[Query, Body], frozen=True):
    """The request for a call, checked."""

    request: Request
    query: Query
    filters: Mapping[str, str]  # the parameters as they were written, without `limit` and `cursor`
    body: Body
    fields: Mapping[str, Any]  # the fields that the body gave

    @property
    def path(self) -> str:
        """The path of the request, which also names a list."""
        path: str = self.request.scope["path"]
        return path

    def part(self, name: str) -> str:
        """A part of the path, such as the `name` of `/v1/event-types/{name}`."""
        part: str = self.request.path_params[name]
        return part

    @property
    def account(self) -> str | None:
        """The account that the caller's key is bound to; None: any."""
        caller: Caller = self.request.scope[CALLER]
        return caller.account

    @property
    def key_digest(self) -> bytes:
        """The digest of the caller's key; empty: it needs none."""
        caller: Caller = self.request.scope[CALLER]
        return caller.digest

    def id(self, noun: str) -> bytes:
        """The id that the path has as `{noun_id}`; raises NotFound when it cannot be one."""
        return ids.read(noun, self.part(f"{noun}_id"))

    @property
    def endpoint_id(self) -> EndpointId:
        return EndpointId(self.id("endpoint"))

    @property
    def event_id(self) -> EventId:
        return EventId(self.id("event"))

    @property
    def delivery_id(self) -> DeliveryId:
        return DeliveryId(self.id("delivery"))

    @property
    def idempotency_key(self) -> str | None:
        """The caller's own name for this call; only calls with `takes_key` have one."""
        given = self.request.headers.getlist("idempotency-key")
        if len(given) > 1:
            raise Invalid("There are two Idempotency-Key headers.")
        return check_idempotency_key(given[0], pointer="") if given else None


class Answered(msgspec.Struct, frozen=True):
    """An answer with headers of its own."""

    value: Any
    headers: dict[str, str]


Handler = Callable[[CallRequest[Any, Any]], Awaitable[Any]]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call: its request, its answer and its handler."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]  # HEAD is answered as GET
    path: str  # such as /v1/endpoints/{endpoint_id}/pause
    summary: str
    scope: CallScope
    handler: Handler | None  # None: answered before the router (publishing, the hot path)
    query: type[msgspec.Struct] = Nothing
    body: type[msgspec.Struct] | None = None
    example: Any = None  # a body that works when it is sent; the description shows it
    answer: Any = None  # a Struct type or Page[…] of one; None: no body
    status: int = 200
    problems: tuple[str, ...] = ()
    takes_key: bool = False  # Idempotency-Key
    media: str | None = None  # for an answer that is not JSON: the handler returns a Response
    is_described: bool = True  # False: only our own pages call it
    # May a key that is bound to an account make this call? None: yes, if its path names things that belong to an
    # account, or it has a parameter or field `account` (see `tenancy`). True: yes; the handler respects
    # `asked.account`, or shows nothing of any account.
    for_accounts: bool | None = None
    scope_of_accounts: CallScope | None = (
        None  # what a key needs that is bound to an account, if that is less
    )


def names_account(call: Call) -> bool:
    """Does the call name the account it is about? A key that is bound to an account may name no other."""
    body = () if call.body is None else call.body.__struct_fields__
    return "{account}" in call.path or "account" in call.query.__struct_fields__ or "account" in body
