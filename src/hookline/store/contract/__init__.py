"""Defines what a store must do.

One verb is one transaction. Every verb takes `now`, the store's time as its caller tracks it. Verbs raise
`StoreUnavailable` when the database does not answer (the write may or may not be committed then, and every verb here
may be repeated with the same arguments), `StorageFull` when its disk is full, `StoreRefused` when it must not be used
at all, and `RowRefused` when it accepts writes but not this one. Neither store is the reference: the contract tests
are.

docs/lanes.md explains the words TAKE, LOAD, SETTLE, RELEASE, WAKE, BURY, FREE, SWEEP, BEAT and PULSE, with the
interleavings behind each rule.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from hookline.model import (
    CLOSED,
    FOREVER,
    LONG_AGO,
    Attempt,
    Circuit,
    Delivery,
    DeliveryId,
    Endpoint,
    EndpointId,
    Event,
    EventId,
    JobId,
    Queue,
    Reason,
    State,
    WorkerId,
)
from hookline.store.contract.descriptions import NO_ENDPOINT as NO_ENDPOINT
from hookline.store.contract.descriptions import DescriptionStore
from hookline.store.contract.events import EventStore
from hookline.store.contract.figures import Bloat as Bloat
from hookline.store.contract.figures import Conservation as Conservation
from hookline.store.contract.figures import FiguresStore
from hookline.store.contract.figures import Snapshot as Snapshot
from hookline.store.contract.installation import InstallationStore
from hookline.store.contract.keys import KeyStore
from hookline.store.contract.notifications import MOST_LANES as MOST_LANES
from hookline.store.contract.notifications import Notification as Notification
from hookline.store.contract.notifications import NotificationStore
from hookline.store.contract.retention import Pruned as Pruned
from hookline.store.contract.retention import RetentionStore

FREE_CHUNK = 1_000  # lanes freed from a dead worker in one transaction
SWEEP_CHUNK = 2_000  # lanes checked in one transaction of a sweep
GONE = "The endpoint answered 410 Gone."
INLINE_PAYLOAD_BYTES = 16_384  # larger payloads are read when the delivery gets its slot


# --- accepting -------------------------------------------------------------------------------------------


class EventFanout(msgspec.Struct, frozen=True, gc=False):
    """An event with the endpoints it goes to; delivery i is `ids.delivery_of(event.id, i)`."""

    event: Event
    endpoints: tuple[EndpointId, ...]
    digest: bytes = b""  # of type, payload and deliver_at; compared when the idempotency key was used before


class Prior(msgspec.Struct, frozen=True):
    """The event that an idempotency key already names."""

    event_id: EventId
    type: str
    created_at: float
    digest: bytes
    endpoints: tuple[EndpointId, ...]  # of its deliveries, in fan-out order


class Acceptance(msgspec.Struct, frozen=True):
    """The result of accepting a batch of publications."""

    stale: bool  # the endpoints changed since `catalogue`: nothing was written, fan out again
    first_seq: int = 0  # no delivery written by this batch has a smaller seq
    priors: dict[EventId, Prior] = {}  # by the id of the publication that was not written because of it


# --- lanes -----------------------------------------------------------------------------------------------


class Taken(msgspec.Struct, frozen=True):
    """A lane this worker now owns."""

    endpoint_id: EndpointId
    epoch: int
    woke_at: float  # `wake_at` before the take; if later than now, nothing older was due
    hold_until: float
    suspect: bool  # its last owner died
    head: DeliveryId | None = None  # strict order: the delivery that is retried before any other
    circuit: Circuit = CLOSED
    tokens: float | None = None  # of the rate limit's bucket at `tokens_at`; None: never taken from
    tokens_at: float | None = None
    applied: int = 0  # the last change that its owners applied
    is_reset: bool = False  # an operator closed its circuit after `applied`
    rest_until: float = LONG_AGO  # the receiver's Retry-After, which `hold_until` includes


class Want(msgspec.Struct, frozen=True, gc=False):
    """How many deliveries a lane has room for, and where to start looking."""

    endpoint_id: EndpointId
    ready: int
    timed: int
    floor: int = 0  # ready rows with a smaller seq are settled or known
    due_floor: float = float("-inf")  # timed rows due before are settled or known


class Loaded(msgspec.Struct, gc=False):
    """A pending delivery with everything needed to send it."""

    id: DeliveryId
    endpoint_id: EndpointId
    queue: Queue
    seq: int  # for a delivery that was handed over: a lower bound
    due_at: float
    attempts: int
    replays: int
    marks: int
    event_type: str
    idempotency_key: str | None
    created_at: float
    payload: bytes | None  # None: larger than INLINE_PAYLOAD_BYTES, see `payload()`
    hops: int = 0  # of its event
    payload_bytes: int = 0


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """An attempt that was made, with the new state of its delivery."""

    attempt: Attempt
    endpoint_id: EndpointId
    epoch: int  # of the lane when the attempt was made
    state: State
    due_at: float  # pending: when to try again
    reason: Reason | None = None
    gone: float | None = None  # the receiver answered "gone": `updated_at` of the endpoint that was asked


class LaneNote(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner stores about its lane after a change."""

    endpoint_id: EndpointId
    epoch: int
    hold_until: float  # an open circuit's probe, a lane-wide Retry-After, a strict lane's waiting head
    head: DeliveryId | None
    circuit: Circuit
    applied: int
    rest_until: float = LONG_AGO  # the Retry-After among these: only time ends it


class Suspect(msgspec.Struct, frozen=True, gc=False):
    """A delivery of a lane whose last owner died."""

    delivery_id: DeliveryId
    endpoint_id: EndpointId
    epoch: int
    replays: int = 0  # as it was read; if it was cancelled and replayed since, it is read again


class Verdict(StrEnum):
    """What a settle did with one settlement."""

    APPLIED = "applied"
    REPEATED = "repeated"  # this very attempt was settled before: the answer was lost, not the write
    LATE = "late"  # the lane or the delivery had moved on: the attempt is kept, marked late, decides nothing


class Release(msgspec.Struct, frozen=True, gc=False):
    """A lane to be released, with what its owner knows."""

    endpoint_id: EndpointId
    epoch: int
    wake_at: float  # the first moment it could send, as far as the owner knows; inf: nothing waits
    tokens: float | None = None  # of the rate limit's bucket at `tokens_at`
    tokens_at: float | None = None
    suspect: bool = False  # still suspect: not everything that an owner died with was sent again


# --- workers ---------------------------------------------------------------------------------------------


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
    ahead: float = 0.0  # seconds that the store's time is ahead of the right time (possible for a file)
    rate: float = 1.0  # how fast it runs: slower while it is ahead
    refusal: str | None = (
        None  # why the store would refuse this process's writes, if that was checked; "": it would not
    )


class EndpointSnapshot(msgspec.Struct, frozen=True):
    """All endpoints, and the number of the last change they include."""

    n: int
    endpoints: tuple[Endpoint, ...]


class LaneRow(msgspec.Struct, frozen=True):
    """A lane as it is stored."""

    endpoint_id: EndpointId
    owner: WorkerId | None
    hold_until: float
    head: DeliveryId | None
    circuit: Circuit
    rest_until: float = LONG_AGO  # the receiver's Retry-After, which `hold_until` includes


UNREADABLE_JOB = "What it is about cannot be read in the database."


class JobKind(StrEnum):
    """What a job does to every dead letter that matches."""

    REPLAY = "replay"
    DISCARD = "discard"


class JobState(StrEnum):
    """The progress of a job."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk replay or discard of dead letters."""

    id: JobId
    kind: JobKind
    filter: "DeliveryFilter"  # over dead letters that died before `created_at`
    ids: tuple[DeliveryId, ...] = ()  # instead of the filter, if not empty
    account: str | None = None  # who asked: only this account sees it, and only its letters are changed
    idempotency_key: str | None = None
    digest: bytes = b""
    state: JobState = JobState.RUNNING
    matched: int = 0
    done: int = 0
    failed: int = 0  # of the ids: those that were not dead when their turn came, or belong to another account
    created_at: float
    finished_at: float | None = None
    reason: str | None = None  # why it failed, or must fail: its row cannot be carried out


class JobStep(msgspec.Struct, frozen=True):
    """What one transaction of a job did."""

    job: Job
    lanes: tuple[EndpointId, ...] = ()  # lanes with rows made due: to be woken


class DeliveryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which deliveries a list contains; None is any. `since` and `until` refer to the event's creation."""

    state: State | None = None
    account: str | None = None
    endpoint_id: EndpointId | None = None
    event_id: EventId | None = None
    event_type: str | None = None
    since: float | None = None
    until: float | None = None
    reason: Reason | None = None
    died_since: float | None = None  # dead letters: by the time of death (of replayed ones: their last death)
    died_until: float | None = None
    is_replayed: bool = False  # pending again after a death; used instead of `state`

    def by(self, asked: Callable[[float], float]) -> "DeliveryFilter":
        """The same, with moments given by people converted to the store's times (`Clock.asked`)."""
        names = ("since", "until", "died_since", "died_until")
        given = {name: at for name in names if (at := getattr(self, name)) is not None}
        return msgspec.structs.replace(self, **{name: asked(at) for name, at in given.items()})


class Store(
    DescriptionStore,
    EventStore,
    FiguresStore,
    NotificationStore,
    InstallationStore,
    KeyStore,
    RetentionStore,
    Protocol,
):
    """Everything durable."""

    exclusive: bool  # one process serves this database: the row of any other worker belongs to a dead one

    # life

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, safely beside others doing the same; the names of the applied migrations."""

    async def outstanding(self) -> list[str]:
        """The migrations that `migrate` would apply; changes nothing."""

    async def open(self, *, serve: bool = True) -> None:
        """Connect; refuse an unsafe or foreign database. `serve` claims an SQLite file for this process."""

    async def close(self) -> None:
        """Finish the work handed in and close every connection."""

    # accepting

    async def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        """Write events, deliveries and idempotency keys in one commit, `seq` in the order of the batch.

        Nothing is written (`stale`) when an endpoint changed after the change numbered `catalogue`. No key is in a
        batch twice. Repeating a batch whose commit was in doubt writes nothing twice and gives the first answer again:
        an event that is already stored under its own id was accepted. Deliveries with a `deliver_at` later than now
        join the timed queue, all others the ready queue.
        """

    # lanes

    async def take(self, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
        """Take up to `limit` free lanes whose `wake_at` has come, earliest first; epoch + 1. None when buried."""

    async def take_these(self, worker: WorkerId, lanes: Sequence[EndpointId], *, now: float) -> list[Taken]:
        """Take the ones of these lanes that are free, not paused and not held back, whatever their `wake_at`."""

    async def load(self, wants: Sequence[Want], *, known: Sequence[DeliveryId], now: float) -> list[Loaded]:
        """Pending deliveries of the lanes except `known`: ready ones by seq, then timed ones that are due, by time."""

    async def payload(self, event: EventId) -> bytes:
        """The payload of an event whose row exists."""

    async def settle(
        self,
        worker: WorkerId,
        batch: Sequence[Settlement],
        *,
        notes: Sequence[LaneNote] = (),
        now: float,
    ) -> list[Verdict]:
        """Fenced: attempt, delivery and the lanes' notes in one commit; one verdict for each settlement, in order.

        A delivery moves only from pending with `attempts = number - 1` and the same `replays`, and only while this
        worker is not buried and owns the lane in that epoch. The attempt is inserted in any case, once. An endpoint
        that is gone is disabled together with the delivery that found it gone, unless the endpoint was changed since
        the request.
        """

    async def note(self, worker: WorkerId, notes: Sequence[LaneNote], *, now: float) -> list[EndpointId]:
        """Fenced: store notes alone (a probe before it is sent, a reset); the lanes that were still owned."""

    async def mark(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """Fenced: add one mark to pending deliveries before they are sent; the ones that were marked."""

    async def condemn(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """Fenced: pending -> dead (`crash_limit`), without an attempt; those that are dead now."""

    async def release(self, worker: WorkerId, releases: Sequence[Release], *, now: float) -> list[EndpointId]:
        """Fenced: release lanes; the ones that were released. The caller then wakes the same lanes (RECHECK)."""

    async def wake(self, lanes: Sequence[EndpointId], *, now: float) -> None:
        """Lower `wake_at` of the free ones of these lanes to what their rows need; waits for row locks, in order."""

    # workers

    async def register(self, worker: WorkerRow) -> None:
        """Add the process to `workers`."""

    async def beat(self, worker: WorkerId, load: Load, *, now: float) -> bool:
        """Count one heartbeat; False when the worker is buried (or gone)."""

    async def pulse(self, *, seen: int, worker: WorkerId | None = None) -> Pulse:
        """The store's time, all workers, the changes after number `seen`, and when the first free lane wakes.

        Where sessions end with their process, the session on which a registered `worker` asks holds a lock for it,
        from its registration on and again after each reconnect.
        """

    async def list_workers(self, *, after: WorkerId | None, limit: int) -> list[WorkerRow]:
        """Newest first, from below the id `after`, buried ones too."""

    async def owned(self, worker: WorkerId) -> list[Taken]:
        """The lanes that name this worker as owner (`woke_at` is then their `wake_at`)."""

    async def bury(self, worker: WorkerId, *, beat: int, now: float) -> bool:
        """Declare a worker dead if its heartbeat count is still this one; True if it is buried now (or was before)."""

    async def free(self, worker: WorkerId, *, now: float) -> list[EndpointId]:
        """Release up to FREE_CHUNK lanes of a buried worker: epoch + 1, suspect, asleep. The caller wakes them."""

    async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
        """Wake the free ones of the next SWEEP_CHUNK lanes after this id; the id to continue from, None at the end."""

    async def retire(self, worker: WorkerId) -> None:
        """Delete the worker's row, if no lane names it."""

    # operators: each writes its rows and one change

    async def create_endpoint(self, endpoint: Endpoint, *, now: float) -> None:
        """Add an endpoint and its lane."""

    async def update_endpoint(self, endpoint: Endpoint, *, was: float, now: float) -> bool:
        """Replace the endpoint that was read with `updated_at = was`; a disabled or paused one has its lane paused.

        False when it is gone, or was changed meanwhile.
        """

    async def delete_endpoint(self, endpoint: EndpointId, *, now: float) -> bool:
        """Delete an endpoint, keeping its lane as a paused tombstone; `cancel_deleted` cancels its pending rows."""

    async def cancel_deleted(self, *, limit: int, now: float) -> int:
        """Cancel up to `limit` pending deliveries of deleted endpoints (`endpoint_deleted`); how many there were."""

    async def retry(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """Make a pending delivery due now; its attempts keep counting. NotFound, WrongState."""

    async def cancel(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """pending -> cancelled. NotFound, WrongState."""

    async def redrive(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """dead, delivered or cancelled -> pending: attempts 0, due now, replays + 1. NotFound, WrongState.

        A death is kept as `last_death`.
        """

    async def discard(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """dead -> cancelled (`discarded`). NotFound, WrongState."""

    async def redrive_event(
        self,
        event: EventId,
        *,
        endpoint: EndpointId | None,
        states: Sequence[State],
        now: float,
    ) -> list[tuple[DeliveryId, EndpointId]]:
        """Replay the deliveries of an event that are in one of the states (never pending ones)."""

    async def reset_circuit(self, endpoint: EndpointId, *, now: float) -> bool:
        """Ask the lane's owner to close its circuit; a free lane is made ready to be taken. False without a lane."""

    async def create_job(self, job: Job, *, now: float) -> Job:
        """Start a job, with its `matched` counted before.

        If the account used the idempotency key before for this kind, the answer is the first job.
        """

    async def advance_job(self, job: JobId, *, limit: int, now: float) -> JobStep | None:
        """Process up to `limit` dead letters of a running job, by id, in one transaction with its progress.

        None when the job is not running, or another process works on it. A job whose row cannot be read is failed.
        """

    async def fail_job(self, job: JobId, *, reason: str, now: float) -> bool:
        """running -> failed, for this reason; what was done stays done. False when the job is not running."""

    async def running_jobs(self) -> list[JobId]:
        """Jobs that are not finished, oldest first."""

    # reading

    async def job(self, job: JobId) -> Job | None:
        """One job."""

    async def list_jobs(
        self, kind: JobKind, *, account: str | None = None, after: JobId | None, limit: int
    ) -> list[Job]:
        """Newest first, from below the id `after`; with an account, only the jobs it asked for."""

    async def count_dead(self, filter: DeliveryFilter) -> int:
        """How many dead letters match."""

    async def lanes(self, ids: Sequence[EndpointId]) -> list[LaneRow]:
        """The ones of these that exist."""

    async def catalogue(self) -> EndpointSnapshot:
        """All endpoints and the change number they include, in one snapshot."""

    async def endpoints_by_id(self, ids: Sequence[EndpointId]) -> list[Endpoint]:
        """The ones of these that exist."""

    async def list_endpoints(
        self, *, account: str | None, enabled: bool | None, after: EndpointId | None, limit: int
    ) -> list[Endpoint]:
        """Newest first, from below the id `after`."""

    async def event(self, event: EventId) -> Event | None:
        """One event with its payload."""

    async def delivery(self, delivery: DeliveryId) -> Delivery | None:
        """One delivery."""

    async def list_deliveries(
        self, filter: DeliveryFilter, *, after: DeliveryId | None, limit: int
    ) -> list[Delivery]:
        """Newest first, from below the id `after`."""

    async def attempts(self, delivery: DeliveryId) -> list[Attempt]:
        """All attempts of a delivery, oldest first, late ones included."""

    async def counts(self) -> dict[State, int]:
        """How many deliveries are in each state."""
