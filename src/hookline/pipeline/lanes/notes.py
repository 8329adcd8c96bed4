"""Stores what the next owner of a lane must know.

Settlements carry most notes. Probes, releases and upkeep write the others, each on a session of its own. Only one write
of a lane's note is under way at a time: if there were two, the older one could come last and undo what the newer one
wrote, such as that a probe is sent, or that the circuit is open.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from hookline.clock import Clock
from hookline.model import EndpointId, WorkerId
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.refused_rows import write_apart
from hookline.store.contract import Store


class LaneNotes:
    """Writes the notes of owned lanes, one write of each lane at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        worker: Callable[[], WorkerId],
        on_refused: Callable[[Lane, Exception], None],
        announces: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._on_refused = on_refused
        self._announces = announces  # whether somebody listens to own events
        self._under_way: dict[Lane, asyncio.Future[None]] = {}

    async def write(self, lanes: Iterable[Lane]) -> list[EndpointId]:
        """Store the notes of these lanes that no settlement carried; the lanes for which that worked."""
        lanes = list(lanes)
        await self.wait(lanes)
        dirty = [lane for lane in lanes if lane.flow.is_dirty and not lane.is_lost]
        if not dirty:
            return []
        with self.writing(dirty):
            return await write_apart(dirty, self._write, self._refused)

    async def _write(self, lanes: Sequence[Lane]) -> list[EndpointId]:
        versions = [lane.flow.version for lane in lanes]
        written = await self._store.note(
            self._worker(),
            [lane.note() for lane in lanes],
            now=self._clock.now(),
            announce=self._announces(),
        )
        for lane, version in zip(lanes, versions, strict=True):
            lane.flow.wrote(version)
        return written

    async def _refused(self, lane: Lane, error: Exception) -> list[EndpointId]:
        """Its next owner will not know; this one does, and stores it when it changes, or later."""
        if lane.flow.refused():
            self._on_refused(lane, error)
        return []

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
