"""Reads what the owners of lanes know, as of their last heartbeats."""

from hookline.model import WorkerId
from hookline.rules.worker_status import WorkerStatus, is_trusted, unpacked
from hookline.store.contract import Store


async def owner_statuses(store: Store, *, now: float, heartbeat: float) -> dict[WorkerId, WorkerStatus]:
    """The statuses of the workers that are still to be believed."""
    return {
        row.worker: unpacked(row.status)
        for row in await store.worker_status()
        if is_trusted(silent=now - row.seen_at, heartbeat=heartbeat)
    }
