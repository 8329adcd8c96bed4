"""Finds what a person was given: an id, a URL, an idempotency key, an event type or an account.

Everything is asked for as the visitor, so that nothing tells of other accounts.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hookline import ids
from hookline.app import Hookline
from hookline.dashboard.addresses import address, part
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.errors import HooklineError, Invalid, NotFound
from hookline.model import Scope
from hookline.validate.names import check_idempotency_key, check_type

_ENDPOINTS = 20  # shown for a part of a URL
_ACCOUNTS = 5
_KEYS = 10  # pages of 200 that are looked through
_LOOKS_LIKE_ID = re.compile(r"[a-z]{2,3}_\S+")
_SHORT = re.compile(r"[a-z]{2,3}_…")
_PAGES = {
    "event": "/events/{}",
    "endpoint": "/endpoints/{}",
    "delivery": "/deliveries/{}",
    "worker": "/workers",
    "replay": "/replays/{}",
    "discard": "/discards/{}",
    "key": "/keys#{}",
    "alert": "/#alerts",
}
_NOUNS = {"replay": "Bulk replay", "discard": "Bulk discard", "key": "API key"}


class Match(NamedTuple):
    """Something that has this name."""

    kind: str
    name: str
    href: str
    more: str = ""


class FindPages:
    """The page behind the search field."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline

    def routes(self) -> Sequence[PageRoute]:
        """The page."""
        return [PageRoute("GET", "/find", self.find)]

    async def find(self, asked: Asked) -> Answer:
        """What is it?"""
        q = asked.query.get("q", "").strip()[:2_048]
        if not q:
            return _shown("Find", q, [])
        matches, has_more = await self._by_id(asked, q)
        if not matches:
            for look in (self._by_url, self._by_key, self._by_account):
                found, is_more = await look(asked, q)
                matches += found
                has_more = has_more or is_more
            # Last: a type that nobody published is looked for among all events.
            matches += await self._by_type(asked, q, is_thorough=not matches)
        if len(matches) == 1 and not has_more:
            return GoTo(matches[0].href)
        if not matches:
            said = ""
            if _SHORT.match(q):
                said = "This is a shortened id. Copy the whole one from its page."
            elif _LOOKS_LIKE_ID.fullmatch(q):
                said = "It may be of something that was removed after its time."
            return _shown(f"Nothing is called {_cut(q)}", q, [], sub=said, status=404)
        count = f"{len(matches)} or more" if has_more else str(len(matches))
        return _shown(f"{count} things match {_cut(q)}", q, matches, has_more=has_more)

    async def _by_id(self, asked: Asked, q: str) -> tuple[list[Match], bool]:
        prefix = ids.read_prefix(q)
        if prefix is None or prefix.length < ids.LEAST_PREFIX:
            return [], False
        if prefix.noun == "key":
            return await self._keys(asked, q)
        try:
            found = await asked.api.get("/v1/ids/{prefix}", prefix=q)
        except (Invalid, NotFound):
            return [], False
        kind = _NOUNS.get(prefix.noun, prefix.noun.capitalize())
        page = _PAGES.get(prefix.noun)
        if page is None:
            return [], False
        return [Match(kind, id, page.format(id)) for id in found.data], found.has_more

    async def _keys(self, asked: Asked, q: str) -> tuple[list[Match], bool]:
        if asked.visitor.account is not None or not asked.visitor.caller.may(Scope.ADMIN):
            return [], False
        query = {"limit": "200"}
        for _ in range(_KEYS):
            found = await asked.api.get("/v1/keys", query)
            for key in found.data:
                if key.id.startswith(q):
                    return [Match("API key", key.name or key.hint, _PAGES["key"].format(key.id))], False
            if found.next_cursor is None:
                break
            query["cursor"] = found.next_cursor
        return [], False

    async def _by_url(self, asked: Asked, q: str) -> tuple[list[Match], bool]:
        # The board also finds parts of descriptions and accounts; only URLs are meant here.
        found = await self._hookline.board.page(asked.visitor.account, q=q, limit=_ENDPOINTS + 1)
        rows = [row for row in found.rows if q.lower() in row.url.lower()]
        exact = [row for row in rows if q in (row.url, words.short_url(row.url))]
        rows = exact or rows
        own = asked.visitor.account is not None
        matches = [
            Match(
                "Endpoint",
                words.short_url(row.url),
                f"/endpoints/{row.id}",
                row.description
                if own
                else ", ".join(each for each in (row.account, row.description) if each),
            )
            for row in rows
        ]
        return matches[:_ENDPOINTS], len(matches) > _ENDPOINTS

    async def _by_key(self, asked: Asked, q: str) -> tuple[list[Match], bool]:
        try:
            key = check_idempotency_key(q)
        except Invalid:
            return [], False
        found = await asked.api.get("/v1/events", {"idempotency_key": key, "limit": "10"})
        matches = [
            Match(
                "Event",
                f"{event.type}, {words.short_id(event.id)}",
                f"/events/{event.id}",
                "by its idempotency key"
                if asked.visitor.account
                else f"of {event.account}, by its idempotency key",
            )
            for event in found.data
        ]
        return matches, found.next_cursor is not None

    async def _by_type(self, asked: Asked, q: str, *, is_thorough: bool) -> list[Match]:
        try:
            name = check_type(q)
        except Invalid:
            return []
        try:
            await asked.api.get("/v1/event-types/{name}", name=name)
            return [Match("Event type", name, f"/event-types/{part(name)}")]
        except HooklineError:
            pass  # not described
        if not is_thorough:
            return []
        found = await asked.api.get("/v1/events", {"type": name, "limit": "1"})
        if not found.data:
            return []
        return [Match("Event type", name, address("/events", type=name), "events of this type")]

    async def _by_account(self, asked: Asked, q: str) -> tuple[list[Match], bool]:
        if asked.visitor.account is not None:
            return [], False
        known = self._hookline.account_list
        one = known.one(q)
        found = [one] if one is not None else known.find(part=q, limit=_ACCOUNTS + 1)
        matches = [
            Match("Account", each.id, f"/accounts/{part(each.id)}", words.counted(each.endpoints, "endpoint"))
            for each in found[:_ACCOUNTS]
        ]
        return matches, len(found) > _ACCOUNTS


def _cut(q: str) -> str:
    return q if len(q) <= 80 else f"{q[:79]}…"


def _shown(
    title: str,
    q: str,
    matches: Sequence[Match],
    *,
    sub: str = "",
    has_more: bool = False,
    status: int = 200,
) -> Answer:
    return Shown(
        template="find.html",
        title=title,
        data={"q": q, "matches": matches, "has_more": has_more, "sub": sub},
        nav="find",
        status=status,
    )
