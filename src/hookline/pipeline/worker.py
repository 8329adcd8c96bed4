"""Connects the parts of a delivering process.

It builds them from the bottom up, lets each report to those that wait for it, and starts and stops them.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random

import structlog

from hookline.clock import Clock
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.ids import Ids
from hookline.model import EndpointId
from hookline.pipeline.attempt import Deliverer
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.intake.admission import Admission
from hookline.pipeline.lane_events import LaneEvents
from hookline.pipeline.lane_status import LaneStatus
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.handover import Handover
from hookline.pipeline.lanes.loader import Loader
from hookline.pipeline.lanes.ownership import LaneTaker, Ownership
from hookline.pipeline.lanes.payload_memory import PayloadMemory
from hookline.pipeline.lanes.rebalance import Sharing, Shedding
from hookline.pipeline.maintenance.death_summary import DeathSummary
from hookline.pipeline.maintenance.supervisor import Loop, Supervisor
from hookline.pipeline.maintenance.upkeep import Upkeep
from hookline.pipeline.measuring.latency_tasks import LatencyTasks
from hookline.pipeline.measuring.very_slow import VerySlowEndpoints
from hookline.pipeline.membership.burial import (
    bury,
    sweep,
)
from hookline.pipeline.membership.delivery_rate import RateMeter
from hookline.pipeline.membership.heartbeat import Heartbeat
from hookline.pipeline.membership.notify import Notifier
from hookline.pipeline.sending.contract import Sender
from hookline.pipeline.settle import Settler
from hookline.rules.liveness import DeadWorker
from hookline.store.contract import Change, Load, Notification, Store

log = structlog.get_logger()


class Worker:
    """Brings deliveries; in a process that only publishes (`delivers=False`), wakes those who do."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        heartbeat: Heartbeat,
        sender: Sender,
        clock: Clock,
        ids: Ids,
        rng: Random,
        *,
        canonical: Callable[[str], str],
        slots: int,
        poll: float,
        delivers: bool = True,
        hints: bool = True,
    ) -> None:
        self._store = store
        self._heartbeat = heartbeat
        self._clock = clock
        self._delivers = delivers
        self._is_draining = False
        self._supervisor = Supervisor(heartbeat, clock)
        self.say_refused = heartbeat.on_refused = self._supervisor.say_refused
        self.very_slow = VerySlowEndpoints(store, clock)
        self.ownership = Ownership(store, catalogue, heartbeat, clock, slots=slots, very_slow=self.very_slow)
        memory = PayloadMemory()
        self._deliverer = Deliverer(store, sender, memory, clock, ids, rng, canonical=canonical)
        self.dispatcher = Dispatcher(
            slots, clock, memory=memory, may_send=self._may_send, send=self._deliverer.send
        )
        memory.offer = self.dispatcher.offer
        self.settler = Settler(
            store,
            clock,
            worker=lambda: heartbeat.id,
            notes=self.ownership.notes,
            announces=lambda: catalogue.announces,
        )
        self.latency_tasks = LatencyTasks(store, clock)
        self._pace = RateMeter(clock, lambda: self.settler.delivered)
        self._loader = Loader(
            store,
            clock,
            buffers=self.ownership.buffers,
            poll=poll,
            is_alone=lambda: store.exclusive or all(peer.buried for peer in heartbeat.peers),
        )
        self._taker = LaneTaker(self.ownership, self.dispatcher, heartbeat, clock, delivers=delivers)
        self._notifier = Notifier(
            store,
            clock,
            worker=lambda: heartbeat.id,
            peers=lambda: heartbeat.peers,
            hear=self._heard,
            are_used=hints and not store.exclusive,
        )
        self.handover = Handover(
            store,
            self.ownership,
            self._taker,
            self._loader,
            self.dispatcher,
            heartbeat,
            clock,
            on_woken=self._notifier.woken,
        )
        self.admission = Admission(self.ownership.lanes)
        self.status = LaneStatus(self.ownership.lanes, self._deliverer.under_way, clock)
        self._upkeep = Upkeep(
            store,
            self.ownership,
            clock,
            shed=Shedding(self.ownership, self.dispatcher, peers=lambda: heartbeat.peers).look,
            share=Sharing(self.ownership, clock, every=2 * heartbeat.interval).look,
            is_draining=lambda: self._is_draining,
            on_refused=self._supervisor.say_refused,
        )
        self._deaths = DeathSummary(clock)
        self.events = LaneEvents(
            store,
            catalogue,
            self.ownership,
            self.dispatcher,
            self._loader,
            self.settler,
            clock,
            on_gone=self._endpoint_gone,
            on_condemned=self._deaths.condemned,
        )
        self._connect(catalogue)

    def _connect(self, catalogue: Catalogue) -> None:
        """Let every part report to the parts that wait for it."""
        events, heartbeat = self.events, self._heartbeat
        self.ownership.on_adopted = events.adopted
        self.ownership.on_kept = events.kept
        self.ownership.on_dropped = events.dropped
        self._loader.on_loaded = events.loaded
        self._loader.on_headless = events.find_head
        self.dispatcher.on_probe = events.wants_probe
        self._deliverer.on_landed = events.landed
        self._deliverer.on_unsent = events.not_sent
        self.settler.on_settled = events.settled
        self.settler.on_aside = events.set_aside
        self.settler.on_dead = self._deaths.settled
        self.settler.on_batch = self._batch_settled
        catalogue.on_change = self._changed
        catalogue.on_own_change = self._notifier.changed
        heartbeat.delivers = self._delivers
        heartbeat.load = self._load
        heartbeat.status = self.status.packed
        heartbeat.on_pulse = self._pulsed
        heartbeat.on_buried = self._buried
        heartbeat.on_dead = self._bury

    # --- life ---

    async def start(self, *also: Loop, always: Sequence[Loop] = ()) -> None:
        """Recover what others left, then work, and run the other loops beside it: `also` if this process delivers."""
        await self._heartbeat.start()
        await sweep(self._store, self._clock)
        await self._heartbeat.look()
        loops: list[Loop] = [
            self._heartbeat.run_pulse,
            self._heartbeat.run_beat,
            self.handover.wakes.run,
            *always,
        ]
        loops += self._notifier.loops(delivers=self._delivers)
        if self._delivers:
            await self.very_slow.look()  # before the first lane is taken
            loops += [
                self._loader.run,
                self.settler.run,
                self.dispatcher.run_alarms,
                self._taker.run,
                self._upkeep.run,
                self._upkeep.run_beside,
                self.latency_tasks.run,
                self.very_slow.run,
                self.events.recovery.run,
                self._deaths.run,
                *also,
            ]
        self._supervisor.start(loops)

    def tell_others(self) -> None:
        """Have the other workers pulse now."""
        self._notifier.changed()

    def begin_to_leave(self) -> None:
        """Take and send nothing more from now on; what is published meanwhile is left to others."""
        self._is_draining = True
        self._taker.close()
        self.handover.close()

    async def stop(self, *, within: float, close: Loop) -> bool:
        """Stop taking, finish what is under way, release every lane; says whether all of it was done in time.

        `close` ends what the other loops do that makes deliveries due: their lanes are woken before the end too.
        """
        self.begin_to_leave()
        try:
            async with asyncio.timeout(within):
                await self._drain(close)
                await self._heartbeat.stop()
            return True
        except (TimeoutError, StoreUnavailable, StoreRefused) as error:
            log.warning(
                "worker.undrained",
                in_flight=self.dispatcher.in_flight,
                lanes=len(self.ownership.lanes),
                error=str(error) or "time is up",
            )
            return False
        finally:
            tasks = [*self._supervisor.tasks, *self.events.tasks.all]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._deliverer.close()
            self._deaths.flush()

    async def _drain(self, close: Loop) -> None:
        await self._release_all()
        if self._delivers:
            await self.settler.drain()
        await close()
        await self.handover.wakes.flush()
        await self._taker.rest()
        await self._release_all()  # takes that were under way may have brought some more

    async def _release_all(self) -> None:
        lanes = self.ownership.lanes
        while lanes:
            self.events.progress.clear()
            await self.ownership.release(list(lanes.values()))
            if lanes:
                await self.events.progress.wait()

    # --- what the parts report ---

    def _may_send(self) -> bool:
        return not self._is_draining and self._heartbeat.is_fresh()

    def _batch_settled(self) -> None:
        self._loader.has_room()
        self.admission.has_room.set()
        self.events.progress.set()

    def _endpoint_gone(self) -> None:
        """The endpoint is disabled: seen by the next look here, and by the others when they are told."""
        self._heartbeat.nudge()
        self._notifier.changed()

    def _heard(self, hint: Notification) -> None:
        """Do now what the next poll, take and pulse would do."""
        held = self.ownership.lanes
        named = list(held) if hint.is_every_lane else hint.lanes
        for id in named:
            lane = held.get(id)
            if lane is not None:
                self._loader.nudge(lane)
        if hint.is_every_lane or any(id not in held for id in named):
            self._taker.nudge()
        if hint.is_change:
            self._heartbeat.nudge()

    def _changed(self, endpoint: EndpointId, changes: Sequence[Change]) -> None:
        self.handover.wakes.forget(endpoint)
        self.events.changed(endpoint, changes)

    def _pulsed(self) -> None:
        self._taker.pulsed()
        self.events.pulsed()

    def _buried(self) -> None:
        for endpoint in self.ownership.drop_all():
            self.handover.wakes.add(endpoint)

    async def _bury(self, dead: Sequence[DeadWorker]) -> None:
        await bury(self._store, self._clock, dead, on_freed=self._taker.nudge)

    def _load(self) -> Load:
        return Load(
            lanes=len(self.ownership.lanes),
            in_flight=self.dispatcher.in_flight,
            free_slots=self.dispatcher.slots - self.dispatcher.in_flight if self._taker.is_open else 0,
            waiting=len(self.dispatcher.waiting),
            draining=self._is_draining,
            delivered_per_s=self._pace.per_s(),
        )
