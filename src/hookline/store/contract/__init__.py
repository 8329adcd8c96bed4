"""What must a store be able to do?

One verb, one transaction. Every verb takes `now`, the store's time as its caller tracks it. Verbs raise
`StoreUnavailable` when the database does not answer (whether the write was committed is then in doubt, and
every verb here may be repeated with the same arguments), `StorageFull` when its disk is full,
`StoreRefused` when it must not be used at all, and `RowRefused` when it takes writes and not this one. Neither store is the reference: the contract tests are.

The words TAKE, LOAD, SETTLE, RELEASE, WAKE, BURY, FREE, SWEEP, BEAT and PULSE are explained in
docs/lanes.md, with the interleavings that each rule is there for.
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
SWEEP_CHUNK = 2_000  # lanes looked at in one transaction of a sweep
GONE = "The endpoint answered 410 Gone."
INLINE_PAYLOAD_BYTES = 16_384  # larger payloads are read when the slot is granted


# --- accepting -------------------------------------------------------------------------------------------


class EventFanout(msgspec.Struct, frozen=True, gc=False):
    """An event with the endpoints it goes to; delivery i is `ids.delivery_of(event.id, i)`."""

    event: Event
    endpoints: tuple[EndpointId, ...]
    digest: bytes = b""  # of type, payload and deliver_at; compared when the idempotency key was used before


class Prior(msgspec.Struct, frozen=True):
    """The event that an idempotency key already stands for."""

    event_id: EventId
    type: str
    created_at: float
    digest: bytes
    endpoints: tuple[EndpointId, ...]  # of its deliveries, in fan-out order


class Acceptance(msgspec.Struct, frozen=True):
    """What became of a batch of publications."""

    stale: bool  # the endpoints changed since `catalogue`: nothing was written, fan out again
    first_seq: int = 0  # no delivery written by this batch has a smaller seq
    priors: dict[EventId, Prior] = {}  # by the id of the publication that was not written because of it


# --- lanes -----------------------------------------------------------------------------------------------


class Taken(msgspec.Struct, frozen=True):
    """A lane this worker now owns."""

    endpoint_id: EndpointId
    epoch: int
    woke_at: float  # `wake_at` before the take: later than now means nothing older was due
    hold_until: float
    suspect: bool  # its last owner died
    head: DeliveryId | None = None  # strict order: the delivery that is tried again before any other
    circuit: Circuit = CLOSED
    tokens: float | None = None  # of the rate limit's bucket at `tokens_at`; None: never taken from
    tokens_at: float | None = None
    applied: int = 0  # the last change its owners carried out
    is_reset: bool = False  # an operator closed its circuit after `applied`
    rest_until: float = LONG_AGO  # a receiver's wish (Retry-After), which `hold_until` includes


class Want(msgspec.Struct, frozen=True, gc=False):
    """How many deliveries a lane has room for, and from where on to look."""

    endpoint_id: EndpointId
    ready: int
    timed: int
    floor: int = 0  # ready rows with a smaller seq are settled or known
    due_floor: float = float("-inf")  # timed rows due before are settled or known


class Loaded(msgspec.Struct, gc=False):
    """A pending delivery with what is needed to send it."""

    id: DeliveryId
    endpoint_id: EndpointId
    queue: Queue
    seq: int  # of a delivery handed over: a lower bound
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
    """An attempt that was made, and what becomes of its delivery."""

    attempt: Attempt
    endpoint_id: EndpointId
    epoch: int  # of the lane when the attempt was made
    state: State
    due_at: float  # pending: when to try again
    reason: Reason | None = None
    gone: float | None = None  # a receiver said that the endpoint is: `updated_at` of the one that was asked


class LaneNote(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner writes down about its lane when it changed."""

    endpoint_id: EndpointId
    epoch: int
    hold_until: float  # an open circuit's probe, a lane-wide Retry-After, a strict lane's waiting head
    head: DeliveryId | None
    circuit: Circuit
    applied: int
    rest_until: float = LONG_AGO  # of these the Retry-After: nobody but time ends it


class Suspect(msgspec.Struct, frozen=True, gc=False):
    """A delivery of a lane whose last owner died."""

    delivery_id: DeliveryId
    endpoint_id: EndpointId
    epoch: int
    replays: int = 0  # as it was read: cancelled and replayed since then, it is another one, and read again


class Verdict(StrEnum):
    """What a settle did with one settlement."""

    APPLIED = "applied"
    REPEATED = "repeated"  # this very attempt was settled before: the answer got lost, not the write
    LATE = "late"  # the lane or the delivery had moved on: the attempt is kept, marked late, and counts for nothing


class Release(msgspec.Struct, frozen=True, gc=False):
    """A lane to be let go, with what its owner believes."""

    endpoint_id: EndpointId
    epoch: int
    wake_at: float  # first moment it could send, as far as the owner knows; inf: nothing is waiting
    tokens: float | None = None  # of the rate limit's bucket at `tokens_at`
    tokens_at: float | None = None
    suspect: bool = False  # still: not all that an owner died with were sent again


# --- workers ---------------------------------------------------------------------------------------------


class Load(msgspec.Struct, frozen=True):
    """What a worker tells its peers about itself with each beat."""

    lanes: int = 0
    in_flight: int = 0
    free_slots: int = 0
    waiting: int = 0
    draining: bool = False
    delivered_per_s: float = 0.0  # since the beat before


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
    # "endpoint" (created, changed, deleted), "deliveries" (rows redriven, cancelled …), "reset" (circuit),
    # "event_type" (described, forgotten: of no endpoint)
    kind: str


class Pulse(msgspec.Struct, frozen=True):
    """What a worker looks at four times a second."""

    now: float  # the store's time
    workers: tuple[WorkerRow, ...]  # all of them, this one included
    changes: tuple[Change, ...]  # after the number asked for, at most 1,000
    foreign: bool = True  # another process may have written since the last pulse (SQLite knows)
    wakes_at: float = FOREVER  # the earliest `wake_at` of the free lanes
    gone: frozenset[WorkerId] = frozenset()  # those whose session held a lock that is free now
    session: int | None = None  # the number of the session that was asked; None: it may be others' too
    ahead: float = 0.0  # seconds that the store's time is ahead of the right one (a file's may be)
    rate: float = 1.0  # how fast it runs: slower, while it is ahead
    refusal: str | None = (
        None  # why the store would refuse what this process has to write, if it was asked; "": it would not
    )


class EndpointSnapshot(msgspec.Struct, frozen=True):
    """All endpoints, and the number of the last change they include."""

    n: int
    endpoints: tuple[Endpoint, ...]


class LaneRow(msgspec.Struct, frozen=True):
    """A lane as the store has it."""

    endpoint_id: EndpointId
    owner: WorkerId | None
    hold_until: float
    head: DeliveryId | None
    circuit: Circuit
    rest_until: float = LONG_AGO  # a receiver's wish, which `hold_until` includes


UNREADABLE_JOB = "What it is about cannot be read in the database."


class JobKind(StrEnum):
    """What is done to every dead letter that matches."""

    REPLAY = "replay"
    DISCARD = "discard"


class JobState(StrEnum):
    """How far a job is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk replay or discard of dead letters."""

    id: JobId
    kind: JobKind
    filter: "DeliveryFilter"  # over dead letters that died before `created_at`
    ids: tuple[DeliveryId, ...] = ()  # instead of the filter, if not empty
    account: str | None = None  # who asked: it is theirs alone, and does only what is theirs
    idempotency_key: str | None = None
    digest: bytes = b""
    state: JobState = JobState.RUNNING
    matched: int = 0
    done: int = 0
    failed: int = 0  # of the ids: those that were not dead when their turn came, or not the account's
    created_at: float
    finished_at: float | None = None
    reason: str | None = None  # why it has failed, or has to: what its row says cannot be carried out


class JobStep(msgspec.Struct, frozen=True):
    """What one transaction of a job did."""

    job: Job
    lanes: tuple[EndpointId, ...] = ()  # with rows made due: to be woken


class DeliveryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which deliveries a list is about; None is any. `since` and `until` are of the event's creation."""

    state: State | None = None
    account: str | None = None
    endpoint_id: EndpointId | None = None
    event_id: EventId | None = None
    event_type: str | None = None
    since: float | None = None
    until: float | None = None
    reason: Reason | None = None
    died_since: float | None = None  # dead letters: by when they died (of replayed ones: their last death)
    died_until: float | None = None
    is_replayed: bool = False  # pending again after a death, instead of `state`

    def by(self, asked: Callable[[float], float]) -> "DeliveryFilter":
        """The same with moments that people gave turned into the store's times (`Clock.asked`)."""
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

    exclusive: bool  # one process serves this database: every other worker's row is a dead one's

    # life

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, safely beside others doing the same; the names of what was applied."""

    async def outstanding(self) -> list[str]:
        """What `migrate` would apply; looks, and changes nothing."""

    async def open(self, *, serve: bool = True) -> None:
        """Connect; refuse an unsafe or foreign database. `serve` claims an SQLite file for this process."""

    async def close(self) -> None:
        """Finish what was handed in and let go of every connection."""

    # accepting

    async def accept(self, batch: Sequence[EventFanout], *, catalogue: int, now: float) -> Acceptance:
        """Write events, deliveries and idempotency keys in one commit, `seq` in the order of the batch.

        Nothing is written (`stale`) when an endpoint changed after the change numbered `catalogue`. No key
        stands twice in one batch. Repeating a batch whose commit was in doubt writes nothing twice and
        answers as the first time: an event that is already there under its own id was accepted.
        Deliveries with `deliver_at` later than now join the timed queue, all others the ready queue.
        """

    # lanes

    async def take(self, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
        """Own up to `limit` free lanes whose `wake_at` has come, earliest first; epoch + 1. Nothing when buried."""

    async def take_these(self, worker: WorkerId, lanes: Sequence[EndpointId], *, now: float) -> list[Taken]:
        """Own those of the lanes that are free, not paused and not held back, whatever their `wake_at`."""

    async def load(self, wants: Sequence[Want], *, known: Sequence[DeliveryId], now: float) -> list[Loaded]:
        """Pending deliveries of the lanes that are not in `known`: ready by seq, then timed that are due, by due time."""

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

        A delivery moves only from pending with `attempts = number - 1` and the same `replays`, only while this
        worker is not buried and owns the lane in that epoch. The attempt is inserted in any case, once. An endpoint that
        is gone is disabled with the delivery that it was asked for, unless it was changed since it was asked.
        """

    async def note(self, worker: WorkerId, notes: Sequence[LaneNote], *, now: float) -> list[EndpointId]:
        """Fenced: write notes down by themselves (a probe before it is sent, a reset); those that were still owned."""

    async def mark(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """Fenced: count one mark more on pending deliveries before they are sent; those that were marked."""

    async def condemn(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """Fenced: pending -> dead (`crash_limit`), without an attempt; those that are dead now."""

    async def release(self, worker: WorkerId, releases: Sequence[Release], *, now: float) -> list[EndpointId]:
        """Fenced: let lanes go; those that were let go. The caller then wakes the same lanes (RECHECK)."""

    async def wake(self, lanes: Sequence[EndpointId], *, now: float) -> None:
        """Lower `wake_at` of those lanes that are free to what their rows ask for; waits for row locks, in order."""

    # workers

    async def register(self, worker: WorkerRow) -> None:
        """Add the process to `workers`."""

    async def beat(self, worker: WorkerId, load: Load, *, now: float) -> bool:
        """Count up; False when the worker is buried (or gone)."""

    async def pulse(self, *, seen: int, worker: WorkerId | None = None) -> Pulse:
        """The store's time, all workers, the changes after number `seen`, when the first free lane wakes.

        Where sessions end with their process, the one that a registered `worker` asks on holds a lock for it, from its
        registration on and again after each reconnect.
        """

    async def list_workers(self, *, after: WorkerId | None, limit: int) -> list[WorkerRow]:
        """Newest first, from below the id `after`, buried ones too."""

    async def owned(self, worker: WorkerId) -> list[Taken]:
        """The lanes that name this worker as owner (`woke_at` is then their `wake_at`)."""

    async def bury(self, worker: WorkerId, *, beat: int, now: float) -> bool:
        """Declare a worker dead if its beat is still this one; True when it is buried now (or was before)."""

    async def free(self, worker: WorkerId, *, now: float) -> list[EndpointId]:
        """Take up to FREE_CHUNK lanes from a buried worker: epoch + 1, suspect, asleep. The caller wakes them."""

    async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
        """Wake, among the next SWEEP_CHUNK lanes after this id, the free ones; the id to go on from, None at the end."""

    async def retire(self, worker: WorkerId) -> None:
        """Delete the worker's row, if no lane names it."""

    # operators: each writes its rows and one change

    async def create_endpoint(self, endpoint: Endpoint, *, now: float) -> None:
        """Add an endpoint and its lane."""

    async def update_endpoint(self, endpoint: Endpoint, *, was: float, now: float) -> bool:
        """Replace the endpoint read with `updated_at = was`; the lane of one disabled or paused is paused.

        False when it is gone, or was changed meanwhile.
        """

    async def delete_endpoint(self, endpoint: EndpointId, *, now: float) -> bool:
        """Delete an endpoint, leaving a paused tombstone of its lane; its pending rows are cancelled by `cancel_deleted`."""

    async def cancel_deleted(self, *, limit: int, now: float) -> int:
        """Cancel up to `limit` pending deliveries of deleted endpoints (`endpoint_deleted`); how many there were."""

    async def retry(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """A pending delivery becomes due now, its count goes on. NotFound, WrongState."""

    async def cancel(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """pending -> cancelled. NotFound, WrongState."""

    async def redrive(self, delivery: DeliveryId, *, now: float) -> EndpointId:
        """dead, delivered or cancelled -> pending: attempts 0, due now, replays + 1, a death kept as `last_death`. NotFound, WrongState."""

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
        """Redrive those of an event's deliveries that are in one of the states (never pending ones)."""

    async def reset_circuit(self, endpoint: EndpointId, *, now: float) -> bool:
        """Ask the lane's owner to close its circuit; a free lane is made to be taken. False when there is none."""

    async def create_job(self, job: Job, *, now: float) -> Job:
        """Start a job, its `matched` counted before that; the first one's job if its account used the idempotency key for its kind."""

    async def advance_job(self, job: JobId, *, limit: int, now: float) -> JobStep | None:
        """Do up to `limit` of a running job's dead letters, by id; in one transaction with its progress.

        None when the job is not running, or another process is at it. A job whose row cannot be read is failed.
        """

    async def fail_job(self, job: JobId, *, reason: str, now: float) -> bool:
        """running -> failed, for this reason; what was done stays done. False when it is not running."""

    async def running_jobs(self) -> list[JobId]:
        """Jobs that are not finished, oldest first."""

    # reading

    async def job(self, job: JobId) -> Job | None:
        """One job."""

    async def list_jobs(
        self, kind: JobKind, *, account: str | None = None, after: JobId | None, limit: int
    ) -> list[Job]:
        """Newest first, from below the id `after`; with an account those that it asked for."""

    async def count_dead(self, filter: DeliveryFilter) -> int:
        """How many dead letters match."""

    async def lanes(self, ids: Sequence[EndpointId]) -> list[LaneRow]:
        """Those of them that exist."""

    async def catalogue(self) -> EndpointSnapshot:
        """All endpoints and the change number they include, in one snapshot."""

    async def endpoints_by_id(self, ids: Sequence[EndpointId]) -> list[Endpoint]:
        """Those of them that exist."""

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
