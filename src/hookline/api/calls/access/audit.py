"""Answers the call that lists the audit trail."""

from typing import Annotated

import msgspec

from hookline.admin.audit_report import AuditReport, audit_report
from hookline.api.call import Call, CallRequest, CallScope, Page, Paged
from hookline.api.request.parameters import Account, AuditSubject, DoneSince, DoneUntil, OfKey
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.model import AuditAction, AuditId
from hookline.rules.audit_view import as_seen_by
from hookline.store.contract import AuditFilter


class AuditQuery(Paged, frozen=True, kw_only=True):
    """Which entries? `subject` is an id or a name, `actor` the id of a key."""

    account: Account | None = None
    action: Annotated[AuditAction | None, msgspec.Meta(description="only this action")] = None
    subject: AuditSubject | None = None
    actor: OfKey | None = None
    since: DoneSince | None = None
    until: DoneUntil | None = None


class AuditCalls:
    """The call `/v1/audit`."""

    def __init__(self, hookline: Hookline, pages: Pages) -> None:
        self._store = hookline.store
        self._clock = hookline.clock
        self._pages = pages

    def table(self) -> list[Call]:
        """The call. It names keys and where their holders are, as the list of keys does, or more."""
        return [
            Call(
                method="GET",
                path="/v1/audit",
                summary="List who changed what, when and from where, newest first",
                scope=CallScope.ADMIN,
                scope_of_accounts=CallScope.READ,
                handler=self.list_audit,
                query=AuditQuery,
                answer=Page[AuditReport],
            )
        ]

    async def list_audit(self, asked: CallRequest[AuditQuery, None]) -> Page[AuditReport]:
        query, after, limit = asked.query, self._pages.after(asked), asked.query.limit
        chosen = AuditFilter(
            account=query.account,
            action=None if query.action is None else query.action.value,
            subject=query.subject,
            actor_key=query.actor,
            # Else it could be asked which of an operator's keys did something.
            actor_account=None if query.actor is None else asked.account,
            since=None if query.since is None else self._clock.asked(query.since),
            until=None if query.until is None else self._clock.asked(query.until),
        )
        found = await self._store.list_audit(
            chosen, after=None if after is None else AuditId(after), limit=limit + 1
        )
        shown = [
            audit_report(as_seen_by(entry, asked.account), shown=self._clock.shown) for entry in found[:limit]
        ]
        return self._pages.page(asked, found, id=lambda row: row.id, shown=shown)
