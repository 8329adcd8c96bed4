"""Connects the parts of a delivering process.

Lanes, dispatcher, sender and settler report here, and this passes on what they report.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random

import structlog

from hookline.clock import Clock
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.ids import Ids
from hookline.model import EndpointId, State
from hookline.pipeline.attempt import Deliverer
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.catalogue.host_limits import Host
from hookline.pipeline.intake.admission import Admission
from hookline.pipeline.lanes.crash_recovery import CrashRecovery
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.errands import Errands
from hookline.pipeline.lanes.handover import Handover
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.loader import Loader
from hookline.pipeline.lanes.ownership import LaneTaker, Ownership
from hookline.pipeline.lanes.payload_memory import PayloadMemory
from hookline.pipeline.lanes.rebalance import Sharing, Shedding
from hookline.pipeline.lanes.status import LaneStatus
from hookline.pipeline.maintenance.supervisor import Loop, Supervisor
from hookline.pipeline.maintenance.upkeep import Upkeep
from hookline.pipeline.membership.dead_workers import (
    bury,
    sweep,
)
from hookline.pipeline.membership.delivery_rate import RateMeter
from hookline.pipeline.membership.heartbeat import Heartbeat
from hookline.pipeline.membership.notify import Notifier
from hookline.pipeline.sending.contract import Sender
from hookline.pipeline.settle import Settler
from hookline.rules.liveness import DeadWorker
from hookline.rules.slots import LaneHealth
from hookline.store.contract import Change, Load, Loaded, Notification, Settlement, Store, Verdict

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
        self._catalogue = catalogue
        self._heartbeat = heartbeat
        self._clock = clock
        self._delivers = delivers
        self._is_draining = False
        self._progress = asyncio.Event()  # something landed or was settled: a drain looks again
        self._unsent: dict[Lane, None] = {}  # in the order they came back: one seed, one run
        self._supervisor = Supervisor(heartbeat, clock)
        self.say_refused = heartbeat.on_refused = self._supervisor.say_refused
        self.ownership = Ownership(
            store,
            catalogue,
            heartbeat,
            clock,
            slots=slots,
            on_adopted=self._adopted,
            on_kept=self._kept,
            on_dropped=lambda lane: self._errands.call_off(lane),
        )
        self._notifier = Notifier(
            store,
            clock,
            worker=lambda: heartbeat.id,
            peers=lambda: heartbeat.peers,
            hear=self._heard,
            are_used=hints and not store.exclusive,
        )
        memory = PayloadMemory()
        self._deliverer = Deliverer(
            store,
            sender,
            memory,
            clock,
            ids,
            rng,
            canonical=canonical,
            on_landed=self._landed,
            on_unsent=self._not_sent,
        )
        self.dispatcher = Dispatcher(
            slots,
            clock,
            memory=memory,
            may_send=self._may_send,
            send=self._deliverer.send,
            probe=lambda lane: self._errands.probe(lane),
        )
        memory.offer = self.dispatcher.offer
        self.settler = Settler(
            store,
            clock,
            worker=lambda: heartbeat.id,
            on_settled=self._settled,
            on_batch=self._batch_settled,
            on_aside=self._set_aside,
            write_notes=self.ownership.write_notes,
            note_turns=self.ownership.note_turns,
        )
        self._pace = RateMeter(clock, lambda: self.settler.delivered)
        self._loader = Loader(
            store,
            clock,
            buffers=self.ownership.buffers,
            poll=poll,
            is_alone=lambda: store.exclusive or all(peer.buried for peer in heartbeat.peers),
            on_loaded=self._loaded,
            on_headless=lambda lane: self._errands.look_at_head(lane),
        )
        self._errands = Errands(
            store, self.ownership, clock, nudge=self._loader.nudge, offer=self.dispatcher.offer
        )
        self._taker = LaneTaker(self.ownership, self.dispatcher, heartbeat, clock, delivers=delivers)
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
        self._crash_recovery = CrashRecovery(
            store,
            clock,
            slots=slots,
            worker=lambda: heartbeat.id,
            probe=self._errands.prepare_probe,
            offer=self.dispatcher.offer,
            alone=self.dispatcher.alone,
            on_done=self._loader.nudge,
        )
        catalogue.on_change = self._endpoint_changed
        catalogue.on_own_change = self._notifier.changed
        heartbeat.load = self._load
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
            loops += [
                self._loader.run,
                self.settler.run,
                self.dispatcher.run_alarms,
                self._taker.run,
                self._upkeep.run,
                self._upkeep.run_beside,
                self._crash_recovery.run,
                *also,
            ]
        self._supervisor.start(loops)

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
            tasks = [*self._supervisor.tasks, *self._errands.tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._deliverer.close()

    async def _drain(self, close: Loop) -> None:
        lanes = self.ownership.lanes
        while lanes:
            self._progress.clear()
            await self.ownership.release(list(lanes.values()))
            if lanes:
                await self._progress.wait()
        if self._delivers:
            await self.settler.flush()
        await close()
        await self.handover.wakes.flush()

    # --- what the parts report ---

    def _may_send(self) -> bool:
        return not self._is_draining and self._heartbeat.is_fresh()

    def _adopted(self, lane: Lane) -> None:
        lane.on_regraded = self._regraded
        if lane.is_suspect and lane.is_strict and lane.prepared is not None:
            # What the dead owner sent may still be under way: the next one must not overtake it.
            lane.flow.wait_out(self._clock.now() + lane.prepared.endpoint.timeout)
        if lane.flow.head is not None:
            self._errands.look_at_head(lane)
        self._loader.nudge(lane)

    def _regraded(self, lane: Lane, before: LaneHealth) -> None:
        self._loader.regraded(lane, before)
        self.dispatcher.regraded(lane, before)

    def _kept(self, lane: Lane) -> None:
        if lane.has_unsent:
            self._loaded(lane)
        self._loader.nudge(lane)

    def _loaded(self, lane: Lane) -> None:
        if lane.is_suspect:
            if not lane.is_careful and not lane.flow.wants_no_probe_yet() and not self._errands.is_out(lane):
                lane.is_careful = True
                self._errands.run(lane, self._crash_recovery.send(lane))
            return
        if lane.has_unsent:
            lane.active_at = self._clock.monotonic()
            self.dispatcher.offer(lane)

    def _landed(self, lane: Lane, health: LaneHealth, host: Host | None, settlement: Settlement) -> None:
        self.dispatcher.finish(lane, health, host)
        lane.active_at = self._clock.monotonic()
        if settlement.gone is not None:
            lane.stop(asked=settlement.gone)
        is_waiting = lane.is_strict and settlement.state is State.PENDING
        if lane.is_careful and (is_waiting or lane.flow.wants_no_probe_yet()):
            # The circuit opened, or order holds: its other suspects wait with everything else.
            self._errands.call_off(lane)
            lane.is_careful = False
            lane.is_suspect = not lane.is_strict
            lane.forget_unsent()
        if lane.is_strict:
            if is_waiting:
                lane.flow.set_head(settlement.attempt.delivery_id, until=settlement.due_at)
                lane.forget_unsent()  # they go after it, and are read again then
            elif lane.flow.head == settlement.attempt.delivery_id:
                lane.flow.set_head(None)
        self.settler.add(lane, settlement)
        if lane.has_unsent:
            self.dispatcher.offer(lane)
        self.dispatcher.pump()

    def _not_sent(self, lane: Lane, health: LaneHealth, host: Host | None, delivery: Loaded) -> None:
        self.dispatcher.finish(lane, health, host)
        self._progress.set()
        if delivery.id in lane.known and not lane.lost:
            lane.push_back(delivery)
            self._unsent[lane] = None  # offered again by the next good pulse

    def _settled(self, lane: Lane, settlement: Settlement, verdict: Verdict) -> None:
        id = settlement.attempt.delivery_id
        lane.forget(id)
        if lane.lost and verdict is Verdict.LATE:
            return  # it is still to be done, by whoever owns the lane now: that may be this worker, and its turn may have come
        if lane.awaits_head and lane.has_unsent:
            lane.forget_unsent()  # read while the head was under way: it must leave room for it
        if settlement.gone is not None:
            # The endpoint is disabled: seen by the next look here, and by the others when they are told.
            self._heartbeat.nudge()
            self._notifier.changed()
        self._loader.settled(id)
        self._crash_recovery.settled(id)
        if settlement.state is State.PENDING and verdict is not Verdict.LATE:
            self._loader.expect(lane, settlement.due_at)
        if lane.behind and lane.wants_more():
            self._loader.nudge(lane)
        if lane.is_strict:
            self.dispatcher.offer(lane)

    def _set_aside(self, lane: Lane, settlement: Settlement) -> None:
        """Its settlement cannot be written: the lane goes on without it, and keeps it in mind."""
        self._crash_recovery.settled(settlement.attempt.delivery_id)
        self.dispatcher.offer(lane)

    def _batch_settled(self) -> None:
        self._loader.has_room()
        self.admission.has_room.set()
        self._progress.set()

    def _endpoint_changed(self, endpoint: EndpointId, changes: Sequence[Change]) -> None:
        lane = self.ownership.lanes.get(endpoint)
        if lane is None:
            return
        lane.follow(self._catalogue.prepared(endpoint))
        for change in changes:
            if change.kind == "reset":
                lane.flow.reset(change.n)
        if lane.is_careful:
            if lane.is_held:
                return  # its suspects are marked and go first; everything is read again after them
            self._errands.call_off(lane)
            lane.is_careful = False
        lane.forget_unsent()
        if lane.flow.head is not None:
            self._errands.look_at_head(lane)
        self._loader.nudge(lane)

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

    def _pulsed(self) -> None:
        self._taker.pulsed()
        unsent, self._unsent = self._unsent, {}
        for lane in unsent:
            self.dispatcher.offer(lane)
        self.dispatcher.look_at_alarms()
        self.dispatcher.call_waiting()
        self.dispatcher.pump()

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
