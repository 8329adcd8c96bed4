"""Does the work of the prune command in the database.

On a terminal a bar shows the progress. The rows to delete are counted first, only for the bar.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator

from hookline.admin.audit import acting
from hookline.app import audit_of, store_for
from hookline.cli.database.origin import command_line
from hookline.cli.output import progress_bar
from hookline.clock import SystemClock
from hookline.errors import StorageFull
from hookline.model import AuditAction, AuditEntry
from hookline.pipeline.maintenance.pruning import tidy, walk
from hookline.rules.audit_changes import noted
from hookline.rules.retention import DAY, CutOffs, Keep, cut_offs
from hookline.store.contract import Store

STEP = 500  # deliveries in one transaction at most: a server beside it waits no longer than that

_LEAST_REST = 0.01  # seconds; at least half of the time is left to others

Counts = dict[str, int]
Show = Callable[[Counts], None]


def count(database: str, keep: Keep) -> Counts:
    """Count what would be deleted."""
    return asyncio.run(_run(database, keep, is_dry=True))


def prune(database: str, keep: Keep) -> Counts:
    """Delete it; returns what was deleted."""
    return asyncio.run(_run(database, keep, is_dry=False))


async def _run(database: str, keep: Keep, *, is_dry: bool) -> Counts:
    store = store_for(database)
    await store.open(serve=False)
    try:
        before = cut_offs(keep, now=(await store.pulse(seen=sys.maxsize)).now)
        if is_dry:
            return await _walk(store, before, lambda _: None, is_dry=True)
        with acting(command_line()):
            entry = _entry(keep)
        is_told = await _is_told(store, entry)
        gone = await _prune(store, before)
        if not is_told:
            await store.write_audit(entry)
        return gone
    finally:
        await store.close()


async def _is_told(store: Store, entry: AuditEntry) -> bool:
    """Write one entry for the whole walk, whose steps are many transactions; False if the disk has no room for it."""
    try:
        await store.write_audit(entry)
    except StorageFull:
        return False  # pruning makes room
    return True


async def _prune(store: Store, before: CutOffs) -> Counts:
    if not sys.stderr.isatty():
        return await _walk(store, before, lambda _: None, is_dry=False)
    there = await _walk(store, before, lambda _: None, is_dry=True)
    with _bar(there["events"]) as show:
        return await _walk(store, before, show, is_dry=False)


def _entry(keep: Keep) -> AuditEntry:
    days = {"delivered_days": keep.done, "dead_days": keep.dead, "audit_days": keep.audit}
    kept = {name: None if seconds is None else round(seconds / DAY, 3) for name, seconds in days.items()}
    return audit_of().entry(
        AuditAction.EVENTS_PRUNED, "installation", "events", account=None, changes=noted(**kept)
    )


async def _walk(store: Store, before: CutOffs, show: Show, *, is_dry: bool) -> Counts:
    counts = {"events": 0, "deliveries": 0}
    clock = SystemClock()
    async for pruned, took in walk(store, clock, before, most=STEP, is_dry=is_dry):
        counts["events"] += pruned.events
        counts["deliveries"] += pruned.deliveries
        show(counts)
        if not is_dry:
            await clock.sleep(max(_LEAST_REST, took))
    if not is_dry:
        async for _, took in tidy(store, clock, before, most=STEP):
            await clock.sleep(max(_LEAST_REST, took))
    return counts


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Show]:
    with progress_bar("events") as show:
        yield lambda counts: show(counts["events"], total)
