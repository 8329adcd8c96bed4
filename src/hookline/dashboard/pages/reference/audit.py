"""Shows who changed what, when and from where."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline.dashboard.addresses import address, moment, part
from hookline.dashboard.page import Answer, Asked, PageRoute, Shown
from hookline.errors import Invalid
from hookline.model import AuditAction

FILTERS = ("action", "subject", "account", "actor", "since", "until")
_HOMES = {
    "endpoint": "/endpoints/",
    "delivery": "/deliveries/",
    "event": "/events/",
    "event_type": "/event-types/",
    "replay": "/replays/",
    "discard": "/discards/",
    "outbox_row": "/outbox/",
}
_LONGEST = 80  # characters of a value; the API has more of it


class AuditPages:
    """The page of the audit trail. An account sees what was done to its own things."""

    def routes(self) -> Sequence[PageRoute]:
        """The page."""
        return [PageRoute("GET", "/audit", self.list_audit)]

    async def list_audit(self, asked: Asked) -> Answer:
        """Who did what?"""
        account = asked.visitor.account
        chosen = {name: asked.query.get(name, "").strip() for name in FILTERS}
        if account is not None:
            chosen["account"] = ""
        exact = {
            name: moment(text, now=asked.now) if name in ("since", "until") else text
            for name, text in chosen.items()
        }
        cursor = asked.query.get("cursor", "")
        problem: Invalid | None = None
        found: Any = None
        try:
            found = await asked.api.get("/v1/audit", {**exact, "cursor": cursor})
        except Invalid as error:
            problem = error
        entries = [] if found is None else found.data
        return Shown(
            template="audit.html",
            title="Audit trail",
            data={
                "rows": [_row(entry, account) for entry in entries],
                "chosen": chosen,
                "actions": [(each.value, said(each.value)) for each in AuditAction],
                "problem": problem,
                "is_filtered": any(chosen.values()),
                "next": ""
                if found is None or found.next_cursor is None
                else address("/audit", exact, cursor=found.next_cursor),
                "first": address("/audit", chosen) if cursor else "",
            },
            nav="audit",
            status=200 if problem is None else 422,
        )


def said(action: str) -> str:
    """`Endpoint updated`."""
    return action.replace("_", " ").replace(".", " ").capitalize()


def _row(entry: Any, account: str | None) -> Mapping[str, Any]:
    return {
        "entry": entry,
        "action": said(entry.action),
        "href": _href(entry.subject, account),
        "who": _who(entry.actor),
        "changes": [
            (name, "" if old is None else _written(old), _written(new))
            for name, (old, new) in entry.changes.items()
        ],
    }


def _href(subject: Any, account: str | None) -> str:
    if subject.kind == "account" and account is None:
        return f"/accounts/{part(subject.id)}"
    home = _HOMES.get(subject.kind)
    return "" if home is None else home + part(subject.id)


def _who(actor: Any) -> str:
    named = actor.name or actor.hint
    match actor.kind:
        case "portal":
            return f"A visitor of the portal, through {named}" if named else "A visitor of the portal"
        case "settings_key":
            return "The key of the settings" if named else "An operator"
        case "development":
            return "Development mode"
        case "command_line":
            return f"{named} on the command line" if named else "An operator"
        case "program":
            return "The program that hookline is part of"
    return named or "An operator"


def _written(value: Any) -> str:
    if value is None:
        return "–"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
