"""Defines how a store keeps workers, and the changes that they read.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol

import msgspec

from hookline.model import FOREVER, EndpointId, WorkerId

FREE_CHUNK = 1_000  # lanes freed from a dead worker in one transaction
NO_ENDPOINT = EndpointId(bytes(16))  # in a change that concerns no endpoint


class Load(msgspec.Struct, frozen=True):
    """What a worker tells the others about itself with each heartbeat."""

    lanes: int = 0
    in_flight: int = 0
    free_slots: int = 0
    waiting: int = 0
    draining: bool = False
    delivered_per_s: float = 0.0  # since the last heartbeat


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process that publishes or delivers."""

    id: WorkerId
    kind: str  # "serve", "worker", "api" or "library"
    host: str
    pid: int
    version: str
    started_at: float
    seen_at: float
    beat: int = 0
    load: Load = Load()
    buried: bool = False


class WorkerStatusRow(msgspec.Struct, frozen=True):
    """What a worker knows of its lanes."""

    worker: WorkerId
    seen_at: float  # of its last heartbeat
    status: bytes


class Change(msgspec.Struct, frozen=True):
    """Something an operator changed; the numbers commit in order."""

    n: int
    endpoint_id: EndpointId
    # "endpoint" (created, changed, deleted), "deliveries" (rows replayed, cancelled …), "reset" (circuit),
    # "event_type" (described, deleted: it has no endpoint)
    kind: str


class Pulse(msgspec.Struct, frozen=True):
    """What a worker reads from the store four times a second."""

    now: float  # the store's time
    workers: tuple[WorkerRow, ...]  # all of them, including this one
    changes: tuple[Change, ...]  # after the number asked for, 1,000 at most
    foreign: bool = True  # another process may have written since the last pulse (SQLite knows)
    wakes_at: float = FOREVER  # the earliest `wake_at` of the free lanes
    gone: frozenset[WorkerId] = frozenset()  # the workers whose session held a lock that is free now
    session: int | None = None  # the number of the session that was asked; None: others may share it
    was_absent: bool = (
        False  # the worker's lock was not held when it asked: the worker has to beat before it goes on
    )
    ahead: float = 0.0  # seconds that the store's time is ahead of the right time (possible for a file)
    rate: float = 1.0  # how fast it runs: slower while it is ahead
    has_outbox_rows: bool | None = None  # None: not asked, or it may not be read
    refusal: str | None = (
        None  # why the store would refuse this process's writes, if that was checked; "": it would not
    )


class WorkerStore(Protocol):
    """The verbs about workers."""

    async def register(self, worker: WorkerRow) -> None:
        """Add the process to `workers`."""

    async def beat(self, worker: WorkerId, load: Load, *, now: float, status: bytes | None = None) -> bool:
        """Count one heartbeat; False when the worker is buried (or gone).

        `status` is what it knows of its lanes (`rules.worker_status`), kept until it is given again or the worker is
        gone; None: it has not changed.
        """

    async def worker_status(self) -> list[WorkerStatusRow]:
        """The status of every worker that is not buried; empty for one that gave none."""

    async def pulse(
        self, *, seen: int, worker: WorkerId | None = None, outbox_above: int | None = None
    ) -> Pulse:
        """The store's time, all workers, the changes after number `seen`, and when the first free lane wakes.

        With `outbox_above` also whether hookline's own outbox has a row with a higher number.

        Where sessions end with their process, the session on which a registered `worker` asks holds a lock for it,
        from its registration on and again after each reconnect.
        """

    async def list_workers(self, *, after: WorkerId | None, limit: int) -> list[WorkerRow]:
        """Newest first, from below the id `after`, buried ones too."""

    async def bury(self, worker: WorkerId, *, beat: int, now: float) -> bool:
        """Declare a worker dead if its heartbeat count is still this one; True if it is buried now (or was before)."""

    async def free(self, worker: WorkerId, *, now: float) -> list[EndpointId]:
        """Release up to FREE_CHUNK lanes of a buried worker: epoch + 1, suspect, asleep. The caller wakes them."""

    async def retire(self, worker: WorkerId) -> None:
        """Delete the worker's row, if no lane names it."""
