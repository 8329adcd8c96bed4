"""Applies an operator's change to this process at once.

The other processes learn of it with their next heartbeat.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from hookline.errors import StoreUnavailable
from hookline.model import EndpointId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.lanes.handover import Handover


class Changes:
    """Brings the catalogue up to date and lets lanes look again."""

    def __init__(self, catalogue: Catalogue, handover: Handover) -> None:
        self._catalogue = catalogue
        self._handover = handover

    async def tell(self, *lanes: EndpointId) -> None:
        """Something was changed; rows of these lanes were made due or may be sent again."""
        try:
            await self._catalogue.include_own()
        finally:  # the change is stored, whatever becomes of this read
            for lane in lanes:
                self._handover.announce(lane)

    @contextmanager
    def making_due(self, lane: EndpointId | None = None) -> Iterator[None]:
        """Wraps a verb that makes rows of the lane due; None: its answer names the lanes.

        If the answer is lost, the rows may be due all the same, and a repeat may find nothing left to do. So the lane
        is woken, or every free lane is checked: otherwise it would sleep until the next sweep.
        """
        try:
            yield
        except (StoreUnavailable, asyncio.CancelledError):
            if lane is None:
                self._handover.wakes.add_unknown()
            else:
                self._handover.announce(lane)
            raise
