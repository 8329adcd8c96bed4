"""Publishes an event by hand, to try what happens."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline import ids
from hookline.api.auth import require
from hookline.api.problem import NOTHING_HERE, Refused
from hookline.api.publishing.envelope import read_publication
from hookline.app import Hookline
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown, Visitor
from hookline.errors import HooklineError, IdempotencyConflict, Invalid, SchemaMismatch, TooLarge, Unreadable
from hookline.model import Scope
from hookline.pipeline.intake.drafts import Published
from hookline.validate import payload

_FIELDS = ("type", "payload", "account", "idempotency_key")
_FIRST = {"type": "order.paid", "payload": '{\n  "id": 42\n}'}


def may_publish(visitor: Visitor) -> bool:
    """Whether the visitor may publish; those who came by a portal link never may."""
    return visitor.kind != "portal" and visitor.caller.may_publish


class PublishPages:
    """The form that publishes an event."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [
            PageRoute("GET", "/events/new", self.ask),
            PageRoute("POST", "/events/new", self.publish),
        ]

    async def ask(self, asked: Asked) -> Answer:
        """What is published?"""
        _check(asked.visitor)
        given = {name: asked.query.get(name, _FIRST.get(name, "")) for name in ("type", "payload", "account")}
        return self._form({**given, "idempotency_key": f"dashboard-{secrets.token_hex(8)}"}, {})

    async def publish(self, asked: Asked) -> Answer:
        """Publish it; the same form sent twice publishes once."""
        _check(asked.visitor)
        given = {name: asked.field(name) for name in _FIELDS}
        # Browsers send every line's end as two characters.
        given["payload"] = given["payload"].replace("\r\n", "\n")
        try:
            published = await self._published(given, asked.visitor.account)
        except (Invalid, Unreadable, TooLarge, IdempotencyConflict) as error:
            return self._form(given, _problems(error))
        id = ids.show("event", published.id)
        if published.duplicate:
            return GoTo(
                f"/events/{id}", "It was published before, with the same key: nothing was sent twice.", "warn"
            )
        where = words.counted(published.deliveries, "endpoint")
        return GoTo(
            f"/events/{id}",
            f"Published. It goes to {where}."
            if published.deliveries
            else "Published. No endpoint asks for it.",
            "ok" if published.deliveries else "warn",
        )

    async def _published(self, given: Mapping[str, str], account: str | None) -> Published:
        limit = self._hookline.settings.payload_limit_bytes
        content = given["payload"].encode("utf-8", "surrogateescape")
        payload.check(content, limit)  # alone: nothing in it can be taken for another field
        fields: dict[str, Any] = {"type": given["type"], "payload": msgspec.Raw(content)}
        fields |= {name: given[name] for name in ("account", "idempotency_key") if given[name]}
        draft = read_publication(
            msgspec.json.encode(fields),
            limit_bytes=limit,
            now=self._hookline.clock.now(),
            bound_to=account,
        )
        [result] = await self._hookline.accept([draft])
        if isinstance(result, HooklineError):
            raise result
        return result

    def _form(self, given: Mapping[str, str], problems: Mapping[str, tuple[str, str]]) -> Answer:
        return Shown(
            template="event_new.html",
            title="Publish a test event",
            data={
                "given": given,
                "problems": problems,
                "limit": self._hookline.settings.payload_limit_bytes,
            },
            nav="events",
            status=422 if problems else 200,
        )


def _check(visitor: Visitor) -> None:
    if visitor.kind == "portal":
        raise Refused("not_found", NOTHING_HERE)
    require(visitor.caller, Scope.PUBLISH)


def _problems(error: HooklineError) -> dict[str, tuple[str, str]]:
    """The message beside its field, with its pointer."""
    match error:
        case SchemaMismatch():
            said = "; ".join(f"{at}: {why}" for at, why in error.errors)
            return {"payload": (error.errors[0][0], f"{error.detail} {said}")}
        case Invalid():
            name = error.pointer.strip("/").partition("/")[0]
            return {name if name in _FIELDS else "payload": (error.pointer, error.detail)}
        case IdempotencyConflict():
            return {"idempotency_key": ("/idempotency_key", str(error))}
        case Unreadable():
            return {"payload": ("/payload", error.detail)}
    return {"payload": ("/payload", str(error))}
