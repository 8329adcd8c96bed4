"""Accepts rows of an outbox as events under the rows' own ids, and keeps those that are refused.

It is the ordinary accept: the same checks, fan-out, keys and limits. A row whose event is there already is done.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import structlog

from hookline.clock import Clock
from hookline.errors import AcceptFailed, HooklineError, Invalid
from hookline.ids import show
from hookline.model import EventId
from hookline.pipeline.intake.accept import Intake
from hookline.pipeline.intake.drafts import Draft, Published, Result
from hookline.pipeline.outbox.rows import RowLimits, draft_of, refused
from hookline.rules.outbox_batch import BatchEnd
from hookline.rules.outbox_refusal import code_of, may_be_a_row
from hookline.store.contract import RefusedRow, Store, WaitingRow

_MOST_NAMED = 3  # refused rows in a line of the log

log = structlog.get_logger()


class Accepted(msgspec.Struct, frozen=True):
    """What became of a batch: every row is done, refused or left."""

    end: BatchEnd
    done: Sequence[WaitingRow]  # these can be dropped: stored, or kept with the reason
    refused: tuple[RefusedRow, ...] = ()
    error: HooklineError | None = None  # why the others are left


class CheckedRows(NamedTuple):
    """A batch, as far as it can be judged without the store."""

    rows: Sequence[WaitingRow]
    drafts: list[Draft]
    asked: list[WaitingRow]  # of which the drafts are
    bad: list[RefusedRow]


class RowAcceptor:
    """Brings rows into the store."""

    def __init__(self, store: Store, intake: Intake, clock: Clock, *, limits: RowLimits) -> None:
        self._store = store
        self._intake = intake
        self._clock = clock
        self._limits = limits

    def check(self, rows: Sequence[WaitingRow], *, source: str) -> CheckedRows:
        """The rows as drafts, in their order; no id is among them twice. Others are accepted meanwhile."""
        now, limits = self._clock.now(), self._limits
        checked = CheckedRows(rows, [], [], [])
        for row in rows:
            try:
                checked.drafts.append(draft_of(row, limits=limits, now=now))
                checked.asked.append(row)
            except HooklineError as error:
                code = code_of(error) or "internal"
                checked.bad.append(refused(row, source=source, code=code, error=error, now=now))
        return checked

    async def accept(self, checked: CheckedRows, *, source: str) -> Accepted:
        """Accept the rows, or refuse them."""
        rows, drafts, asked = checked.rows, checked.drafts, checked.asked
        bad = list(checked.bad)
        now = self._clock.now()
        left: HooklineError | None = None
        results: Sequence[Result]
        try:
            results = await self._intake.accept(drafts)
        except HooklineError as error:
            # Of all together, such as too many deliveries: no row is refused for that.
            results = [AcceptFailed(str(error)) if isinstance(error, Invalid) else error] * len(drafts)
        repeats: list[WaitingRow] = []
        stays: set[EventId] = set()
        for row, result in zip(asked, results, strict=True):
            if isinstance(result, Published):
                if result.is_repeat:
                    repeats.append(row)
            elif (code := code_of(result)) is not None:
                bad.append(refused(row, source=source, code=code, error=result, now=now))
            else:
                stays.add(row.id)
                left = left if left is not None and may_be_a_row(left) else result
        try:
            bad += await self._conflicts(repeats, source=source, now=now)
            await self._keep(bad)
        except HooklineError as error:
            left = error
            numbers = {row.seq for row in bad}
            stays.update([row.id for row in rows if row.seq in numbers], [row.id for row in repeats])
            bad = []
        done = rows if not stays else [row for row in rows if row.id not in stays]
        if left is None:
            return Accepted(BatchEnd.DONE, done, tuple(bad))
        end = BatchEnd.BROKEN if may_be_a_row(left) else BatchEnd.LEFT
        return Accepted(end, done, tuple(bad), left)

    async def give_up(self, row: WaitingRow, error: HooklineError | None, *, source: str) -> Accepted:
        """Refuse a row that failed alone again and again."""
        why = error or HooklineError("It cannot be stored.")
        bad = [refused(row, source=source, code="internal", error=why, now=self._clock.now())]
        await self._keep(bad)
        return Accepted(BatchEnd.DONE, [row], tuple(bad))

    async def _conflicts(self, repeats: Sequence[WaitingRow], *, source: str, now: float) -> list[RefusedRow]:
        """The rows among the repeats whose id is another event's."""
        if not repeats:
            return []
        taken = await self._store.outbox_conflicts(repeats)
        why = Invalid("An event with this id and other content is there already.", pointer="/id")
        return [
            refused(row, source=source, code="id_conflict", error=why, now=now)
            for row in repeats
            if row.id in taken
        ]

    async def _keep(self, bad: Sequence[RefusedRow]) -> None:
        if not bad:
            return
        await self._store.refuse(bad)
        of_code: dict[str, list[RefusedRow]] = {}
        for row in bad:
            of_code.setdefault(row.code, []).append(row)
        for code, rows in of_code.items():
            log.warning(
                "outbox.refused",
                source=rows[0].source,
                rows=len(rows),
                code=code,
                ids=[show("row", row.id) for row in rows[:_MOST_NAMED]],
                type=rows[0].type[:100],
                detail=rows[0].detail[:200],
            )
