"""Lets one write of what is to be known of a lane be under way at a time.

Settlements, probes, releases and upkeep all write it, each on a session of its own. Of two that are under way together
the older one may come last, and take back what the newer one wrote: that a probe is sent, or that the circuit is open.
"""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from hookline.pipeline.lanes.lane import Lane


class NoteTurns:
    """The lanes of which something is being written down."""

    def __init__(self) -> None:
        self._under_way: dict[Lane, asyncio.Future[None]] = {}

    async def wait(self, lanes: Collection[Lane]) -> None:
        """Wait until none of the lanes is being written; whoever begins in the same step of the loop has its turn."""
        while under_way := [self._under_way[lane] for lane in lanes if lane in self._under_way]:
            await asyncio.wait(under_way)

    def are_free(self, lanes: Collection[Lane]) -> bool:
        """Is none of the lanes being written?"""
        return not self._under_way or not any(lane in self._under_way for lane in lanes)

    @contextmanager
    def writing(self, lanes: Collection[Lane]) -> Iterator[None]:
        """The lanes are being written meanwhile."""
        if not lanes:
            yield
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for lane in lanes:
            self._under_way[lane] = over
        try:
            yield
        finally:
            for lane in lanes:
                del self._under_way[lane]
            over.set_result(None)
