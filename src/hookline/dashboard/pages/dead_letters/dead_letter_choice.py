"""Reads which dead letters a page is about, and writes links to the same choice elsewhere."""

import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from hookline import rfc3339
from hookline.api.inside import CallersApi
from hookline.dashboard.look import words
from hookline.dashboard.page import Asked
from hookline.errors import Invalid, NotFound
from hookline.validate.windows import window_seconds

FIELDS = ("endpoint_id", "event_type", "account", "reason", "since", "until")
WINDOWS = {"1h": "hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days"}
MOST_IDS = 200
_LENGTH = re.compile("[0-9]{1,6}[mhd]")
_WHOLE_ID = re.compile("ep_[0-9a-v]{26}")
_PAGES = 10  # of endpoints whose URLs are looked through


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Some dead letters: all that match the fields as they stand in a page's address, or those with these ids."""

    endpoint_id: str = ""
    event_type: str = ""
    account: str = ""
    reason: str = ""
    since: str = ""  # a moment, or a window such as 7d
    until: str = ""
    is_replayed: bool = False  # not dead now: replayed, and not yet delivered
    ids: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, str]:
        """The fields that say something."""
        return {name: value for name in FIELDS if (value := getattr(self, name))}

    @property
    def is_any(self) -> bool:
        """Whether anything is asked for but all of them."""
        return bool(self.fields or self.ids or self.is_replayed)

    @property
    def window(self) -> str | None:
        """The window in `since`, if it is one."""
        return self.since if _LENGTH.fullmatch(self.since) else None

    def wanted(self, now: float) -> dict[str, str]:
        """The fields as the API takes them; the same window begins a little later each time."""
        found = self.fields
        if self.window is not None:
            found["since"] = rfc3339.show(now - window_seconds(self.window, pointer="since"))
        return found

    def of_job(self, now: float) -> dict[str, Any]:
        """The `filter` of a job. Without any field it is about all that are dead by now."""
        if self.ids:
            return {"ids": list(self.ids)}
        return self.wanted(now) or {"until": rfc3339.show(now)}

    def link(self, path: str = "/dead-letters", /, **changes: str) -> str:
        """The address of a page about the same, with some fields changed; an empty one is left out."""
        found = {**self.fields, **({"replayed": "true"} if self.is_replayed else {}), **changes}
        pairs = [(name, value) for name, value in found.items() if value]
        pairs += [("id", each) for each in self.ids]
        return f"{path}?{urlencode(pairs)}" if pairs else path

    def pinned(self, now: float) -> "Choice":
        """The same, no matter when it is looked at: what dies after now is left out."""
        if self.ids:
            return self
        found = self.wanted(now)
        return msgspec.structs.replace(
            self, since=found.get("since", ""), until=found.get("until", rfc3339.show(now))
        )

    def command(self, verb: str) -> str:
        """The command that does the same."""
        if self.ids:
            return f"hookline dead {verb} {' '.join(self.ids)}"
        names = {"endpoint_id": "endpoint", "event_type": "type"}
        options = [f"--{names.get(name, name)} {shlex.quote(value)}" for name, value in self.fields.items()]
        return f"hookline dead {verb} {' '.join(options) or '--all'}"

    def said(self) -> str:
        """What it is limited to, but for the endpoint, in words; empty: nothing."""
        parts = []
        if self.reason:
            parts.append(words.REASONS.get(self.reason, self.reason))
        if self.event_type:
            parts.append(f"type {self.event_type}")
        if self.account:
            parts.append(f"account {self.account}")
        if self.since:
            window = self.window
            long = WINDOWS.get(window or "", window)
            parts.append(f"died in the last {long}" if window else f"died since {_moment(self.since)}")
        if self.until:
            parts.append(f"died before {_moment(self.until)}")
        return ", ".join(parts)


def asked_for(asked: Asked) -> Choice:
    """The choice in a page's address, or in the form that confirms one."""
    given: Mapping[str, Any] = asked.form if asked.request.method == "POST" else asked.query
    many = asked.form if asked.request.method == "POST" else asked.request.query_params
    texts = {name: str(given.get(name, "")).strip() for name in FIELDS}
    ids = tuple(dict.fromkeys(str(each).strip() for each in many.getlist("id")))[: MOST_IDS + 1]
    return Choice(**texts, is_replayed=given.get("replayed") == "true", ids=ids)


async def endpoint_named(api: CallersApi, text: str) -> str:
    """The id of the endpoint that a person means: its id, the beginning of one, or a part of its URL."""
    if _WHOLE_ID.fullmatch(text):
        return text
    if text.startswith("ep_"):
        try:
            found = await api.get("/v1/ids/{prefix}", prefix=text)
        except (Invalid, NotFound):
            raise Invalid("This is not the beginning of an endpoint's id.", pointer="endpoint_id") from None
        if len(found.data) == 1:
            return str(found.data[0])
        said = "Several endpoints have ids" if found.data else "No endpoint has an id"
        raise Invalid(f"{said} that begin with {text}.", pointer="endpoint_id")
    matches: list[tuple[str, str]] = []
    cursor = ""
    for _ in range(_PAGES):
        page = await api.get("/v1/endpoints", {"limit": "200", "cursor": cursor})
        matches += [(each.id, each.url) for each in page.data if text.lower() in each.url.lower()]
        cursor = page.next_cursor or ""
        if not cursor:
            break
    same = [id for id, url in matches if words.short_url(url) == words.short_url(text)]
    if len(same) == 1 or len(matches) == 1:
        return same[0] if same else matches[0][0]
    if not matches:
        raise Invalid(f"No endpoint has {text[:200]} in its URL.", pointer="endpoint_id")
    raise Invalid(
        f"{len(matches):,} endpoints have this in their URL. Give more of it, or an id.",
        pointer="endpoint_id",
    )


def _moment(text: str) -> str:
    try:
        return words.exact(rfc3339.read(text))
    except ValueError:
        return text
