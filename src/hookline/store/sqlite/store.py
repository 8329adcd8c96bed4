"""Keeps everything in one SQLite file.

This is the contract's list of verbs: each gives its work to the right connection. All writes go through one connection,
which commits waiting writes together. Loads have a connection of their own, and so have the lists that people ask for,
which may take long.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from hookline.clock import Clock, SystemClock
from hookline.errors import StoreUnavailable
from hookline.model import (
    Attempt,
    Delivery,
    DeliveryId,
    Endpoint,
    EndpointId,
    Event,
    EventId,
    JobId,
    State,
    WorkerId,
)
from hookline.store.contract import (
    Acceptance,
    DeliveryFilter,
    EndpointSnapshot,
    EventFanout,
    Job,
    JobKind,
    JobStep,
    LaneNote,
    LaneRow,
    Load,
    Loaded,
    Pulse,
    Release,
    Settlement,
    Suspect,
    Taken,
    Verdict,
    Want,
    WorkerRow,
)
from hookline.store.failpoints import failing
from hookline.store.sqlite import accept, jobs, operators, owning, reading, schema, workers
from hookline.store.sqlite.descriptions import SqliteDescribed
from hookline.store.sqlite.driver.connection import connect, refuse_unwritable
from hookline.store.sqlite.driver.faults import translated
from hookline.store.sqlite.driver.lock import ServingLock
from hookline.store.sqlite.driver.presence import FilePresence
from hookline.store.sqlite.driver.shared_commit import Paired
from hookline.store.sqlite.driver.timekeeping import FileTime
from hookline.store.sqlite.driver.writer import Executor, Threaded, Work, commit_together, run_each
from hookline.store.sqlite.events import SqliteEvents
from hookline.store.sqlite.figures import SqliteFigures
from hookline.store.sqlite.installation import SqliteInstallation
from hookline.store.sqlite.keys import SqliteKeys
from hookline.store.sqlite.notifications import SqliteHints
from hookline.store.sqlite.retention import SqliteRetention

T = TypeVar("T")


@failing
class SqliteStore(
    SqliteDescribed, SqliteEvents, SqliteFigures, SqliteHints, SqliteInstallation, SqliteKeys, SqliteRetention
):
    """The store in one file."""

    exclusive = True  # one process serves a file

    def __init__(
        self,
        path: str,
        *,
        clock: Clock | None = None,
        executor: Callable[..., Executor] | None = None,
    ) -> None:
        self._path = path
        self._folder = os.path.dirname(path) or "."
        self._clock = clock or SystemClock()
        self._time = FileTime(self._clock)
        self._executor = executor
        self._lock = ServingLock(path)
        self._presence: FilePresence | None = None
        self._writer: Executor | None = None
        self._loader: Executor | None = None
        self._lister: Executor | None = None
        self._counter: Executor | None = None  # made on first use
        self._version: int | None = None  # of other connections' writes, at the last pulse

    def __repr__(self) -> str:
        return f"SqliteStore({self._path!r})"

    # life

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, safely beside others doing the same; the names of the applied migrations."""
        connection = connect(self._path, create=True)
        try:
            return schema.migrate(connection, at=self._clock.wall())
        except sqlite3.Error as error:
            raise translated(error) from error
        finally:
            connection.close()

    async def outstanding(self) -> list[str]:
        """The migrations that `migrate` would apply; changes nothing."""
        return schema.would_apply(self._path)

    async def open(self, *, serve: bool = True) -> None:
        """Connect; refuse an unsafe or foreign file, and one that another process serves."""
        connections: list[sqlite3.Connection] = []
        try:
            refuse_unwritable(self._path, create=False)
            if serve:
                self._lock.acquire()  # first: the process that serves the file decides when it is migrated
            connections.append(connect(self._path))
            self._presence = FilePresence(self._path)
            schema.refuse_unless_usable(connections[0])
            connections += [connect(self._path), connect(self._path)]
        except BaseException as error:
            for connection in connections:
                connection.close()
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise translated(error) from error
            raise
        self._writer = (self._executor or Paired)(connections[0], commit_together)
        self._loader = (self._executor or Threaded)(connections[1], run_each)
        self._lister = (self._executor or Threaded)(connections[2], run_each)

    async def close(self) -> None:
        """Finish the work handed in and close every connection."""
        # The writer closes last: the last connection to close copies the log into the file.
        for executor in (self._counter, self._lister, self._loader, self._writer):
            if executor is not None:
                await executor.stop()
        self._lock.release()

    async def _write(self, work: Work[T]) -> T:
        if self._writer is None:
            raise StoreUnavailable("The store is not open.")
        return await self._writer.run(work)

    async def _load(self, work: Work[T]) -> T:
        if self._loader is None:
            raise StoreUnavailable("The store is not open.")
        return await self._loader.run(work)

    async def _read(self, work: Work[T]) -> T:
        if self._lister is None:
            raise StoreUnavailable("The store is not open.")
        return await self._lister.run(work)

    async def _count(self, work: Work[T]) -> T:
        if self._lister is None:
            raise StoreUnavailable("The store is not open.")
        if self._counter is None:
            self._counter = (self._executor or Threaded)(connect(self._path), run_each)
        return await self._counter.run(work)

    # accepting

    async def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        """Write events, deliveries and idempotency keys in one commit, `seq` in the order of the batch."""
        if self._presence is not None:
            self._presence.refuse_if_gone()
        work = partial(
            accept.accept,
            batch=batch,
            catalogue=catalogue,
            now=now,
            due=self._time.due,
            folder=self._folder,
        )
        return await self._write(work)

    # lanes

    async def take(self, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
        """Take up to `limit` free lanes whose `wake_at` has come, earliest first."""
        return await self._write(partial(owning.take, worker=worker, limit=limit, now=now))

    async def take_these(self, worker: WorkerId, lanes: Sequence[EndpointId], *, now: float) -> list[Taken]:
        """Take the ones of these lanes that are free, not paused and not held back."""
        return await self._write(partial(owning.take_these, worker=worker, lanes=lanes, now=now))

    async def load(self, wants: Sequence[Want], *, known: Sequence[DeliveryId], now: float) -> list[Loaded]:
        """Pending deliveries of these lanes, except those in `known`."""
        return await self._load(partial(owning.load, wants=wants, known=known, now=now))

    async def payload(self, event: EventId) -> bytes:
        """The payload of an event whose row exists."""
        return await self._load(partial(owning.payload, event=event))

    async def settle(
        self,
        worker: WorkerId,
        batch: Sequence[Settlement],
        *,
        notes: Sequence[LaneNote] = (),
        now: float,
    ) -> list[Verdict]:
        """Fenced: attempt, delivery and notes in one commit; one verdict for each settlement, in order."""
        return await self._write(partial(owning.settle, worker=worker, batch=batch, notes=notes, now=now))

    async def note(self, worker: WorkerId, notes: Sequence[LaneNote], *, now: float) -> list[EndpointId]:
        """Fenced: store notes alone; the lanes that were still owned."""
        return await self._write(partial(owning.note, worker=worker, notes=notes))

    async def mark(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """Fenced: add one mark to pending deliveries before they are sent; the ones that were marked."""
        return await self._write(partial(owning.mark, worker=worker, suspects=suspects, now=now))

    async def condemn(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """Fenced: pending -> dead (`crash_limit`), without an attempt; those that are dead now."""
        return await self._write(partial(owning.condemn, worker=worker, suspects=suspects, now=now))

    async def release(self, worker: WorkerId, releases: Sequence[Release], *, now: float) -> list[EndpointId]:
        """Fenced: release lanes; the ones that were released."""
        return await self._write(partial(owning.release, worker=worker, releases=releases))

    async def wake(self, lanes: Sequence[EndpointId], *, now: float) -> None:
        """Lower `wake_at` of the free ones of these lanes to what their rows need."""
        await self._write(partial(owning.wake, lanes=lanes, now=now))

    # workers

    async def register(self, worker: WorkerRow) -> None:
        """Add the process to `workers`."""
        await self._write(partial(workers.register, worker=worker))

    async def beat(self, worker: WorkerId, load: Load, *, now: float) -> bool:
        """Count one heartbeat; False when the worker is buried (or gone)."""
        return await self._write(partial(workers.beat, worker=worker, load=load, now=now))

    async def pulse(self, *, seen: int, worker: WorkerId | None = None) -> Pulse:
        """The store's time, all workers, the changes after number `seen`, and when the first free lane wakes.

        On the writer's connection: only there SQLite does not count our own writes as those of others.
        """
        if self._writer is None or self._presence is None:
            raise StoreUnavailable("The store is not open.")
        self._presence.refuse_if_gone()
        look = await self._writer.run(partial(workers.Look, seen=seen), transacts=False)
        foreign, self._version = look.version != self._version, look.version
        now = self._time.now(written=look.written)
        time = self._time
        return Pulse(
            now,
            look.workers,
            look.changes,
            foreign=foreign,
            wakes_at=look.wakes_at,
            ahead=time.ahead,
            rate=time.rate,
        )

    async def list_workers(self, *, after: WorkerId | None, limit: int) -> list[WorkerRow]:
        """Newest first, from below the id `after`, buried ones too."""
        return await self._read(partial(workers.listed, after=after, limit=limit))

    async def owned(self, worker: WorkerId) -> list[Taken]:
        """The lanes that name this worker as owner."""
        return await self._load(partial(workers.owned, worker=worker))

    async def bury(self, worker: WorkerId, *, beat: int, now: float) -> bool:
        """Declare a worker dead if its heartbeat count is still this one; True if it is buried now (or was before)."""
        return await self._write(partial(workers.bury, worker=worker, beat=beat, now=now))

    async def free(self, worker: WorkerId, *, now: float) -> list[EndpointId]:
        """Release up to FREE_CHUNK lanes of a buried worker."""
        return await self._write(partial(workers.free, worker=worker, now=now))

    async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
        """Wake the free ones of the next SWEEP_CHUNK lanes after this id; the id to continue from."""
        return await self._write(partial(workers.sweep, after=after, now=now))

    async def retire(self, worker: WorkerId) -> None:
        """Delete the worker's row, if no lane names it."""
        await self._write(partial(workers.retire, worker=worker))

    # operators

    async def create_endpoint(self, endpoint: Endpoint, *, now: float) -> None:
        """Add an endpoint and its lane."""
        await self._write(partial(operators.create_endpoint, endpoint=endpoint, now=now))

    async def update_endpoint(self, endpoint: Endpoint, *, was: float, now: float) -> bool:
        """Replace the endpoint that was read with `updated_at = was`; False if it is gone or changed meanwhile."""
        return await self._write(partial(operators.update_endpoint, endpoint=endpoint, was=was, now=now))

    async def delete_endpoint(self, endpoint: EndpointId, *, now: float) -> bool:
        """Delete an endpoint, keeping its lane as a paused tombstone."""
        return await self._write(partial(operators.delete_endpoint, endpoint=endpoint, now=now))

    async def cancel_deleted(self, *, limit: int, now: float) -> int:
        """Cancel up to `limit` pending deliveries of deleted endpoints; how many there were."""
        return await self._write(partial(operators.cancel_deleted, limit=limit, now=now))

    async def retry(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """Make a pending delivery due now; its attempts keep counting."""
        return await self._write(partial(operators.retry, delivery=delivery, now=now))

    async def cancel(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """pending -> cancelled."""
        return await self._write(partial(operators.cancel, delivery=delivery, now=now))

    async def redrive(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """dead, delivered or cancelled -> pending."""
        return await self._write(partial(operators.redrive, delivery=delivery, now=now))

    async def discard(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """dead -> cancelled."""
        return await self._write(partial(operators.discard, delivery=delivery, now=now))

    async def redrive_event(
        self,
        event: EventId,
        *,
        endpoint: EndpointId | None,
        states: Sequence[State],
        now: float,
    ) -> list[tuple[DeliveryId, EndpointId]]:
        """Replay the deliveries of an event that are in one of the states (never pending ones)."""
        return await self._write(
            partial(operators.redrive_event, event=event, endpoint=endpoint, states=states, now=now)
        )

    async def reset_circuit(self, endpoint: EndpointId, *, now: float) -> bool:
        """Ask the lane's owner to close its circuit; a free lane is made ready to be taken. False without a lane."""
        return await self._write(partial(operators.reset_circuit, endpoint=endpoint, now=now))

    async def create_job(self, job: Job, *, now: float) -> Job:
        """Start a job; if the idempotency key was used before for its kind, the answer is the first job.

        Its letters are counted before, in steps: no other write waits for that.
        """
        if (first := await self._read(partial(jobs.find, job=job))) is not None:
            return first
        matched = len(set(job.ids)) or await self._count_dead(job.filter, before=job.created_at)
        return await self._write(partial(jobs.create, job=job, matched=matched))

    async def advance_job(self, job: JobId, *, limit: int, now: float) -> JobStep | None:
        """Process up to `limit` dead letters of a running job, by id; None when the job is not running."""
        return await self._write(partial(jobs.advance, id=job, limit=limit, now=now))

    async def fail_job(self, job: JobId, *, reason: str, now: float) -> bool:
        """running -> failed, for this reason."""
        return await self._write(partial(jobs.fail, id=job, reason=reason, now=now))

    async def running_jobs(self) -> list[JobId]:
        """Jobs that are not finished, oldest first."""
        return await self._read(reading.running_jobs)

    # reading

    async def job(self, job: JobId) -> Job | None:
        """One job."""
        return await self._read(partial(reading.job, job=job))

    async def list_jobs(
        self, kind: JobKind, *, account: str | None = None, after: JobId | None, limit: int
    ) -> list[Job]:
        """Newest first, from below the id `after`; with an account, only the jobs it asked for."""
        work = partial(reading.list_jobs, kind=kind, account=account, after=after, limit=limit)
        return await self._read(work)

    async def count_dead(self, filter: DeliveryFilter) -> int:
        """How many dead letters match."""
        return await self._count_dead(filter, before=None)

    async def _count_dead(self, filter: DeliveryFilter, *, before: float | None) -> int:
        total, after = 0, None
        while True:
            step = partial(reading.count_dead, filter=filter, before=before, after=after)
            count, after = await self._read(step)
            total += count
            if after is None:
                return total

    async def lanes(self, ids: Sequence[EndpointId]) -> list[LaneRow]:
        """The ones of these that exist."""
        return await self._read(partial(reading.lanes, ids=ids))

    async def catalogue(self) -> EndpointSnapshot:
        """All endpoints and the change number they include, in one snapshot."""
        return await self._read(reading.catalogue)

    async def endpoints_by_id(self, ids: Sequence[EndpointId]) -> list[Endpoint]:
        """The ones of these that exist."""
        return await self._read(partial(reading.endpoints_by_id, ids=ids))

    async def list_endpoints(
        self, *, account: str | None, enabled: bool | None, after: EndpointId | None, limit: int
    ) -> list[Endpoint]:
        """Newest first, from below the id `after`."""
        return await self._read(
            partial(reading.list_endpoints, account=account, enabled=enabled, after=after, limit=limit)
        )

    async def event(self, event: EventId) -> Event | None:
        """One event with its payload."""
        return await self._read(partial(reading.event, event=event))

    async def delivery(self, delivery: DeliveryId) -> Delivery | None:
        """One delivery."""
        return await self._read(partial(reading.delivery, delivery=delivery))

    async def list_deliveries(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
    ) -> list[Delivery]:
        """Newest first, from below the id `after`."""
        found: list[Delivery] = []
        while True:
            step = partial(reading.list_deliveries, filter=filter, after=after, limit=limit - len(found))
            more, after = await self._read(step)
            found += more
            if after is None or len(found) == limit:
                return found

    async def attempts(self, delivery: DeliveryId) -> list[Attempt]:
        """All attempts of a delivery, oldest first, late ones included."""
        return await self._read(partial(reading.attempts, delivery=delivery))

    async def counts(self) -> dict[State, int]:
        """How many deliveries are in each state."""
        return await self._read(reading.counts)
