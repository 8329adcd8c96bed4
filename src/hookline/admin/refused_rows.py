"""Retries and discards rows of outboxes that were refused."""

from msgspec import structs

from hookline.admin.audit import Audit
from hookline.clock import Clock
from hookline.errors import HooklineError, Invalid, NotFound
from hookline.ids import show
from hookline.model import AuditAction, AuditEntry, EventId
from hookline.pipeline.intake.accept import Intake
from hookline.pipeline.intake.drafts import Published
from hookline.pipeline.outbox.rows import RowLimits, draft_of, reason_of
from hookline.rules.audit_changes import noted
from hookline.rules.outbox_refusal import code_of
from hookline.store.contract import RefusedFilter, RefusedRow, Store, WaitingRow

ID_CONFLICT = "id_conflict"
UNREADABLE = "invalid_row"  # what is kept of it is not what the application wrote


class RefusedRows:
    """What an operator does with refused rows."""

    def __init__(
        self, store: Store, intake: Intake, clock: Clock, audit: Audit, *, limits: RowLimits
    ) -> None:
        self._store = store
        self._intake = intake
        self._clock = clock
        self._audit = audit
        self._limits = limits

    async def read(self, id: EventId, *, account: str | None = None) -> RefusedRow:
        """The refused row with this id, of this account or of any. Applications can use an id twice: the newest."""
        listed = await self._store.refused_rows(RefusedFilter(account=account, id=id), after=None, limit=1)
        found = await self._store.refused_row(listed[0].n) if listed else None
        if found is None:
            raise NotFound("refused row", show("row", id))
        return found

    async def retry(self, id: EventId, *, account: str | None = None) -> Published:
        """Accept the row under its id. Refused again, it stays with the new reason, which is raised."""
        row = await self.read(id, account=account)
        try:
            published = await self._accept(row)
        except HooklineError as error:
            await self._refuse_again(row, error)
            raise
        # A crash here leaves the row: retried again, its event is there already.
        await self._store.discard_refused([row.n], audit=self._entry(AuditAction.OUTBOX_ROW_RETRIED, row))
        return published

    async def discard(self, id: EventId, *, account: str | None = None) -> RefusedRow:
        """Give up the row; returns what it was."""
        row = await self.read(id, account=account)
        entry = self._entry(AuditAction.OUTBOX_ROW_DISCARDED, row)
        if not await self._store.discard_refused([row.n], audit=entry):
            raise NotFound("refused row", show("row", id))
        return row

    async def _accept(self, row: RefusedRow) -> Published:
        if row.code == UNREADABLE:
            raise Invalid(row.detail, pointer="/row")
        again = WaitingRow(
            row.seq,
            row.id,
            row.at,
            row.deliver_at,
            row.account,
            row.type,
            row.idempotency_key,
            row.hops,
            row.payload,
        )
        published = await self._intake.publish(draft_of(again, limits=self._limits, now=self._clock.now()))
        if published.is_repeat and await self._store.outbox_conflicts([again]):
            raise Invalid(
                "An event with this id and other content is there already.", pointer="/id", code=ID_CONFLICT
            )
        return published

    async def _refuse_again(self, row: RefusedRow, error: HooklineError) -> None:
        is_conflict = isinstance(error, Invalid) and error.code == ID_CONFLICT
        code = ID_CONFLICT if is_conflict else code_of(error)
        if code is None:
            return  # nothing is wrong with the row
        if is_conflict:
            await self._store.refuse([structs.replace(row, code=code)])  # gives back its idempotency key
        await self._store.refuse_again(row.n, code=code, detail=reason_of(error), now=self._clock.now())

    def _entry(self, action: AuditAction, row: RefusedRow) -> AuditEntry:
        return self._audit.entry(
            action,
            "outbox_row",
            show("row", row.id),
            account=row.account,
            changes=noted(source=row.source, event_type=row.type, code=row.code),
        )
