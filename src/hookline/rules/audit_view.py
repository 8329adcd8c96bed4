"""Decides what an account is shown of an entry of the audit trail.

What operators do with an account's things is told to the account. Who of them did it, and from where, is not.
"""

import msgspec

from hookline.model import Actor, ActorKind, AuditEntry


def as_seen_by(entry: AuditEntry, account: str | None) -> AuditEntry:
    """The entry as a caller who is bound to this account may see it; None: as an operator may."""
    if account is None or entry.actor.account == account:
        return entry
    # A visitor of the portal is one of the account's own people; the key that let them in is an operator's.
    is_own_visit = entry.actor.kind is ActorKind.PORTAL and entry.account == account
    return msgspec.structs.replace(
        entry, actor=Actor(kind=entry.actor.kind), address=entry.address if is_own_visit else None
    )
