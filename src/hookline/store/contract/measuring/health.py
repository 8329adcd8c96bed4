"""Defines how a store counts what waits and what is dead.

A part of the contract: see `store.contract` for what holds for every verb. One process counts for all and stores the
result (the look). Everybody else reads it, however many deliveries there are.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.model import EndpointId

LOOK = "look"  # the name of the periodic task
LOOK_EVERY = 5.0  # seconds between two looks
LOOK_TIMES = 20.0  # or times as long as the last one took: at most a twentieth of the time is spent counting
SAMPLES_KEPT_S = 86_400.0  # for so long one sample a minute is kept
FAILED_WITHIN_S = 3_600.0  # failures of deliveries created in this time are counted apart


class EndpointCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint has waiting and dead, as of the last look."""

    endpoint_id: EndpointId
    pending: int = 0  # not attempted yet, since its creation or its last replay
    awaiting_retry: int = 0
    dead: int = 0
    failed_last_hour: int = 0  # created in the last hour, and awaiting a retry or dead
    oldest_pending: float | None = None  # when the oldest of the first two was created
    oldest_due: float | None = None  # when the oldest of them that is due and not held back became due


class HealthSample(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one look."""

    at: float
    took: float  # seconds
    pending: int = 0
    awaiting_retry: int = 0
    dead: int = 0
    failed_last_hour: int = 0
    oldest_pending: float | None = None
    oldest_due: float | None = None


class AttemptTotals(msgspec.Struct, frozen=True):
    """The sums of some time's attempts; late ones count for nothing."""

    attempts: int = 0
    accepted: int = 0
    seconds: float = 0.0  # of all responses
    rest: tuple[bytes, ...] = ()  # encoded counts of everything but the responses, minute by minute


class HealthStore(Protocol):
    """The verbs about health."""

    async def look(self, *, now: float, held: Sequence[EndpointId] = ()) -> HealthSample | None:
        """Count everything that waits or is dead, and store it; None: it is not time, or another process does it.

        `held` are lanes whose owner says that a limit holds them back: nothing of theirs is overdue. Lanes that are
        paused or held back in the store are left out in any case.
        """

    async def health_samples(self, *, since: float) -> list[HealthSample]:
        """The stored samples from this time on, oldest first: one a minute for a day, and the newest."""

    async def endpoint_counts(self, ids: Sequence[EndpointId]) -> list[EndpointCounts]:
        """The stored counts of these endpoints, by id; those with nothing waiting or dead have none."""

    async def all_counts(self, *, after: EndpointId | None, limit: int) -> list[EndpointCounts]:
        """The stored counts, newest endpoint first, from below the id `after`."""

    async def account_counts(self, account: str) -> EndpointCounts:
        """The sum of the stored counts of an account's endpoints, under the id of no endpoint."""

    async def open_circuits(self, *, account: str | None = None) -> int:
        """The number of endpoints whose circuit is not closed, of one account or of all."""

    async def attempt_totals(self, *, since: float, account: str | None = None) -> AttemptTotals:
        """The sums of the stored minutes that began at this time or later, of one account or of all."""


def next_look(*, now: float, took: float) -> float:
    """When to look again."""
    return now + max(LOOK_EVERY, LOOK_TIMES * took)
