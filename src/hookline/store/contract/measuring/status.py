"""Defines what a store tells somebody who asks how the installation is.

A part of the contract: see `store.contract` for what holds for every verb. The cost depends on the endpoints, never on
their deliveries: what waits and what is dead was counted before (`look`).
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.model import EndpointId
from hookline.store.contract.measuring.health import EndpointCounts


class FailingCounts(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that fails, with what was attempted lately, and what waits and is dead as of the last look."""

    endpoint_id: EndpointId
    attempts: int  # of the time asked for
    accepted: int
    since: float | None  # the minute of its first attempt that was not accepted after the last one that was
    waiting: int
    dead: int


class FailingSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints that fail, at most as many as asked for."""

    active: int  # all with attempts in the time asked for, or with a circuit that is not closed
    failing: int  # how many of them fail
    endpoints: Sequence[FailingCounts]  # the worst first


class StatusCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Small things that are worth a word."""

    slow: int  # endpoints
    disabled: int  # likewise
    has_events: bool


class StatusStore(Protocol):
    """The verbs about how the installation is."""

    async def failing_endpoints(
        self, *, since: float, fewest: int, limit: int, account: str | None = None
    ) -> FailingSlice:
        """The endpoints whose circuit is not closed, or that accepted under half of at least `fewest` attempts.

        The attempts are those of the minutes that began at `since` or later; an endpoint that accepted all of the
        newest minute is back. Disabled and paused endpoints are left out. Those with the most waiting and dead
        deliveries come first.
        """

    async def worst_endpoints(self, *, limit: int, account: str | None = None) -> list[EndpointCounts]:
        """The stored counts of the endpoints with the most dead letters; of two with as many, what waits decides."""

    async def status_counts(
        self, *, slow_above: float, slow_attempts: int, account: str | None = None
    ) -> StatusCounts:
        """How many endpoints are slow (p95 above so many seconds, of at least so many attempts) or disabled."""
