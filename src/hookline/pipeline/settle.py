"""Writes the results of attempts to the store.

Settlements gather while one batch is with the store. There is never more than one batch under way. A batch whose
outcome is in doubt is sent again unchanged: the store says of each row whether it was applied now or before. A
settlement that the store refuses is written without its evidence. If it is refused again, it is set aside and tried
later, less and less often. Nobody else waits for it, and its delivery is not sent again meanwhile.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence

import msgspec
import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.errors import HooklineError, RowRefused
from hookline.model import NO_TIMINGS, State, WorkerId
from hookline.pipeline.histogram import ROWS, Histogram
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.notes import LaneNotes
from hookline.pipeline.measuring.latency_meter import LatencyMeter
from hookline.pipeline.refused_rows import is_row_at_fault, write_apart
from hookline.store.contract import Settlement, Store, Verdict

_BATCH = 2_000  # rows; with 500, a backlog waits more for commits than for receivers
_LINGER = 0.02  # seconds to gather before a small batch: each statement and each commit has a price
_BACKOFF = (0.05, 0.1, 0.2, 0.5, 1.0)
_ASIDE_FOR = 1.0  # seconds before a settlement that was set aside is tried again; doubled each time
_ASIDE_LONGEST = 300.0
_ASIDE_AT_ONCE = 16  # tried again before others have their turn
_LONGEST_WAIT = 31 * 86_400.0  # seconds; no policy waits longer

log = structlog.get_logger()

Entry = tuple[Lane, Settlement]


class _Aside(msgspec.Struct):
    """A settlement that the store refuses."""

    entry: Entry
    at: float  # when it is tried again, on the monotonic clock
    wait: float


class Settler:
    """Writes settlements in batches."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        worker: Callable[[], WorkerId],
        notes: LaneNotes,
        announces: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._clock = clock
        self.worker = worker
        self._notes = notes
        self._announces = announces  # whether somebody listens to own events
        self.meter = LatencyMeter(store, clock, worker=worker)
        self.on_settled: Callable[[Lane, Settlement, Verdict], None]
        self.on_dead: Callable[[Settlement], None] = lambda _: None
        self.on_batch: Callable[[], None]
        self.on_aside: Callable[[Lane, Settlement], None]
        self._waiting: list[Entry] = []
        self._aside: deque[_Aside] = deque()
        self._some = asyncio.Event()
        self._many = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_last = False
        self._is_measured = asyncio.Event()
        self.delivered = 0  # deliveries that were delivered, since the start
        self.retried = 0  # that wait for another attempt, likewise
        self.died = 0  # that became dead letters, likewise
        self.late = 0  # settlements that came too late, since the start
        self.batches = Histogram(ROWS)  # settlements in each batch
        self.set_aside = (
            0  # settlements that the store refused, at least with their evidence, since the start
        )

    def add(self, lane: Lane, settlement: Settlement) -> None:
        """Settle this soon."""
        self._waiting.append((lane, settlement))
        if len(self._waiting) == 1:
            self._some.set()
            self._idle.clear()
        # Unsettled deliveries fill the lane's buffer, and a strict lane waits for each of them.
        if len(self._waiting) >= _BATCH or 2 * lane.unsettled >= lane.depth:
            self._many.set()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            if self._aside:
                await self._try_again()
            if self._is_last or self.meter.flush_in() <= 0.0:
                await self._flush_measured()
            if not await self._wait_for_some():
                continue
            await self._clock.wait(self._many, _LINGER)
            self._many.clear()
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            if not self._waiting:
                self._some.clear()
            await self._settle(batch)
            if not self._waiting:
                self._idle.set()
            elif len(self._waiting) >= _BATCH:
                self._many.set()

    async def flush(self) -> None:
        """Wait until everything handed in is settled."""
        self._many.set()
        await self._idle.wait()

    async def drain(self) -> None:
        """Wait until everything handed in is settled and what was measured is written, or cannot be: others do it."""
        await self.flush()
        if self.meter.flush_in() == math.inf:
            return
        self._is_measured.clear()
        self._is_last = True
        self._some.set()
        await self._is_measured.wait()

    async def _flush_measured(self) -> None:
        """Write what was measured. A drain does not end with a flush that began before it: that one may have failed."""
        is_last = self._is_last
        is_written = await self.meter.flush()
        for wait in _BACKOFF if is_last else ():
            if is_written:
                break
            await self._clock.sleep(wait)
            is_written = await self.meter.flush()
        if is_last and not self._waiting:
            self._is_last = False
            self._some.clear()
            self._is_measured.set()

    async def _wait_for_some(self) -> bool:
        """Whether there is something to settle now, and nothing else is due before."""
        seconds = min(self._aside_for(), self.meter.flush_in())
        if seconds < math.inf:
            await self._clock.wait(self._some, seconds)
        else:
            await self._some.wait()
        return bool(self._waiting)

    async def _settle(self, batch: list[Entry]) -> None:
        self.meter.begin()
        try:
            verdicts: Sequence[Verdict | None] = await self._write(batch)
        except Exception as error:
            log.warning("settle.split", rows=len(batch), error=_words(error))
            # First the notes of the lanes: without them the next owner of a strict lane could pass its head.
            await self._note(list(dict.fromkeys(lane for lane, _ in batch)))
            verdicts = await write_apart(batch, self._write_without_notes, self._without_evidence)
        for entry, verdict in zip(batch, verdicts, strict=True):
            lane, settlement = entry
            if verdict is Verdict.APPLIED and settlement.state is State.DELIVERED:
                self.delivered += 1  # the path of nearly all
                self.on_settled(lane, settlement, verdict)
            else:
                self._end(entry, verdict, wait=_ASIDE_FOR)
        self.batches.add(len(batch))
        self.on_batch()

    def _end(self, entry: Entry, verdict: Verdict | None, *, wait: float) -> None:
        lane, settlement = entry
        if verdict is None:
            self._aside.append(_Aside(entry, self._clock.monotonic() + wait, wait))
            self.on_aside(lane, settlement)
            return
        if verdict is Verdict.LATE:
            self.late += 1
        elif settlement.state is State.DELIVERED:
            self.delivered += 1
        elif settlement.state is State.DEAD:
            self.died += 1
            self.on_dead(settlement)
        else:
            self.retried += 1
        self.on_settled(lane, settlement, verdict)

    async def _without_evidence(self, entry: Entry, error: Exception) -> list[Verdict | None]:
        """The store refuses this one, most likely for what a receiver sent. The delivery's new state is kept."""
        lane, settlement = entry
        self.set_aside += 1
        delivery = ids.show("delivery", settlement.attempt.delivery_id)
        bare = _bare(settlement, now=self._clock.now())
        try:
            verdicts: list[Verdict | None] = [*await self._write_without_notes([(lane, bare)])]
        except Exception as again:
            log.error("settle.set_aside", delivery=delivery, error=_words(again))
            return [None]
        log.error("settle.without_evidence", delivery=delivery, error=_words(error))
        return verdicts

    def _aside_for(self) -> float:
        """Seconds until a settlement that was set aside is tried again."""
        if not self._aside:
            return math.inf
        return max(0.0, min(each.at for each in self._aside) - self._clock.monotonic())

    async def _try_again(self) -> None:
        """Try to write some of those that were set aside, if they are due."""
        at = self._clock.monotonic()
        self._aside = deque(
            each for each in self._aside if not each.entry[0].is_lost
        )  # owned by another by now
        due = [each for each in self._aside if each.at <= at][:_ASIDE_AT_ONCE]
        for each in due:
            self._aside.remove(each)
            each.entry[0].settle_again()
            self.meter.begin()
            verdict: Verdict | None
            try:
                [verdict] = await self._write_without_notes([each.entry])
            except Exception:
                verdict = None
            self._end(each.entry, verdict, wait=min(2 * each.wait, _ASIDE_LONGEST))
        if due:
            self.on_batch()

    async def _write(self, batch: Sequence[Entry], *, with_notes: bool = True) -> list[Verdict]:
        """Write until the store answers, however long it is away; raises if it refuses a part of the batch."""
        settlements = [settlement for _, settlement in batch]
        measured = self.meter.measure(settlements)
        tries = 0
        while True:
            # Made again for each try: it must not undo a note of a lane that was stored meanwhile.
            changed = await self._changed(batch) if with_notes else []
            notes = [lane.note() for lane in changed]
            versions = [(lane.flow, lane.flow.version) for lane in changed]
            worker = self.worker()
            try:
                with self._notes.writing(changed):
                    verdicts = await self._store.settle(
                        worker,
                        settlements,
                        notes=notes,
                        log=measured.log,
                        now=self._clock.now(),
                        announce=self._announces(),
                    )
                break
            except HooklineError as error:
                if await is_row_at_fault(error, self._settle_these):
                    raise RowRefused(str(error)) from error
                if tries == 0:
                    log.warning("settle.waiting", rows=len(batch), error=str(error))
                await self._clock.sleep(_BACKOFF[min(tries, len(_BACKOFF) - 1)])
                tries += 1
        if tries:
            log.info("settle.resumed", rows=len(batch), tries=tries)
        for flow, version in versions:
            flow.wrote(version)
        self.meter.settled(measured, verdicts, worker=worker)
        return verdicts

    async def _changed(self, batch: Sequence[Entry]) -> list[Lane]:
        """The lanes with something to store, once no other write of them is under way."""
        while True:
            changed = list(
                {
                    lane.endpoint_id: lane for lane, _ in batch if lane.flow.is_dirty and not lane.is_lost
                }.values()
            )
            if self._notes.are_free(changed):
                return changed
            await self._notes.wait(changed)

    async def _write_without_notes(self, batch: Sequence[Entry]) -> list[Verdict | None]:
        return [*await self._write(batch, with_notes=False)]

    async def _settle_these(self, batch: Sequence[Settlement]) -> list[Verdict]:
        return await self._store.settle(self.worker(), batch, now=self._clock.now())

    async def _note(self, lanes: Sequence[Lane]) -> None:
        """Store what changed in the lanes, however long the store is away."""
        tries = 0
        while True:
            try:
                await self._notes.write(lanes)
            except HooklineError as error:
                if tries == 0:
                    log.warning("settle.waiting", lanes=len(lanes), error=str(error))
                await self._clock.sleep(_BACKOFF[min(tries, len(_BACKOFF) - 1)])
                tries += 1
            else:
                return


def _bare(settlement: Settlement, *, now: float) -> Settlement:
    """The delivery's new state, and of the attempt only that it was made and how it ended."""
    attempt = settlement.attempt
    return msgspec.structs.replace(
        settlement,
        attempt=msgspec.structs.replace(
            attempt,
            duration=min(max(attempt.duration, 0.0), _LONGEST_WAIT),
            error_detail=None,
            timings=NO_TIMINGS,
            request_url=None,
            request_headers=None,
            response_headers=None,
            response_body=b"",
            response_truncated=False,
            final_url=None,
        ),
        due_at=min(max(settlement.due_at, 0.0), now + _LONGEST_WAIT),
        gone=None,  # the next attempt reports it again
    )


def _words(error: Exception) -> str:
    """A store error's own text; for other errors only the name: the text may quote what was to be written."""
    return str(error) if isinstance(error, HooklineError) else type(error).__name__
