"""Answers the calls about API keys."""

from typing import Annotated, Any

import msgspec

from hookline.admin.keys import MAX_NAME, KeyReport, shown
from hookline.api.call import Answered, Call, CallRequest, CallScope, Nothing, Page, Paged
from hookline.api.request.parameters import ACCOUNT_SCHEMA, null_or
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.model import KeyId
from hookline.model import Scope as KeyScope

_SCOPES = {
    "type": "array",
    "items": {"type": "string", "enum": [scope.value for scope in KeyScope]},
    "minItems": 1,
    "maxItems": len(KeyScope),
}


class NewKey(msgspec.Struct, frozen=True):
    """The name and scopes of a new API key; `account` restricts it to one account."""

    scopes: Annotated[Any, msgspec.Meta(extra_json_schema=_SCOPES)]
    name: Annotated[Any, null_or({"type": "string", "maxLength": MAX_NAME})] = None
    account: Annotated[Any, null_or(ACCOUNT_SCHEMA)] = None


class KeyCalls:
    """The calls under `/v1/keys`."""

    def __init__(self, hookline: Hookline, pages: Pages) -> None:
        self._keys = hookline.keys
        self._store = hookline.store
        self._pages = pages

    def table(self) -> list[Call]:
        """The calls. A key that is bound to an account creates no keys, or it could create one that is not bound."""
        return [
            Call(
                method="GET",
                path="/v1/keys",
                summary="List API keys, including revoked ones, without their values",
                scope=CallScope.ADMIN,
                handler=self.list_keys,
                query=Paged,
                answer=Page[KeyReport],
            ),
            Call(
                method="POST",
                path="/v1/keys",
                summary="Create an API key; only this response shows it",
                scope=CallScope.ADMIN,
                handler=self.create,
                body=NewKey,
                example={"scopes": ["publish"], "name": "shop"},
                answer=KeyReport,
                status=201,
                for_accounts=False,
            ),
            Call(
                method="GET",
                path="/v1/keys/{key_id}",
                summary="Get an API key, without its value",
                scope=CallScope.ADMIN,
                handler=self.show,
                answer=KeyReport,
            ),
            Call(
                method="DELETE",
                path="/v1/keys/{key_id}",
                summary="Revoke an API key permanently",
                scope=CallScope.ADMIN,
                handler=self.revoke,
                status=204,
            ),
        ]

    async def list_keys(self, asked: CallRequest[Paged, None]) -> Page[KeyReport]:
        after, limit = self._pages.after(asked), asked.query.limit
        found = await self._store.list_keys(after=None if after is None else KeyId(after), limit=limit + 1)
        reports = [shown(key) for key in found[:limit]]
        return self._pages.page(asked, found, id=lambda row: row.id, shown=reports)

    async def create(self, asked: CallRequest[Nothing, NewKey]) -> Answered:
        report = await self._keys.create(asked.fields)
        return Answered(report, {"location": f"/v1/keys/{report.id}"})

    async def show(self, asked: CallRequest[Nothing, None]) -> KeyReport:
        return await self._keys.one(KeyId(asked.id("key")))

    async def revoke(self, asked: CallRequest[Nothing, None]) -> None:
        await self._keys.revoke(KeyId(asked.id("key")))
