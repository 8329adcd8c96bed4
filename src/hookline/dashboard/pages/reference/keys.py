"""Shows the API keys, makes and revokes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from hookline import ids
from hookline.app import Hookline
from hookline.dashboard.addresses import address
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.errors import Invalid
from hookline.model import Scope

_SCOPES = (
    (Scope.READ, "look at everything but secrets and keys"),
    (Scope.PUBLISH, "publish events"),
    (Scope.ADMIN, "everything: change, replay, make keys"),
)


class KeyPages:
    """The list of keys, and the pages that make and revoke one. They are for keys of the whole installation."""

    def __init__(self, hookline: Hookline) -> None:
        self._settings = hookline.settings

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        one = "/keys/{key_id}/revoke"
        return [
            PageRoute("GET", "/keys", self.list_keys, for_accounts=False),
            PageRoute("GET", "/keys/new", self.ask, for_accounts=False),
            PageRoute("POST", "/keys/new", self.create, for_accounts=False),
            PageRoute("GET", one, self.ask_revoke, for_accounts=False),
            PageRoute("POST", one, self.revoke, for_accounts=False),
        ]

    async def list_keys(self, asked: Asked) -> Answer:
        """Who can get in?"""
        cursor = asked.query.get("cursor", "")
        found = await asked.api.get("/v1/keys", {"cursor": cursor})
        return Shown(
            template="keys.html",
            title="API keys",
            data={
                "keys": found.data,
                "own": _own(asked),
                "has_settings_key": self._settings.api_key is not None,
                "is_development": self._settings.dev,
                "next": "" if found.next_cursor is None else address("/keys", cursor=found.next_cursor),
                "first": "/keys" if cursor else "",
            },
            nav="keys",
        )

    async def ask(self, asked: Asked) -> Answer:
        """What may it do?"""
        given = {"name": "", "account": asked.query.get("account", ""), "scopes": [Scope.READ.value]}
        return _form(given, {})

    async def create(self, asked: Asked) -> Answer:
        """Make a key; this answer alone shows it."""
        given = {
            "name": asked.field("name"),
            "account": asked.field("account"),
            "scopes": [str(each) for each in asked.form.getlist("scopes")],
        }
        try:
            body = {**given, "account": given["account"] or None}
            made = await asked.api.post("/v1/keys", body)
        except Invalid as error:
            field = error.pointer.strip("/").partition("/")[0]
            return _form(given, {field if field in given else "name": (error.pointer, error.detail)})
        return Shown(template="key_made.html", title="The key is made", data={"key": made}, nav="keys")

    async def ask_revoke(self, asked: Asked) -> Answer:
        """What stops working?"""
        key = await asked.api.get("/v1/keys/{key_id}", key_id=asked.parts["key_id"])
        return Shown(
            template="key_revoke.html",
            title=f"Revoke the key {key.name or key.hint}?",
            data={
                "key": key,
                "is_own": key.id == _own(asked),
                "is_last": await self._is_last(asked, key),
                "is_revoked": key.revoked_at is not None,
            },
            nav="keys",
        )

    async def revoke(self, asked: Asked) -> Answer:
        """Revoke it for good."""
        id = asked.parts["key_id"]
        key = await asked.api.get("/v1/keys/{key_id}", key_id=id)
        await asked.api.delete("/v1/keys/{key_id}", key_id=id)
        return GoTo("/keys", f"The key {key.name or key.hint} is revoked.")

    async def _is_last(self, asked: Asked, key: Any) -> bool:
        """Whether nobody could log in to administrate without this key."""
        if self._settings.api_key is not None or self._settings.dev or not _is_master(key):
            return False
        query = {"limit": "200"}
        while True:
            found = await asked.api.get("/v1/keys", query)
            if any(_is_master(each) and each.id != key.id for each in found.data):
                return False
            if found.next_cursor is None:
                return True
            query["cursor"] = found.next_cursor


def _is_master(key: Any) -> bool:
    return key.revoked_at is None and key.account is None and Scope.ADMIN.value in key.scopes


def _own(asked: Asked) -> str:
    """The key that the visitor logged in with."""
    id = asked.visitor.caller.key_id
    return "" if id is None else ids.show("key", id)


def _form(given: Mapping[str, Any], problems: Mapping[str, tuple[str, str]]) -> Answer:
    return Shown(
        template="key_new.html",
        title="Make an API key",
        data={
            "given": given,
            "scopes": [(each.value, said, each.value in given["scopes"]) for each, said in _SCOPES],
            "problems": problems,
        },
        nav="keys",
        status=422 if problems else 200,
    )
