"""How does an attempt's end become durable?

Settlements gather while one batch is with the store; there is never more than one under way, and a batch
whose outcome is in doubt is sent again as it was: the store says of each row whether it was applied now or
before.
"""

import asyncio
from collections.abc import Callable

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.errors import HooklineError
from hookline.model import State, WorkerId
from hookline.pipeline.lane import Lane
from hookline.store.contract import Settlement, Store, Verdict

_BATCH = 2_000  # rows; with 500 a backlog waits for commits more than for receivers
_LINGER = 0.02  # seconds to gather before a small batch: a statement and a commit have a price of their own
_BACKOFF = (0.05, 0.1, 0.2, 0.5, 1.0)

log = structlog.get_logger()


class Settler:
    """Writes settlements in batches."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        worker: Callable[[], WorkerId],
        on_settled: Callable[[Lane, Settlement, Verdict], None],
        on_batch: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._on_settled = on_settled
        self._on_batch = on_batch
        self._waiting: list[tuple[Lane, Settlement]] = []
        self._some = asyncio.Event()
        self._many = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.delivered = 0  # deliveries that came to their good end, since the start
        self.late = 0  # settlements that came too late, since the start

    def add(self, lane: Lane, settlement: Settlement) -> None:
        """Settle this soon."""
        lane.unsettled += 1
        self._waiting.append((lane, settlement))
        if len(self._waiting) == 1:
            self._some.set()
            self._idle.clear()
        # Unsettled deliveries take up the lane's buffer, and a strict lane waits for each of them.
        if len(self._waiting) >= _BATCH or 2 * lane.unsettled >= lane.depth:
            self._many.set()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._some.wait()
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

    async def _settle(self, batch: list[tuple[Lane, Settlement]]) -> None:
        try:
            verdicts = await self._write(batch)
        except Exception:
            # One of them cannot be written, which nobody thought possible. The others must not suffer for it.
            if len(batch) > 1:
                log.exception("settle.split", rows=len(batch))
                for one in batch:
                    await self._settle([one])
                return
            delivery = ids.show("delivery", batch[0][1].attempt.delivery_id)
            log.exception("settle.failed", delivery=delivery)
            verdicts = [Verdict.LATE]  # forgotten here and still pending: it is read and tried again
        for (lane, settlement), verdict in zip(batch, verdicts, strict=True):
            lane.unsettled -= 1
            if verdict is Verdict.LATE:
                self.late += 1
            elif settlement.state is State.DELIVERED:
                self.delivered += 1
            self._on_settled(lane, settlement, verdict)
        self._on_batch()

    async def _write(self, batch: list[tuple[Lane, Settlement]]) -> list[Verdict]:
        """Until the store has answered, however long it is away."""
        settlements = [settlement for _, settlement in batch]
        tries = 0
        while True:
            # Made afresh for each try: what was written down of a lane meanwhile must not be taken back.
            changed = {lane.endpoint_id: lane for lane, _ in batch if lane.gate.is_dirty and not lane.lost}
            notes = [lane.note() for lane in changed.values()]
            versions = [(lane.gate, lane.gate.version) for lane in changed.values()]
            try:
                verdicts = await self._store.settle(
                    self._worker(), settlements, notes=notes, now=self._clock.now()
                )
                break
            except HooklineError as error:
                if tries == 0:
                    log.warning("settle.waiting", rows=len(batch), error=str(error))
                await self._clock.sleep(_BACKOFF[min(tries, len(_BACKOFF) - 1)])
                tries += 1
        if tries:
            log.info("settle.resumed", rows=len(batch), tries=tries)
        for gate, version in versions:
            gate.written = version
        return verdicts
