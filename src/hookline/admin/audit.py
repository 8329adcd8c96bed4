"""Makes the entries of the audit trail.

Who acts, and from where, is the same for all that a request does. So it is said once, where the request comes in
(`acting`), and an entry is made where something is done.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from hookline.clock import Clock
from hookline.ids import Ids
from hookline.model import Actor, ActorKind, AuditAction, AuditEntry, Via
from hookline.rules.audit_changes import AuditChanges

NOTHING = AuditChanges()


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts, and from where."""

    actor: Actor
    via: Via
    address: str | None = None
    request_id: str | None = None


PROGRAM = Origin(actor=Actor(kind=ActorKind.PROGRAM), via=Via.LIBRARY)

_ORIGIN: ContextVar[Origin] = ContextVar("audit_origin", default=PROGRAM)


@contextmanager
def acting(origin: Origin) -> Iterator[None]:
    """Everything that is done inside this block is done by them."""
    token = _ORIGIN.set(origin)
    try:
        yield
    finally:
        _ORIGIN.reset(token)


class Audit:
    """Makes entries about what is done now."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids

    def entry(
        self,
        action: AuditAction,
        subject_kind: str,
        subject: str,
        *,
        account: str | None,
        changes: AuditChanges = NOTHING,
    ) -> AuditEntry:
        """An entry about this action. It is true once it is written with the change that it tells of."""
        origin = _ORIGIN.get()
        return AuditEntry(
            id=self._ids.audit(),
            at=self._clock.now(),
            account=account,
            action=action,
            subject_kind=subject_kind,
            subject=subject,
            actor=origin.actor,
            via=origin.via,
            address=origin.address,
            request_id=origin.request_id,
            changes=changes.fields,
            is_cut=changes.is_cut,
        )
