"""Frees the lanes of dead workers.

Lanes are freed in chunks and woken as their rows need it. The workers with room then take them as usual. What the dead
worker measured and did not add up is added up. Every step may be repeated, by this worker or another, until the dead
worker's row is gone.
"""

from collections.abc import Callable, Sequence

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.model import EndpointId
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS
from hookline.rules.liveness import DeadWorker
from hookline.store.contract import Store

log = structlog.get_logger()


async def bury(
    store: Store, clock: Clock, dead: Sequence[DeadWorker], *, on_freed: Callable[[], None] = lambda: None
) -> None:
    """Bury these workers, each with the last heartbeat count that was seen, and free their lanes."""
    buried = False
    for worker, beat, by in dead:
        if not await store.bury(worker, beat=beat, now=clock.now()):
            continue  # it sent a heartbeat after all, or its row is gone
        buried = True
        freed = 0
        while lanes := await store.free(worker, now=clock.now()):
            freed += len(lanes)
            await store.wake(sorted(lanes), now=clock.now())
            on_freed()
        while await store.fold_latencies(worker, math=LATENCY_COUNTS, now=clock.now()):
            pass
        await store.retire(worker)
        log.warning("worker.dead", worker=ids.show("worker", worker), lanes=freed, by=by.value)
    if buried:
        # It may have died between the commit and the wake of a publish: those lanes are free and asleep.
        await sweep(store, clock)


async def sweep(store: Store, clock: Clock) -> None:
    """Wake every free lane that its rows need awake."""
    after: EndpointId | None = None
    while True:
        after = await store.sweep(after=after, now=clock.now())
        if after is None:
            return
