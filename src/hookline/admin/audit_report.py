"""Shows entries of the audit trail."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from hookline import ids, rfc3339
from hookline.model import ActorKind, AuditEntry, Via

_ID = msgspec.Meta(pattern=f"^{ids.PREFIXES['audit']}[0-7][0-9a-v]{{25}}$")
_MOMENT = msgspec.Meta(extra_json_schema={"format": "date-time"})
_ACTOR = msgspec.Meta(extra_json_schema={"enum": [each.value for each in ActorKind]})
_VIA = msgspec.Meta(extra_json_schema={"enum": [each.value for each in Via]})


class AuditSubjectReport(msgspec.Struct, kw_only=True):
    """What was changed: an id, or the name of an account or an event type."""

    kind: str
    id: str


class ActorReport(msgspec.Struct, kw_only=True):
    """Who changed it. Of a visit to the portal, the key is the one that its link came from."""

    kind: Annotated[str, _ACTOR]
    key_id: str | None
    name: str | None  # of the key, or of the operating system's user
    hint: str | None  # the beginning of the key


class AuditReport(msgspec.Struct, kw_only=True):
    """One thing that somebody did. Which operator it was is not shown to keys of an account."""

    id: Annotated[str, _ID]
    at: Annotated[str, _MOMENT]
    account: str | None  # null: it is about no account in particular
    action: str
    subject: AuditSubjectReport
    actor: ActorReport
    via: Annotated[str, _VIA]
    address: str | None  # of the client as the server sees it; of a command, the name of its machine
    request_id: str | None
    changes: dict[str, Any]  # by field: the old and the new value, without secrets
    truncated: bool  # not all changes are shown


def audit_report(entry: AuditEntry, *, shown: Callable[[float], float]) -> AuditReport:
    """An entry as the API shows it."""
    actor = entry.actor
    return AuditReport(
        id=ids.show("audit", entry.id),
        at=rfc3339.show(shown(entry.at)),
        account=entry.account,
        action=entry.action,
        subject=AuditSubjectReport(kind=entry.subject_kind, id=entry.subject),
        actor=ActorReport(
            kind=actor.kind.value,
            key_id=None if actor.key_id is None else ids.show("key", actor.key_id),
            name=actor.name or None,
            hint=actor.hint or None,
        ),
        via=entry.via.value,
        address=entry.address,
        request_id=entry.request_id,
        changes=entry.changes,
        truncated=entry.is_cut,
    )
