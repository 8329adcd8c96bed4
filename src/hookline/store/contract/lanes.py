"""Defines how a store keeps lanes and what their owners do with them.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from hookline.model import (
    CLOSED,
    LONG_AGO,
    Attempt,
    Circuit,
    DeliveryId,
    EndpointId,
    Queue,
    Reason,
    State,
    WorkerId,
)
from hookline.store.contract.measuring.latency import LatencyLog

SWEEP_CHUNK = 2_000  # lanes checked in one transaction of a sweep
GONE = "The endpoint answered 410 Gone."
INLINE_PAYLOAD_BYTES = 16_384  # larger payloads are read when the delivery gets its slot


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
    copies: int = 0  # of the taker's copies, how many nobody has touched since their commit


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
    trace: str | None = None  # likewise


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """An attempt that was made, with the new state of its delivery."""

    attempt: Attempt
    endpoint_id: EndpointId
    epoch: int  # of the lane when the attempt was made
    state: State
    due_at: float  # pending: when to try again
    reason: Reason | None = None
    gone: float | None = None  # the receiver answered "gone": `updated_at` of the endpoint that was asked
    waited_since: float | None = None  # when this attempt was due; only measured
    published_at: float | None = (
        None  # when the first attempt was due; None: not measured, such as for a replay
    )


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


class LaneRow(msgspec.Struct, frozen=True):
    """A lane as it is stored."""

    endpoint_id: EndpointId
    owner: WorkerId | None
    hold_until: float
    head: DeliveryId | None
    circuit: Circuit
    rest_until: float = LONG_AGO  # the receiver's Retry-After, which `hold_until` includes


class LaneStore(Protocol):
    """The verbs about lanes."""

    async def take(self, worker: WorkerId, *, limit: int, now: float) -> list[Taken]:
        """Take up to `limit` free lanes whose `wake_at` has come, earliest first; epoch + 1. None when buried."""

    async def take_these(
        self,
        worker: WorkerId,
        lanes: Sequence[EndpointId],
        *,
        copies: Sequence[DeliveryId] = (),
        now: float,
    ) -> list[Taken]:
        """Take the ones of these lanes that are free, not paused and not held back, whatever their `wake_at`.

        `copies` are deliveries of these lanes that the caller has in memory since their commit.
        """

    async def owned(self, worker: WorkerId) -> list[Taken]:
        """The lanes that name this worker as owner (`woke_at` is then their `wake_at`)."""

    async def load(self, wants: Sequence[Want], *, known: Sequence[DeliveryId], now: float) -> list[Loaded]:
        """Pending deliveries of the lanes except `known`: ready ones by seq, then timed ones that are due, by time."""

    async def settle(
        self,
        worker: WorkerId,
        batch: Sequence[Settlement],
        *,
        notes: Sequence[LaneNote] = (),
        log: LatencyLog | None = None,
        now: float,
        announce: bool = False,
    ) -> list[Verdict]:
        """Fenced: attempt, delivery and the lanes' notes in one commit; one verdict for each settlement, in order.

        A delivery moves only from pending with `attempts = number - 1` and the same `replays`, and only while this
        worker is not buried and owns the lane in that epoch. The attempt is inserted in any case, once. An endpoint
        that is gone is disabled together with the delivery that found it gone, unless the endpoint was changed since
        the request. The log is kept once for each `n` of a worker that is not buried, with the positions of the
        settlements that were not applied by this very call. To announce is to write an announcement, in the same
        commit, of each death, of each endpoint that was disabled and of each circuit that a note opens or closes;
        none of a repeat, and none about the account `hookline`.
        """

    async def note(
        self, worker: WorkerId, notes: Sequence[LaneNote], *, now: float, announce: bool = False
    ) -> list[EndpointId]:
        """Fenced: store notes alone (a probe before it is sent, a reset); the lanes that were still owned.

        Announces circuits like `settle`.
        """

    async def mark(self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float) -> list[DeliveryId]:
        """Fenced: add one mark to pending deliveries before they are sent; the ones that were marked."""

    async def condemn(
        self, worker: WorkerId, suspects: Sequence[Suspect], *, now: float, announce: bool = False
    ) -> list[DeliveryId]:
        """Fenced: pending -> dead (`crash_limit`), without an attempt; those that are dead now.

        Announces deaths like `settle`.
        """

    async def release(self, worker: WorkerId, releases: Sequence[Release], *, now: float) -> list[EndpointId]:
        """Fenced: release lanes; the ones that were released. The caller then wakes the same lanes (RECHECK)."""

    async def wake(self, lanes: Sequence[EndpointId], *, now: float) -> None:
        """Lower `wake_at` of the free ones of these lanes to what their rows need; waits for row locks, in order."""

    async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
        """Wake the free ones of the next SWEEP_CHUNK lanes after this id; the id to continue from, None at the end."""

    async def lanes(self, ids: Sequence[EndpointId]) -> list[LaneRow]:
        """The ones of these that exist."""
