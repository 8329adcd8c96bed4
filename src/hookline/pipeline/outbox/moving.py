"""Moves the rows of one source: LOOK, accept, DROP.

While a batch is accepted, the next one is looked for and the last one is dropped. LOOK leaves out what is moved and not
dropped yet. Nothing is remembered that a crash could lose: a row that is there is looked at again, and an event that is
there is not stored again.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from hookline.clock import Clock
from hookline.errors import HooklineError, StoreRefused, StoreUnavailable
from hookline.failpoints import failpoint
from hookline.model import EventId
from hookline.pipeline.outbox.accepting import Accepted, CheckedRows, RowAcceptor
from hookline.pipeline.outbox.source import Source
from hookline.rules import outbox_batch, outbox_clear, outbox_floor, outbox_look
from hookline.rules.outbox_batch import BatchEnd, BatchPlan
from hookline.rules.outbox_clear import Clearing
from hookline.rules.outbox_floor import Floor
from hookline.rules.outbox_look import LookPlan
from hookline.store.contract import LookRequest, OutboxHead, RowPlace, WaitingRow
from hookline.store.contract.outbox import LOOK_ROWS

TOO_OLD_S = 10.0  # a LOOK from before is thrown away: what it found may be moved and pruned by now
BROKEN_PAUSE_S = 0.05  # before a smaller part of a batch that failed
DROP_AGAIN_S = 1.0  # after a DROP that failed
MOST_MOVED = 20_000  # rows that are moved and not dropped: each LOOK walks over them


class TimedHead(msgspec.Struct, frozen=True):
    """What a LOOK found, when it began, and what of it is accepted next."""

    head: OutboxHead
    began: float  # on the monotonic clock
    is_by_number: bool
    batch: CheckedRows

    @property
    def is_first(self) -> bool:
        """Whether the batch is all that has so low numbers, but for what is moved."""
        rows = self.batch.rows
        return self.is_by_number and self.head.rows[len(rows) - 1] is rows[-1]


class RowMover:
    """Moves rows of one source, in rounds."""

    def __init__(
        self,
        source: Source,
        acceptor: RowAcceptor,
        clock: Clock,
        *,
        slow_s: float = outbox_floor.SLOW_S,
    ) -> None:
        self.source = source
        self._acceptor = acceptor
        self._clock = clock
        self._slow_s = slow_s  # a LOOK that takes longer needs a floor
        self._undropped: dict[int, EventId] = {}  # moved, by number
        self._plan = LookPlan()
        self._batch = BatchPlan()
        self._error: HooklineError | None = None  # of the last batch
        self._top = 0  # the highest number that was seen
        self._base = 0  # all rows up to this number are moved
        self._dropped_at = float("-inf")
        self.floor = Floor()
        self.clearing = Clearing()
        self.moved = 0  # rows, since the start
        self.refused: Counter[str] = Counter()  # likewise, by code
        self.oldest_at: float | None = None  # of the rows that the last LOOK found
        self.found_at = float("-inf")  # when rows were last found, on the monotonic clock
        self._dropping: asyncio.Task[None] | None = None
        self.drop_error: HooklineError | None = None  # why the last DROP failed

    @property
    def drop_due_at(self) -> float | None:
        """When rows have to be dropped, on the monotonic clock; None: there are none."""
        return self._dropped_at + self._pause() if self._undropped else None

    def above(self, *, now: float) -> int:
        """The number above which the next rows are; 0 now and then, so that no mistake stays."""
        if now - self.floor.whole_at >= outbox_floor.WHOLE_EVERY_S:
            return 0
        return max(self.floor.value, self._base) if self.source.is_serial else self.floor.value

    async def move_all(
        self, *, may_go_on: Callable[[], bool], before_first: Callable[[float], Awaitable[None]]
    ) -> HooklineError | None:
        """Move rows until a LOOK finds none; the error that leaves some. Raises what the source answers.

        `before_first` is awaited before anything is accepted, with the time of the store at which LOOK began.
        """
        now = self._clock.now()
        looked = await self._look(())
        if looked.head.rows:
            await before_first(now)
        while looked.head.rows and may_go_on():
            if self._clock.monotonic() - looked.began > TOO_OLD_S:
                looked = await self._look(())
                continue
            accepted, next_looked = await self._round(looked.batch)
            self._note(looked, accepted)
            if accepted.end is BatchEnd.LEFT:
                await self.drop_if_due()
                return accepted.error
            if accepted.end is BatchEnd.BROKEN:
                await self._clock.sleep(BROKEN_PAUSE_S)
                next_looked = await self._look(())
            looked = next_looked
        await self.drop_if_due()
        return None

    async def _round(self, batch: CheckedRows) -> tuple[Accepted, TimedHead]:
        """Accept the batch; meanwhile look for the next one. What was moved before is dropped beside both."""
        if len(self._undropped) >= MOST_MOVED:
            await self.drop_all()
            if self.drop_error is not None:
                raise self.drop_error
        self._begin_to_drop()
        # Both end, whatever happens to one: what was accepted has to be known.
        accepted, looked = await asyncio.gather(
            self._accept(batch), self._look(batch.rows), return_exceptions=True
        )
        if isinstance(accepted, Accepted):
            failpoint("outbox.accepted")
            for row in accepted.done:
                self._undropped[row.seq] = row.id
        if isinstance(accepted, BaseException):
            raise accepted
        if isinstance(looked, BaseException):
            raise looked
        return accepted, looked

    # --- LOOK ---

    async def _look(self, batch: Sequence[WaitingRow]) -> TimedHead:
        """One LOOK, without what is moved and without this batch, which is being accepted."""
        began, now = self._clock.monotonic(), self._clock.now()
        plan = self._plan
        is_clearing = not plan.is_fair and outbox_clear.is_due(self.clearing, now=now)
        floor = 0 if is_clearing else self.above(now=began)
        numbers = (*self._undropped, *(row.seq for row in batch))
        left_out = tuple([seq for seq in numbers if seq > floor]) if floor else numbers
        request = LookRequest(floor, left_out, plan.after if plan.is_fair else None)
        head = await self.source.table.look_at_outbox(request)
        failpoint("outbox.looked")
        rows = head.rows
        self._plan = outbox_look.following(
            plan, rows=len(rows), most=LOOK_ROWS, is_full=head.is_full, last_account=head.last_account
        )
        if rows:
            self.found_at = began
            self._top = max(self._top, max([row.seq for row in rows]))
            self.oldest_at = min([row.at for row in rows])
        elif not plan.is_fair:
            self.oldest_at = None
        if not plan.is_fair:
            self._note_look(head, began=began, now=now, floor=floor, left_out=left_out)
        elif not rows:
            return await self._look(batch)  # by number: a fair LOOK may find none where there are some
        checked = self._acceptor.check(self._next_rows(rows), source=self.source.name)
        return TimedHead(head, began, not plan.is_fair, checked)

    def _note_look(
        self, head: OutboxHead, *, began: float, now: float, floor: int, left_out: Sequence[int]
    ) -> None:
        self.floor = outbox_floor.after_look(
            self.floor,
            began=began,
            took=self._clock.monotonic() - began,
            asked=floor,
            low=head.low,
            high=head.high,
            first=head.rows[0].seq if head.rows else None,
            top=self._top,
            slow_s=self._slow_s,
        )
        if not floor and not head.is_full:
            numbers = {*left_out, *(row.seq for row in head.rows)}
            self.clearing = outbox_clear.after_look(self.clearing, began=now, numbers=numbers)

    def _next_rows(self, rows: Sequence[WaitingRow]) -> Sequence[WaitingRow]:
        """The first of the rows; of two with one id the second one has to wait until the first is stored."""
        rows = rows[: self._batch.most]
        if len({row.id for row in rows}) == len(rows):
            return rows
        return list({row.id: row for row in reversed(rows)}.values())[::-1]

    # --- accept ---

    async def _accept(self, batch: CheckedRows) -> Accepted:
        if self._batch.is_hopeless:
            return await self._acceptor.give_up(batch.rows[0], self._error, source=self.source.name)
        return await self._acceptor.accept(batch, source=self.source.name)

    def _note(self, looked: TimedHead, accepted: Accepted) -> None:
        rows = looked.batch.rows
        self._batch = outbox_batch.following(self._batch, accepted.end, rows=len(rows))
        if accepted.error is None and looked.is_first:
            self._base = rows[-1].seq
        self._error = accepted.error
        self.moved += len(accepted.done) - len(accepted.refused)
        self.refused.update([row.code for row in accepted.refused])

    # --- DROP ---

    async def drop_if_due(self) -> None:
        """Drop what is moved, unless the source would have that later."""
        while self._undropped and not self.source.drops_every and self._may_drop():
            await self.drop_all()
        self._begin_to_drop()

    async def drop_all(self) -> None:
        """Drop all that is moved now; `drop_error` says if that was not possible."""
        if self._dropping is None:
            self._dropping = asyncio.create_task(self._drop())
        dropping = self._dropping
        try:
            await dropping
        finally:
            if dropping.done():
                self._dropping = None

    def _begin_to_drop(self) -> None:
        """Drop beside everything else: a lock on the application's file, or a missing right, delays only this."""
        if self._dropping is not None:
            if not self._dropping.done():
                return
            dropping, self._dropping = self._dropping, None
            dropping.result()
        if self._undropped and self._may_drop():
            self._dropping = asyncio.create_task(self._drop())

    def _may_drop(self) -> bool:
        return self._clock.monotonic() >= self._dropped_at + self._pause()

    def _pause(self) -> float:
        return (
            self.source.drops_every if self.drop_error is None else max(self.source.drops_every, DROP_AGAIN_S)
        )

    async def close(self) -> None:
        """End what is under way."""
        if self._dropping is not None:
            self._dropping.cancel()
            await asyncio.gather(self._dropping, return_exceptions=True)

    async def _drop(self) -> None:
        rows = [RowPlace(seq, id) for seq, id in self._undropped.items()]
        self._dropped_at = self._clock.monotonic()
        try:
            await self.source.table.drop_from_outbox(rows)
        except (StoreUnavailable, StoreRefused) as error:
            self.drop_error = error
            return
        self.drop_error = None
        failpoint("outbox.dropped")
        for row in rows:
            self._undropped.pop(row.seq, None)
        self.clearing = outbox_clear.after_drop(self.clearing, [row.seq for row in rows])
