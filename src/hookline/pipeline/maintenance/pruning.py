"""Deletes old data while everything else continues.

Any delivering process does it, one at a time: a turn is taken in the store. The walk over the old events consists of
short transactions with rests between them, so that publishing and settling hardly notice. A walk that is interrupted
starts again with the next turn.
"""

from collections.abc import AsyncIterator

import structlog

from hookline.clock import Clock
from hookline.errors import StorageFull, StoreUnavailable
from hookline.model import LONG_AGO
from hookline.rules.retention import FIRST_STEP, TOLD_S, CutOffs, Keep, cut_offs, next_step, smaller_step
from hookline.store.contract import Pruned, Store

STEP = 250  # most deliveries in one transaction: on SQLite these keep the event loop for some milliseconds

_LOOK_EVERY = 60.0  # seconds
_PASS_EVERY = 3_600.0
_LEAST_REST = 0.05
_REST = 4.0  # times as long as the step took: at most a fifth of the time is spent on it

log = structlog.get_logger()


class Pruning:
    """The walk over old data."""

    def __init__(self, store: Store, clock: Clock, keep: Keep, *, step: int = STEP) -> None:
        self._store = store
        self._clock = clock
        self._keep = keep
        self._step = step
        self._owes_a_pass = False  # an interrupted walk is repeated at the next look, not in an hour

    async def run(self) -> None:
        """Prune when it is this process's turn, until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_EVERY)
            try:
                self._owes_a_pass = self._owes_a_pass or await self._store.take_prune_turn(
                    every=_PASS_EVERY, now=self._clock.now()
                )
                if self._owes_a_pass:
                    await self._pass()
                    self._owes_a_pass = False
            except StoreUnavailable as error:
                log.debug("prune.interrupted", error=str(error))

    async def _pass(self) -> None:
        events = deliveries = 0
        slowest = 0.0
        before = cut_offs(self._keep, now=self._clock.now())
        async for pruned, took in walk(self._store, self._clock, before, most=self._step):
            events += pruned.events
            deliveries += pruned.deliveries
            slowest = max(slowest, took)
            await self._clock.sleep(max(_LEAST_REST, _REST * took))
        async for _, took in tidy(self._store, self._clock, before, most=self._step):
            slowest = max(slowest, took)
            await self._clock.sleep(max(_LEAST_REST, _REST * took))
        if events or deliveries:
            log.info(
                "prune.finished", events=events, deliveries=deliveries, slowest_ms=round(slowest * 1e3, 1)
            )


async def walk(
    store: Store, clock: Clock, before: CutOffs, *, most: int, is_dry: bool = False
) -> AsyncIterator[tuple[Pruned, float]]:
    """Walk step by step over everything old, with the seconds each step took; the caller decides when the next goes."""
    pruned = Pruned(is_last=False)
    step = min(most, FIRST_STEP)
    while not pruned.is_last:
        started = clock.monotonic()
        try:
            pruned = await store.prune(
                done_before=before.done,
                dead_before=before.dead,
                after=pruned.after,
                limit=step,
                is_dry=is_dry,
            )
        except StorageFull:
            smaller = smaller_step(step)
            if smaller is None:
                raise
            step = most = smaller  # a full disk stays full for a while: no larger steps in this walk
            continue
        took = clock.monotonic() - started
        yield pruned, took
        step = next_step(step, took=took, most=most)


async def tidy(store: Store, clock: Clock, before: CutOffs, *, most: int) -> AsyncIterator[tuple[int, float]]:
    """Walk step by step over the records that are no longer needed, with the seconds each step took."""
    gone = most
    while gone:
        started = clock.monotonic()
        gone = await store.prune_records(
            done_before=before.done, told_before=clock.now() - TOLD_S, limit=most
        )
        yield gone, clock.monotonic() - started
    gone = most if before.audit > LONG_AGO else 0
    while gone:
        started = clock.monotonic()
        gone = await store.prune_audit(before=before.audit, limit=most)
        yield gone, clock.monotonic() - started
