"""How do the parts of a delivering process work together?

This is the wiring between lanes, dispatcher, sender and settler: what each of them reports, and who is told.
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
from hookline.pipeline.lanes.crash_recovery import Careful
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.errands import Errands
from hookline.pipeline.lanes.handover import Handover
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.loader import Loader
from hookline.pipeline.lanes.ownership import Holdings
from hookline.pipeline.lanes.payload_memory import Memory
from hookline.pipeline.lanes.sharing import Sharing
from hookline.pipeline.lanes.shedding import Shedding
from hookline.pipeline.lanes.status import Standing
from hookline.pipeline.lanes.taking import Taking
from hookline.pipeline.maintenance.supervisor import (
    Loop,
    Loops,
)
from hookline.pipeline.maintenance.upkeep import Upkeep
from hookline.pipeline.membership.burial import (
    bury,
    sweep,
)
from hookline.pipeline.membership.heartbeat import Heart
from hookline.pipeline.membership.notify import Hints
from hookline.pipeline.membership.pace import Pace
from hookline.pipeline.sending.contract import Sender
from hookline.pipeline.settle import Settler
from hookline.rules.liveness import Dead
from hookline.rules.slots import Health
from hookline.store.contract import Change, Hint, Load, Loaded, Settlement, Store, Verdict

log = structlog.get_logger()


class Worker:
    """Brings deliveries; in a process that only publishes (`delivers=False`), wakes those who do."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        heart: Heart,
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
        self._heart = heart
        self._clock = clock
        self._delivers = delivers
        self._is_draining = False
        self._progress = asyncio.Event()  # something landed or was settled: a drain looks again
        self._unsent: dict[Lane, None] = {}  # in the order they came back: one seed, one run
        self._loops = Loops(heart, clock)
        self.say_refused = heart.on_refused = self._loops.say_refused
        self.holdings = Holdings(
            store,
            catalogue,
            heart,
            clock,
            slots=slots,
            on_adopted=self._adopted,
            on_kept=self._kept,
            on_dropped=lambda lane: self._errands.call_off(lane),
        )
        self._hints = Hints(
            store,
            clock,
            worker=lambda: heart.id,
            peers=lambda: heart.peers,
            hear=self._heard,
            are_used=hints and not store.exclusive,
        )
        memory = Memory()
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
            worker=lambda: heart.id,
            on_settled=self._settled,
            on_batch=self._batch_settled,
            on_aside=self._set_aside,
            write_notes=self.holdings.write_notes,
            note_turns=self.holdings.note_turns,
        )
        self._pace = Pace(clock, lambda: self.settler.delivered)
        self._loader = Loader(
            store,
            clock,
            buffers=self.holdings.buffers,
            poll=poll,
            is_alone=lambda: store.exclusive or all(peer.buried for peer in heart.peers),
            on_loaded=self._loaded,
            on_headless=lambda lane: self._errands.look_at_head(lane),
        )
        self._errands = Errands(
            store, self.holdings, clock, nudge=self._loader.nudge, offer=self.dispatcher.offer
        )
        self._taking = Taking(self.holdings, self.dispatcher, heart, clock, delivers=delivers)
        self.handover = Handover(
            store,
            self.holdings,
            self._taking,
            self._loader,
            self.dispatcher,
            heart,
            clock,
            on_woken=self._hints.woken,
        )
        self.admission = Admission(self.holdings.lanes)
        self.standing = Standing(self.holdings.lanes, self._deliverer.under_way, clock)
        self._upkeep = Upkeep(
            store,
            self.holdings,
            clock,
            shed=Shedding(self.holdings, self.dispatcher, peers=lambda: heart.peers).look,
            share=Sharing(self.holdings, clock, every=2 * heart.heartbeat).look,
            is_draining=lambda: self._is_draining,
            on_refused=self._loops.say_refused,
        )
        self._careful = Careful(
            store,
            clock,
            slots=slots,
            worker=lambda: heart.id,
            probe=self._errands.prepare_probe,
            offer=self.dispatcher.offer,
            alone=self.dispatcher.alone,
            on_done=self._loader.nudge,
        )
        catalogue.on_change = self._endpoint_changed
        catalogue.on_own_change = self._hints.changed
        heart.load = self._load
        heart.on_pulse = self._pulsed
        heart.on_buried = self._buried
        heart.on_dead = self._bury

    # --- life ---

    async def start(self, *also: Loop, always: Sequence[Loop] = ()) -> None:
        """Recover what others left, then work, and run the other loops beside it: `also` if this process delivers."""
        await self._heart.start()
        await sweep(self._store, self._clock)
        await self._heart.look()
        loops: list[Loop] = [self._heart.run_pulse, self._heart.run_beat, self.handover.wakes.run, *always]
        loops += self._hints.loops(delivers=self._delivers)
        if self._delivers:
            loops += [
                self._loader.run,
                self.settler.run,
                self.dispatcher.run_alarms,
                self._taking.run,
                self._upkeep.run,
                self._upkeep.run_beside,
                self._careful.run,
                *also,
            ]
        self._loops.start(loops)

    def begin_to_leave(self) -> None:
        """Take and send nothing more from now on; what is published meanwhile is left to others."""
        self._is_draining = True
        self._taking.close()
        self.handover.close()

    async def stop(self, *, within: float, close: Loop) -> bool:
        """Stop taking, finish what is under way, release every lane; says whether all of it was done in time.

        `close` ends what the other loops do that makes deliveries due: their lanes are woken before the end too.
        """
        self.begin_to_leave()
        try:
            async with asyncio.timeout(within):
                await self._drain(close)
                await self._heart.stop()
            return True
        except (TimeoutError, StoreUnavailable, StoreRefused) as error:
            log.warning(
                "worker.undrained",
                in_flight=self.dispatcher.in_flight,
                lanes=len(self.holdings.lanes),
                error=str(error) or "time is up",
            )
            return False
        finally:
            tasks = [*self._loops.tasks, *self._errands.tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._deliverer.close()

    async def _drain(self, close: Loop) -> None:
        lanes = self.holdings.lanes
        while lanes:
            self._progress.clear()
            await self.holdings.release(list(lanes.values()))
            if lanes:
                await self._progress.wait()
        if self._delivers:
            await self.settler.flush()
        await close()
        await self.handover.wakes.flush()

    # --- what the parts report ---

    def _may_send(self) -> bool:
        return not self._is_draining and self._heart.is_fresh()

    def _adopted(self, lane: Lane) -> None:
        if lane.is_suspect and lane.is_strict and lane.outlet is not None:
            # What the dead owner sent may still be under way: the next one must not overtake it.
            lane.gate.wait_out(self._clock.now() + lane.outlet.endpoint.timeout)
        if lane.gate.head is not None:
            self._errands.look_at_head(lane)
        self._loader.nudge(lane)

    def _kept(self, lane: Lane) -> None:
        if lane.has_unsent:
            self._loaded(lane)
        self._loader.nudge(lane)

    def _loaded(self, lane: Lane) -> None:
        if lane.is_suspect:
            if not lane.is_careful and not lane.gate.wants_no_probe_yet() and not self._errands.is_out(lane):
                lane.is_careful = True
                self._errands.run(lane, self._careful.send(lane))
            return
        if lane.has_unsent:
            lane.active_at = self._clock.monotonic()
            self.dispatcher.offer(lane)

    def _landed(self, lane: Lane, health: Health, host: Host | None, settlement: Settlement) -> None:
        self.dispatcher.finish(lane, health, host)
        lane.active_at = self._clock.monotonic()
        if settlement.gone is not None:
            lane.stop(asked=settlement.gone)
        is_waiting = lane.is_strict and settlement.state is State.PENDING
        if lane.is_careful and (is_waiting or lane.gate.wants_no_probe_yet()):
            # The circuit opened, or order holds: its other suspects wait with everything else.
            self._errands.call_off(lane)
            lane.is_careful = False
            lane.is_suspect = not lane.is_strict
            lane.forget_unsent()
        if lane.is_strict:
            if is_waiting:
                lane.gate.set_head(settlement.attempt.delivery_id, until=settlement.due_at)
                lane.forget_unsent()  # they go after it, and are read again then
            elif lane.gate.head == settlement.attempt.delivery_id:
                lane.gate.set_head(None)
        self.settler.add(lane, settlement)
        if lane.has_unsent:
            self.dispatcher.offer(lane)
        if self.dispatcher.waiting:
            self.dispatcher.pump()

    def _not_sent(self, lane: Lane, health: Health, host: Host | None, delivery: Loaded) -> None:
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
            self._heart.nudge()
            self._hints.changed()
        self._loader.settled(id)
        self._careful.settled(id)
        if settlement.state is State.PENDING and verdict is not Verdict.LATE:
            self._loader.expect(lane, settlement.due_at)
        if lane.behind and lane.wants_more():
            self._loader.nudge(lane)
        if lane.is_strict:
            self.dispatcher.offer(lane)

    def _set_aside(self, lane: Lane, settlement: Settlement) -> None:
        """Its settlement cannot be written: the lane goes on without it, and keeps it in mind."""
        self._careful.settled(settlement.attempt.delivery_id)
        self.dispatcher.offer(lane)

    def _batch_settled(self) -> None:
        self._loader.has_room()
        self.admission.has_room.set()
        self._progress.set()

    def _endpoint_changed(self, endpoint: EndpointId, changes: Sequence[Change]) -> None:
        lane = self.holdings.lanes.get(endpoint)
        if lane is None:
            return
        lane.follow(self._catalogue.outlet(endpoint))
        for change in changes:
            if change.kind == "reset":
                lane.gate.reset(change.n)
        if lane.is_careful:
            if lane.is_held:
                return  # its suspects are marked and go first; everything is read again after them
            self._errands.call_off(lane)
            lane.is_careful = False
        lane.forget_unsent()
        if lane.gate.head is not None:
            self._errands.look_at_head(lane)
        self._loader.nudge(lane)

    def _heard(self, hint: Hint) -> None:
        """Do now what the next poll, take and pulse would do."""
        held = self.holdings.lanes
        named = list(held) if hint.is_every_lane else hint.lanes
        for id in named:
            lane = held.get(id)
            if lane is not None:
                self._loader.nudge(lane)
        if hint.is_every_lane or any(id not in held for id in named):
            self._taking.nudge()
        if hint.is_change:
            self._heart.nudge()

    def _pulsed(self) -> None:
        self._taking.pulsed()
        unsent, self._unsent = self._unsent, {}
        for lane in unsent:
            self.dispatcher.offer(lane)
        self.dispatcher.call_waiting()
        self.dispatcher.pump()

    def _buried(self) -> None:
        for endpoint in self.holdings.drop_all():
            self.handover.wakes.add(endpoint)

    async def _bury(self, dead: Sequence[Dead]) -> None:
        await bury(self._store, self._clock, dead, on_freed=self._taking.nudge)

    def _load(self) -> Load:
        return Load(
            lanes=len(self.holdings.lanes),
            in_flight=self.dispatcher.in_flight,
            free_slots=self.dispatcher.slots - self.dispatcher.in_flight if self._taking.is_open else 0,
            waiting=self.dispatcher.waiting,
            draining=self._is_draining,
            delivered_per_s=self._pace.per_s(),
        )
