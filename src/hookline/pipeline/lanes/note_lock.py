"""Allows only one write of a lane's note at a time.

Settlements, probes, releases and upkeep all write notes, each on a session of its own. If two were under way together,
the older one could come last and undo what the newer one wrote: that a probe is sent, or that the circuit is open.
"""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from hookline.pipeline.lanes.lane import Lane


class NoteTurns:
    """The lanes whose notes are being written."""

    def __init__(self) -> None:
        self._under_way: dict[Lane, asyncio.Future[None]] = {}

    async def wait(self, lanes: Collection[Lane]) -> None:
        """Wait until no note of these lanes is being written; the caller must begin in the same step of the loop."""
        while under_way := [self._under_way[lane] for lane in lanes if lane in self._under_way]:
            await asyncio.wait(under_way)

    def are_free(self, lanes: Collection[Lane]) -> bool:
        """Whether no note of these lanes is being written."""
        return not self._under_way or not any(lane in self._under_way for lane in lanes)

    @contextmanager
    def writing(self, lanes: Collection[Lane]) -> Iterator[None]:
        """Around a write of these lanes' notes."""
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
