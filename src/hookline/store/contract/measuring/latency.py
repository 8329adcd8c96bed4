"""Defines how a store keeps the latencies of attempts.

A part of the contract: see `store.contract` for what holds for every verb. A settle logs its attempts in its own commit
(`LatencyLog`). The worker adds them up in memory and replaces the log by minutes (`flush_latencies`); if it dies first,
whoever buries it does that (`fold_latencies`). So every attempt that counts is either in the log or in a minute, and
never in both. Minutes become hours. What the counts mean is the caller's business (`LatencyMath`).
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.model import EndpointId, WorkerId

EVERY_ENDPOINT = EndpointId(bytes(16))  # in place of an endpoint: the sum of all
FOLD_CHUNK = 10  # logged batches folded in one transaction
ROLL_CHUNK = 10  # endpoints whose hours are added up in one transaction
MINUTES_KEPT = 48 * 3_600.0  # seconds; then there are only hours
HOURS_KEPT = 90 * 86_400.0
# Seconds after the end of an hour until it is added up; whoever writes one of its minutes later adds it up again.
ROLL_AFTER = 120.0
ROLL_TASK = "latency_hours"
DAYS_TASK = "latency_days"


class LatencyLog(msgspec.Struct, frozen=True):
    """The attempts of a batch of settlements, in its order, as they are logged with it."""

    n: int  # of the worker's batches; a batch that is sent again keeps it
    minute: float  # when it was first sent
    samples: bytes


class LoggedBatch(msgspec.Struct, frozen=True):
    """A batch as it is in the log of a dead worker."""

    minute: float
    samples: bytes
    late: tuple[int, ...]  # positions of the attempts that were not settled by this batch


class LatencyCell(msgspec.Struct, frozen=True):
    """The attempts of an endpoint in one minute or hour."""

    endpoint_id: EndpointId
    at: float  # when the minute or the hour began
    seconds: float  # of all response times together
    attempts: int
    accepted: int
    response: bytes  # encoded counts of the response times; compressed in an hour
    rest: bytes  # of everything else


class LatencyPart(msgspec.Struct, frozen=True):
    """A minute or an hour of a window."""

    cell: LatencyCell
    is_hour: bool


class LatencyDay(msgspec.Struct, frozen=True, kw_only=True):
    """The percentiles of an endpoint's response times over 24 hours, in seconds."""

    endpoint_id: EndpointId
    as_of: float
    attempts: int
    accepted: int
    p50: float | None
    p95: float | None
    p99: float | None


class LatencySlice(msgspec.Struct, frozen=True):
    """The endpoints of one step of a task, and the one to continue after; None: the task is done."""

    endpoints: tuple[EndpointId, ...]
    after: EndpointId | None


class LatencyMath(Protocol):
    """How counts are read and added up."""

    def cells(self, batches: Sequence[LoggedBatch]) -> list[LatencyCell]:
        """The minutes of logged batches."""

    def hour(self, minutes: Sequence[LatencyCell], before: LatencyCell | None = None) -> LatencyCell:
        """The hour that these minutes of one endpoint belong to, added to `before`."""


class LatencyStore(Protocol):
    """The verbs about latencies."""

    async def new_latency_source(self) -> int:
        """A number under which a worker writes minutes; never given twice."""

    async def flush_latencies(
        self,
        worker: WorkerId,
        cells: Sequence[LatencyCell],
        *,
        source: int,
        n: int,
        math: LatencyMath,
        now: float,
    ) -> bool:
        """Fenced, in one commit: replace these minutes of the source, and delete the worker's log up to batch `n`.

        Cells are whole, never differences: writing them again changes nothing. False: the worker is buried, and its log
        is folded by others.
        """

    async def fold_latencies(self, worker: WorkerId, *, math: LatencyMath, now: float) -> bool:
        """Turn up to FOLD_CHUNK logged batches of a buried worker into minutes of a new source; False: none is left."""

    async def roll_latencies(
        self, *, after: EndpointId | None, math: LatencyMath, now: float, next_at: float
    ) -> LatencySlice | None:
        """Add up the ended hours of the next ROLL_CHUNK endpoints, and delete what is kept no longer.

        None: it is not due, or another process is at it. After its last step the task is due at `next_at`.
        """

    async def claim_latency_days(
        self, *, after: EndpointId | None, limit: int, now: float, next_at: float
    ) -> LatencySlice | None:
        """The ones of the next `limit` endpoints whose day is to be reckoned again; None as in `roll_latencies`."""

    async def write_latency_days(self, days: Sequence[LatencyDay]) -> None:
        """Store these days; one of an endpoint without attempts is deleted."""

    async def latency_window(
        self, endpoints: Sequence[EndpointId], *, since: float, until: float, is_response_only: bool = False
    ) -> list[LatencyPart]:
        """The minutes and hours of these endpoints from `since` to before `until`, oldest first.

        Whole hours that were added up come as such. Nothing is in two parts. `is_response_only` leaves `rest` empty.
        """

    async def latency_days(self, endpoints: Sequence[EndpointId]) -> list[LatencyDay]:
        """The ones of these endpoints that had attempts in their last day."""

    async def slowest(
        self, *, after: tuple[float, EndpointId] | None, above: float, limit: int
    ) -> list[LatencyDay]:
        """Endpoints whose p95 is above so many seconds, slowest first, from below this p95 and id."""
