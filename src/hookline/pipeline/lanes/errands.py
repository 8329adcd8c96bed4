"""Runs the questions to the store that a lane must have answered before it sends more.

Examples are where a strict lane's head waits now, and that a circuit's probe is about to be sent. A lane has one such
task at a time, and a lost lane has none. However a task ends, its lane continues.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.model import State
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.ownership import Ownership
from hookline.store.contract import Store

_REST = 1.0  # seconds before a lane whose errand died has another one

log = structlog.get_logger()


class Errands:
    """The errands under way."""

    def __init__(
        self,
        store: Store,
        ownership: Ownership,
        clock: Clock,
        *,
        nudge: Callable[[Lane], None],
        offer: Callable[[Lane], None],
    ) -> None:
        self._store = store
        self._ownership = ownership
        self._clock = clock
        self._nudge = nudge
        self._offer = offer
        self._running: dict[Lane, asyncio.Task[None]] = {}

    @property
    def tasks(self) -> Iterable[asyncio.Task[None]]:
        return self._running.values()

    def is_out(self, lane: Lane) -> bool:
        """Is an errand of the lane under way?"""
        return lane in self._running

    def run(self, lane: Lane, errand: Coroutine[None, None, None]) -> None:
        """Run it beside everything else, unless another one of the lane is under way."""
        if lane in self._running:
            errand.close()
            return

        async def run() -> None:
            try:
                await errand
            except (StoreUnavailable, StoreRefused) as error:
                log.debug("errand.failed", error=str(error))
                self._give_up(lane)
            except Exception:
                # Nobody thought of it. After a rest the lane reads what it has to send again, and it is tried anew.
                log.exception("errand.failed", endpoint_id=ids.show("endpoint", lane.endpoint_id))
                await self._clock.sleep(_REST)
                self._give_up(lane)
                self._nudge(lane)
            finally:
                del self._running[lane]

        def forget(task: asyncio.Task[None]) -> None:
            """Also one that was cancelled before its first step."""
            if self._running.get(lane) is task:
                errand.close()
                del self._running[lane]

        task = self._running[lane] = asyncio.get_running_loop().create_task(run())
        task.add_done_callback(forget)

    def _give_up(self, lane: Lane) -> None:
        lane.is_careful = False
        lane.forget_unsent()

    def call_off(self, lane: Lane) -> None:
        """Nobody needs the lane's errand any more, if there is one."""
        errand = self._running.get(lane)
        if errand is not None:
            errand.cancel()

    def look_at_head(self, lane: Lane) -> None:
        """An operator may have moved the delivery that a strict lane waits for, or given up the order."""
        self.run(lane, self._look_at_head(lane))

    async def _look_at_head(self, lane: Lane) -> None:
        head, believed = lane.flow.head, lane.flow.head_due
        if head is None or (lane.is_strict and head in lane.known):
            return  # under way: its settlement says what becomes of it
        found = await self._store.delivery(head) if lane.is_strict else None
        if lane.lost or (lane.flow.head, lane.flow.head_due) != (head, believed):
            return  # it was sent meanwhile, and what was read is older than what is known here
        # One that starts over is no head: it takes its turn with all others.
        if found is not None and found.state is State.PENDING and found.attempts:
            lane.flow.look_again(head, until=found.due_at)
        else:
            lane.flow.look_again(None)
        self._nudge(lane)
        self._offer(lane)

    def probe(self, lane: Lane) -> None:
        """The lane's circuit asks for a probe, and there is something to send."""
        if not lane.is_suspect:  # else it is sent with care, and the probe is seen to there
            self.run(lane, self.prepare_probe(lane))

    async def prepare_probe(self, lane: Lane) -> None:
        """Write down that a probe is sent, then let it through."""
        await self._ownership.note_turns.wait([lane])
        if lane.lost or not lane.flow.wants_probe():
            return  # meanwhile
        lane.flow.begin_probe()
        written = await self._ownership.write_notes([lane])
        if lane.endpoint_id in written and not lane.lost:
            lane.flow.grant_probe()
            self._offer(lane)
