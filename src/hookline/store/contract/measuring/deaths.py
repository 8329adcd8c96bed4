"""Defines how a store counts dead letters by what they died of, and when.

A part of the contract: see `store.contract` for what holds for every verb.
"""

from typing import Protocol

import msgspec

from hookline.model import DeliveryId, EndpointId, ErrorKind, Reason

DeathPosition = tuple[EndpointId, DeliveryId]
# What stands for a stored cause that cannot be read.
UNKNOWN_DEATH = {"reason": Reason.EXHAUSTED, "error": None}


class DeathCount(msgspec.Struct, frozen=True, kw_only=True):
    """The dead letters of an endpoint that died of the same cause in the same minute."""

    endpoint_id: EndpointId
    reason: Reason
    status: int | None  # of the last attempt
    error: ErrorKind | None
    minute: int  # since 1970
    count: int
    attempts: int  # of all of them together
    at_first_attempt: int  # how many died there
    first_at: float
    last_at: float
    newest: DeliveryId


class DeathSlice(msgspec.Struct, frozen=True):
    """What one step found. Its counts do not include those of other steps, also of the same endpoint and minute."""

    counts: tuple[DeathCount, ...]
    after: DeathPosition | None  # where to continue; None: nothing is left


class DeathStore(Protocol):
    """The verb about causes of death."""

    async def count_deaths(
        self,
        *,
        since: float,
        account: str | None = None,
        endpoint: EndpointId | None = None,
        after: DeathPosition | None = None,
    ) -> DeathSlice:
        """Count the next dead letters that died since then, endpoint by endpoint, from above `after`.

        A step reads a limited number of dead letters, whether they match or not.
        """
