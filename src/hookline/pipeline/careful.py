"""How is a lane sent whose last owner died?

What killed the owner may be one of the lane's own deliveries. Its suspects are marked in the store just before
they are sent: together, in small groups, or alone in the whole worker, by how many marks they had. One that
carries four marks goes dead; the rest of the lane then goes on as usual.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.model import DeliveryId, WorkerId
from hookline.pipeline.lane import Lane
from hookline.rules.suspicion import plan
from hookline.store.contract import Loaded, Store

_GROUPS_AT_ONCE = (
    4  # of all lanes: whoever is under way when the worker dies again goes alone after that, which takes long
)

log = structlog.get_logger()


class Careful:
    """Sends suspects."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        worker: Callable[[], WorkerId],
        probe: Callable[[Lane], Awaitable[None]],
        offer: Callable[[Lane], None],
        alone: Callable[[Lane, Awaitable[None]], Awaitable[None]],
        on_done: Callable[[Lane], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._probe = probe  # lets one through where the circuit asks for a probe
        self._offer = offer
        self._alone = alone
        self._on_done = on_done
        self._some_groups = asyncio.Semaphore(_GROUPS_AT_ONCE)
        self._one_alone = asyncio.Lock()
        self._open: dict[DeliveryId, asyncio.Event] = {}

    def settled(self, id: DeliveryId) -> None:
        """A delivery was settled, or is no longer this worker's."""
        event = self._open.pop(id, None)
        if event is not None:
            event.set()

    async def send(self, lane: Lane) -> None:
        """Send the suspects that were loaded into the lane, then let it go on as usual."""
        suspects = lane.set_aside()
        if lane.is_strict:
            suspects = _first(lane, suspects)
        plans = plan(suspects)
        condemned = cast("Sequence[Loaded]", plans.condemned)
        if condemned:
            dead = await self._store.condemn(
                self._worker(), [lane.suspect(each) for each in condemned], now=self._clock.now()
            )
            for each in condemned:
                lane.forget_aside(each.id)
            log.warning("delivery.condemned", deliveries=[ids.show("delivery", id) for id in dead])
        await self._send(lane, cast("Sequence[Loaded]", plans.together))
        for group in plans.groups:
            async with self._some_groups:
                await self._send(lane, cast("Sequence[Loaded]", group))
        for each in cast("Sequence[Loaded]", plans.alone):
            async with self._one_alone:
                await self._alone(lane, self._send(lane, [each]))
        lane.end_care()
        self._on_done(lane)

    async def _send(self, lane: Lane, group: Sequence[Loaded]) -> None:
        """Mark these, then send them, then wait until they are settled.

        Only those about to be sent are marked: a delivery that never got its turn is no more suspect than before.
        """
        suspects = [lane.suspect(each) for each in group if each.id in lane.known]
        if not suspects:
            return
        marked = set(await self._store.mark(self._worker(), suspects, now=self._clock.now()))
        events = []
        for each in reversed(group):
            if each.id not in marked:
                lane.forget_aside(each.id)  # somebody else settled or cancelled it
                continue
            event = self._open[each.id] = asyncio.Event()
            events.append(event)
            lane.push_back(each)
        if lane.gate.wants_probe():
            await self._probe(lane)
        self._offer(lane)
        for event in events:
            await event.wait()


def _first(lane: Lane, suspects: list[Loaded]) -> list[Loaded]:
    """In strict order only one was under way, and none may go before it, however few marks it has."""
    head = [each for each in suspects if each.id == lane.gate.head]
    first = head or suspects[:1]
    for each in suspects:
        if each not in first:
            lane.forget_aside(each.id)
    return first
