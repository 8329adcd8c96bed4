"""Shows the described event types, and changes them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline.dashboard.addresses import address, part
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.errors import HooklineError, Invalid, TooLarge, Unreadable
from hookline.validate import payload

_ONE = "/v1/event-types/{name}"
_SCHEMA_LIMIT_BYTES = 1 << 20
_COUNTED = 200  # endpoints of a type; more are "200 or more"


class EventTypePages:
    """The list of event types, and the pages of one. A type may be named `new`, so that page has a dash."""

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        one = "/event-types/{name}"
        return [
            PageRoute("GET", "/event-types", self.list_types),
            PageRoute("GET", "/event-types/-new", self.ask_new, for_accounts=False),
            PageRoute("POST", "/event-types/-new", self.create, for_accounts=False),
            PageRoute("GET", one, self.show),
            PageRoute("GET", f"{one}/change", self.ask_change, for_accounts=False),
            PageRoute("POST", f"{one}/change", self.change, for_accounts=False),
            PageRoute("GET", f"{one}/delete", self.ask_delete, for_accounts=False),
            PageRoute("POST", f"{one}/delete", self.delete, for_accounts=False),
        ]

    async def list_types(self, asked: Asked) -> Answer:
        """Which types are described?"""
        cursor = asked.query.get("cursor", "")
        found = await asked.api.get("/v1/event-types", {"cursor": cursor})
        return Shown(
            template="event_types.html",
            title="Event types",
            data={
                "types": [(each, bytes(each.schema) != b"null") for each in found.data],
                "next": ""
                if found.next_cursor is None
                else address("/event-types", cursor=found.next_cursor),
                "first": "/event-types" if cursor else "",
            },
            nav="event-types",
        )

    async def show(self, asked: Asked) -> Answer:
        """What is this type, and who gets it?"""
        name = asked.parts["name"]
        found = await asked.api.get(_ONE, name=name)
        endpoints = await asked.api.get("/v1/endpoints", {"event_type": name, "limit": str(_COUNTED)})
        latest = await asked.api.get("/v1/events", {"type": name, "limit": "1"})
        return Shown(
            template="event_type.html",
            title=name,
            data={
                "type": found,
                "schema": _pretty(found.schema),
                "endpoints": len(endpoints.data),
                "are_more": endpoints.next_cursor is not None,
                "latest": latest.data[0] if latest.data else None,
            },
            nav="event-types",
        )

    async def ask_new(self, asked: Asked) -> Answer:
        """What is described?"""
        return _form("", {"name": asked.query.get("name", ""), "description": "", "schema": ""}, {})

    async def create(self, asked: Asked) -> Answer:
        """Describe a type that has no description yet."""
        given = _given(asked)
        given["name"] = asked.field("name")
        name = given["name"]
        if not name:
            return _form("", given, {"name": ("/name", "An event type has a name, such as order.paid.")})
        if await self._is_described(asked, name):
            said = "This type is described already. Open it to change that."
            return _form("", given, {"name": ("/name", said)})
        return await self._put(asked, "", name, given)

    async def ask_change(self, asked: Asked) -> Answer:
        """What is it to be?"""
        name = asked.parts["name"]
        found = await asked.api.get(_ONE, name=name)
        schema = _pretty(found.schema)
        return _form(name, {"name": name, "description": found.description, "schema": schema}, {})

    async def change(self, asked: Asked) -> Answer:
        """Replace its description and its schema."""
        name = asked.parts["name"]
        await asked.api.get(_ONE, name=name)
        return await self._put(asked, name, name, {"name": name, **_given(asked)})

    async def ask_delete(self, asked: Asked) -> Answer:
        """Really?"""
        found = await asked.api.get(_ONE, name=asked.parts["name"])
        return Shown(
            template="event_type_delete.html",
            title=f"Delete the description of {found.name}?",
            data={"type": found, "has_schema": bytes(found.schema) != b"null"},
            nav="event-types",
        )

    async def delete(self, asked: Asked) -> Answer:
        """Delete its description and its schema."""
        name = asked.parts["name"]
        await asked.api.delete(_ONE, name=name)
        return GoTo("/event-types", f"The description of {name} is deleted.")

    async def _is_described(self, asked: Asked, name: str) -> bool:
        try:
            await asked.api.get(_ONE, name=name)
        except HooklineError:
            return False
        return True

    async def _put(self, asked: Asked, old: str, name: str, given: Mapping[str, str]) -> Answer:
        content = given["schema"].encode("utf-8", "surrogateescape")
        try:
            if content:
                payload.check(content, _SCHEMA_LIMIT_BYTES)
            body = {"description": given["description"], "schema": msgspec.Raw(content or b"null")}
            await asked.api.put(_ONE, body, name=name)
        except Invalid as error:
            field = error.pointer.strip("/").partition("/")[0]
            return _form(old, given, {field if field in given else "schema": (error.pointer, error.detail)})
        except (Unreadable, TooLarge) as error:
            return _form(old, given, {"schema": ("/schema", str(error))})
        return GoTo(f"/event-types/{part(name)}", "Saved. It holds for what is published from now on.")


def _given(asked: Asked) -> dict[str, str]:
    return {name: asked.field(name).replace("\r\n", "\n") for name in ("description", "schema")}


def _form(old: str, given: Mapping[str, str], problems: Mapping[str, tuple[str, str]]) -> Answer:
    return Shown(
        template="event_type_change.html",
        title=f"Change {old}" if old else "Describe an event type",
        data={"old": old, "given": given, "problems": problems},
        nav="event-types",
        status=422 if problems else 200,
    )


def _pretty(schema: Any) -> str:
    """The schema, indented; empty if there is none."""
    content = bytes(schema)
    return "" if content == b"null" else msgspec.json.format(content, indent=2).decode()
