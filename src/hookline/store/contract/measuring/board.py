"""Defines what a store tells about all endpoints at once.

A part of the contract: see `store.contract` for what holds for every verb. Attempts are summed from the counters of
stored minutes and hours; no histogram is read.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.model import CircuitState, EndpointId


class BoardFigures(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An endpoint in a few columns: what was set, and how it does. What cannot be read has a stand-in."""

    endpoint_id: EndpointId
    account: str
    url: str
    description: str
    events: tuple[str, ...]
    enabled: bool
    paused: bool
    disabled_reason: str | None
    circuit: CircuitState  # closed, where the endpoint has no circuit breaker
    opened_at: float | None
    probe_at: float | None
    waiting: int  # pending or awaiting a retry, as of the last look
    dead: int
    attempts_24h: int
    p95_24h: float | None  # seconds
    attempts_1h: int
    accepted_1h: int
    attempts_15m: int
    accepted_15m: int
    is_back: (
        bool  # in the newest minute of the 15 it accepted everything, or something and has not failed since
    )


class HourAttempts(msgspec.Struct, frozen=True):
    """The attempts of an endpoint in one hour."""

    endpoint_id: EndpointId
    at: float  # when the hour began
    attempts: int
    accepted: int


class BoardStore(Protocol):
    """The verbs about all endpoints at once."""

    async def board_figures(
        self,
        *,
        after: EndpointId | None,
        limit: int,
        hour: float,
        quarter: float,
        account: str | None = None,
    ) -> list[BoardFigures]:
        """The next endpoints above the id `after`, by id, of one account or of all.

        The attempts are those of the minutes that began at `hour` and at `quarter` or later.
        """

    async def hourly_attempts(
        self, endpoints: Sequence[EndpointId], *, since: float, until: float
    ) -> list[HourAttempts]:
        """The attempts of these endpoints in each hour that has any, by endpoint and time.

        `since` is the beginning of an hour. Nothing is counted twice: hours that were added up come as such, the others
        from their minutes.
        """
