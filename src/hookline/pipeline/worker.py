"""How do the parts of a delivering process work together?

This is the wiring between lanes, dispatcher, sender and settler: what each of them reports, and who is told.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random

import structlog

from hookline.clock import Clock
from hookline.errors import StoreRefused, StoreUnavailable
from hookline.ids import Ids
from hookline.model import Circuit, CircuitState, DeliveryId, EndpointId, Outcome, State, WorkerId
from hookline.pipeline.bury import bury, sweep
from hookline.pipeline.careful import Careful
from hookline.pipeline.catalogue import Catalogue
from hookline.pipeline.deliver import Deliverer
from hookline.pipeline.dispatch import Dispatcher
from hookline.pipeline.heart import Heart
from hookline.pipeline.hints import Hints
from hookline.pipeline.holdings import Holdings
from hookline.pipeline.hosts import Host
from hookline.pipeline.lane import Lane
from hookline.pipeline.load import Loader
from hookline.pipeline.pace import Pace
from hookline.pipeline.sender.contract import Sender
from hookline.pipeline.settle import Settler
from hookline.pipeline.share import Sharing
from hookline.pipeline.shed import Shedding
from hookline.pipeline.upkeep import Upkeep
from hookline.pipeline.wake import Waiting, Wakes
from hookline.rules.slots import Health
from hookline.rules.slowness import is_slow
from hookline.store.contract import Change, Hint, Load, Loaded, Settlement, Store, Verdict

_TAKE_EVERY = 0.25
_TAKE_SOONEST = 0.02  # seconds between two takes at least, however many others say that they woke a lane
_SAY_AGAIN = 60.0  # seconds between two lines about a database that refuses

log = structlog.get_logger()

Loop = Callable[[], Coroutine[None, None, None]]


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
        self._sender = sender
        self._clock = clock
        self._delivers = delivers
        self._woken_elsewhere = asyncio.Event()
        self._refused_at = float("-inf")
        self._is_draining = False
        self._progress = asyncio.Event()  # something landed or was settled: a drain looks again
        self._unsent: dict[Lane, None] = {}  # in the order they came back: one seed, one run
        self._errands: dict[Lane, asyncio.Task[None]] = {}  # probes to be written down, suspects to be sent
        self._tasks: list[asyncio.Task[None]] = []
        self.holdings = Holdings(
            store,
            catalogue,
            heart,
            clock,
            slots=slots,
            on_adopted=self._adopted,
            on_dropped=self._dropped,
        )
        self._hints = Hints(
            store,
            clock,
            worker=lambda: heart.id,
            peers=lambda: heart.peers,
            hear=self._heard,
            are_used=hints and not store.exclusive,
        )
        self.wakes = Wakes(store, clock, take=self._take_woken, on_woken=self._hints.woken)
        self._deliverer = Deliverer(
            store,
            sender,
            clock,
            ids,
            rng,
            canonical=canonical,
            on_landed=self._landed,
            on_unsent=self._not_sent,
        )
        self.dispatcher = Dispatcher(
            slots, clock, may_send=self._may_send, send=self._deliverer.send, probe=self._probe
        )
        self.settler = Settler(
            store,
            clock,
            worker=lambda: heart.id,
            on_settled=self._settled,
            on_batch=self._batch_settled,
        )
        self._pace = Pace(clock, lambda: self.settler.delivered)
        self._loader = Loader(
            store,
            clock,
            buffers=self.holdings.buffers,
            poll=poll,
            is_alone=lambda: store.exclusive or all(peer.buried for peer in heart.peers),
            on_loaded=self._loaded,
            on_headless=lambda lane: self._run_errand(lane, self._look_at_head(lane)),
        )
        self._upkeep = Upkeep(
            store,
            catalogue,
            self.holdings,
            clock,
            shed=Shedding(self.holdings, self.dispatcher, peers=lambda: heart.peers).look,
            share=Sharing(self.holdings, clock, every=2 * heart.heartbeat, on_kept=self._loader.nudge).look,
            is_draining=lambda: self._is_draining,
        )
        self._careful = Careful(
            store,
            clock,
            slots=slots,
            worker=lambda: heart.id,
            probe=self._prepare_probe,
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
        loops: list[Loop] = [self._heart.run_pulse, self._heart.run_beat, self.wakes.run, *always]
        loops += self._hints.loops(delivers=self._delivers)
        if self._delivers:
            loops += [
                self._loader.run,
                self.settler.run,
                self.dispatcher.run_alarms,
                self._run_take,
                self._upkeep.run,
                self._careful.run,
                *also,
            ]
        self._tasks = [asyncio.create_task(self._survive(loop), name=loop.__qualname__) for loop in loops]

    def begin_to_leave(self) -> None:
        """Take and send nothing more from now on; what is published meanwhile is left to others."""
        self._is_draining = True

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
            tasks = [*self._tasks, *self._errands.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._deliverer.close()

    # --- for the intake ---

    def takes_over(self) -> bool:
        """May deliveries be reserved here at all now?"""
        return not self._is_draining and self._heart.is_fresh()

    def reserve(self, endpoint: EndpointId, delivery: DeliveryId) -> Lane | None:
        """The lane the delivery can be handed to once it is committed, None when it cannot."""
        lane = self.holdings.lanes.get(endpoint)
        if (
            lane is None
            or lane.is_strict  # the next one may go only after this one is settled: let the load keep the order
            or lane.is_suspect
            or not lane.is_held
            or lane.parked_at is not None  # others of its host go first, and memory is theirs
            or 2 * lane.cap <= len(lane.known)
            or self.holdings.buffers.room(lane.health) <= 0
        ):
            return None
        lane.reserve(delivery)
        return lane

    def hand_over(self, lane: Lane, delivery: Loaded, *, at: float) -> None:
        """The reserved delivery is committed: send it."""
        if delivery.id not in lane.known or not lane.is_held:
            lane.forget(delivery.id)
            self.wakes.add(delivery.endpoint_id)  # the lane went away meanwhile
            return
        if lane.behind:
            if not lane.hold_up(delivery):
                lane.forget(delivery.id)
                self._miss(lane)
            return
        lane.active_at = at
        lane.add(delivery)
        self.dispatcher.offer(lane)

    def give_up(self, lane: Lane, delivery: DeliveryId) -> None:
        """The reserved delivery was not committed, or nobody knows: forget it and look."""
        lane.forget(delivery)
        lane.read_again()

    def announce(
        self, endpoint: EndpointId, delivery: Loaded | None = None, *, due_at: float | None = None
    ) -> None:
        """Something of the lane was committed that is not handed over; due now, or at `due_at`."""
        lane = self.holdings.lanes.get(endpoint)
        if lane is None or not lane.is_held or self._is_draining or not self._heart.is_fresh():
            self.wakes.add(endpoint, delivery)
        elif due_at is not None:
            self._loader.expect(lane, due_at)
        else:
            self._miss(lane)

    def circuit_of(self, endpoint: EndpointId) -> Circuit | None:
        """The circuit of a lane that is owned here, None of any other."""
        lane = self.holdings.lanes.get(endpoint)
        return None if lane is None else lane.gate.circuit

    def is_slow(self, endpoint: EndpointId) -> bool:
        """Is an endpoint whose lane is owned here slow, by its last attempts?"""
        lane = self.holdings.lanes.get(endpoint)
        return lane is not None and is_slow(lane.gate.durations)

    def waiting_reason(self, endpoint: EndpointId) -> str | None:
        """What keeps the deliveries of a lane that is owned here from being sent now; None: not owned here."""
        lane = self.holdings.lanes.get(endpoint)
        if lane is None:
            return None
        gate = lane.gate
        if gate.circuit.state is not CircuitState.CLOSED:
            return "circuit"
        if lane.is_strict and (gate.head is not None or lane.in_flight or lane.unsettled):
            return "order"
        if gate.hold_until > self._clock.now():
            return "due"
        return "rate" if gate.opens_at() > self._clock.now() else "slot"

    def is_under_way(self, delivery: DeliveryId) -> bool:
        """Is it being sent by this process now?"""
        return delivery in self._deliverer.under_way

    # --- what the parts report ---

    def _miss(self, lane: Lane) -> None:
        """The store holds a due delivery of the lane that is not in memory."""
        lane.behind = lane.missed = True
        if lane.wants_more():
            self._loader.nudge(lane)

    def _may_send(self) -> bool:
        return not self._is_draining and self._heart.is_fresh()

    def _adopted(self, lane: Lane) -> None:
        if lane.is_suspect and lane.is_strict and lane.outlet is not None:
            # What the dead owner sent may still be under way: the next one must not overtake it.
            lane.gate.rest(self._clock.now() + lane.outlet.endpoint.timeout)
        if lane.gate.head is not None:
            self._run_errand(lane, self._look_at_head(lane))
        self._loader.nudge(lane)

    def _dropped(self, lane: Lane) -> None:
        errand = self._errands.get(lane)
        if errand is not None:
            errand.cancel()

    def _loaded(self, lane: Lane) -> None:
        if lane.is_suspect:
            if not lane.is_careful and not lane.gate.wants_no_probe_yet() and lane not in self._errands:
                lane.is_careful = True
                self._run_errand(lane, self._careful.send(lane))
            return
        if lane.has_unsent:
            lane.active_at = self._clock.monotonic()
            self.dispatcher.offer(lane)

    async def _look_at_head(self, lane: Lane) -> None:
        """An operator may have moved the delivery that a strict lane waits for, or given up the order."""
        head, believed = lane.gate.head, lane.gate.head_due
        if head is None or (lane.is_strict and head in lane.known):
            return  # under way: its settlement says what becomes of it
        found = await self._store.delivery(head) if lane.is_strict else None
        if lane.lost or (lane.gate.head, lane.gate.head_due) != (head, believed):
            return  # it was sent meanwhile, and what was read is older than what is known here
        # One that starts over is no head: it takes its turn with all others.
        if found is not None and found.state is State.PENDING and found.attempts:
            lane.gate.look_again(head, until=found.due_at)
        else:
            lane.gate.look_again(None)
        self._loader.nudge(lane)
        self.dispatcher.offer(lane)

    def _probe(self, lane: Lane) -> None:
        """The lane's circuit asks for a probe, and there is something to send."""
        if not lane.is_suspect:  # else it is sent with care, and the probe is seen to there
            self._run_errand(lane, self._prepare_probe(lane))

    async def _prepare_probe(self, lane: Lane) -> None:
        lane.gate.begin_probe()
        written = await self.holdings.write_notes([lane])
        if lane.endpoint_id in written and not lane.lost:
            lane.gate.grant_probe()
            self.dispatcher.offer(lane)

    def _run_errand(self, lane: Lane, errand: Coroutine[None, None, None]) -> None:
        if lane in self._errands:
            errand.close()
            return

        async def run() -> None:
            try:
                await errand
            except (StoreUnavailable, StoreRefused) as error:
                log.debug("errand.failed", error=str(error))
                lane.is_careful = False
                lane.forget_unsent()
            finally:
                del self._errands[lane]

        def forget(task: asyncio.Task[None]) -> None:
            """Also one that was cancelled before its first step."""
            if self._errands.get(lane) is task:
                errand.close()
                del self._errands[lane]

        task = self._errands[lane] = asyncio.get_running_loop().create_task(run())
        task.add_done_callback(forget)

    def _landed(self, lane: Lane, health: Health, host: Host | None, settlement: Settlement) -> None:
        self.dispatcher.finish(lane, health, host)
        lane.active_at = self._clock.monotonic()
        if settlement.attempt.outcome is Outcome.GONE:
            lane.stop()
            self._upkeep.disable(lane.endpoint_id)
        is_waiting = lane.is_strict and settlement.state is State.PENDING
        if lane.is_careful and (is_waiting or lane.gate.wants_no_probe_yet()):
            self._dropped(
                lane
            )  # the circuit opened, or order holds: its other suspects wait with everything else
            lane.is_careful = lane.is_suspect = False
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
        if lane.awaits_head and lane.has_unsent:
            lane.forget_unsent()  # read while the head was under way: it must leave room for it
        self._loader.settled(id)
        self._careful.settled(id)
        if settlement.state is State.PENDING and verdict is not Verdict.LATE:
            self._loader.expect(lane, settlement.due_at)
        if lane.behind and lane.wants_more():
            self._loader.nudge(lane)
        if lane.is_strict:
            self.dispatcher.offer(lane)

    def _batch_settled(self) -> None:
        self._loader.has_room()
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
            self._dropped(lane)
            lane.is_careful = False
        lane.forget_unsent()
        if lane.gate.head is not None:
            self._run_errand(lane, self._look_at_head(lane))
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
            self._woken_elsewhere.set()
        if hint.is_change:
            self._heart.nudge()

    def _pulsed(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for lane in unsent:
            self.dispatcher.offer(lane)
        self.dispatcher.call_waiting()
        self.dispatcher.pump()

    def _buried(self) -> None:
        for endpoint in self.holdings.drop_all():
            self.wakes.add(endpoint)

    async def _bury(self, dead: Sequence[tuple[WorkerId, int]]) -> None:
        await bury(self._store, self._clock, dead)

    def _load(self) -> Load:
        return Load(
            lanes=len(self.holdings.lanes),
            in_flight=self.dispatcher.in_flight,
            free_slots=self.dispatcher.slots - self.dispatcher.in_flight if self._is_taking else 0,
            waiting=self.dispatcher.waiting,
            draining=self._is_draining,
            delivered_per_s=self._pace.per_s(),
        )

    # --- loops ---

    async def _take_woken(self, waiting: Waiting) -> Sequence[EndpointId]:
        held = self.holdings.lanes
        others = []
        for id in waiting:
            lane = held.get(id)
            if lane is None or not lane.is_held:
                others.append(id)
            else:
                self._miss(lane)
        if not self._can_take():
            return others
        now = self._clock.now()
        taken = await self.holdings.take_these(sorted(others))
        for id, found in taken.items():
            lane = held.get(id)
            if lane is None or found.woke_at <= now or lane.is_strict or lane.is_suspect:
                continue  # there may be older ones: let the load keep the order
            if not lane.gate.is_plain:
                continue
            lane.behind = False
            for delivery in waiting[id]:
                if lane.room() > 0 and lane.is_held:
                    self._hand_over_fresh(lane, delivery)
                else:
                    lane.behind = True
        return [id for id in others if id not in taken]

    def _hand_over_fresh(self, lane: Lane, delivery: Loaded) -> None:
        """A committed delivery of a lane just taken, from memory: no load can have brought it yet."""
        lane.reserve(delivery.id)
        self.hand_over(lane, delivery, at=self._clock.monotonic())

    async def _run_take(self) -> None:
        while True:
            if self._can_take():
                try:
                    while await self.holdings.take() and self._can_take():
                        pass
                except StoreUnavailable as error:
                    log.debug("take.failed", error=str(error))
            await self._clock.sleep(_TAKE_SOONEST)
            await self._clock.wait(self._woken_elsewhere, _TAKE_EVERY - _TAKE_SOONEST)
            self._woken_elsewhere.clear()

    @property
    def _is_taking(self) -> bool:
        return self._delivers and not self._is_draining

    def _can_take(self) -> bool:
        return self._is_taking and not self.dispatcher.is_saturated and self._heart.is_fresh()

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
        await self.wakes.flush()

    def _say_refused(self, error: StoreRefused) -> None:
        """Once for all loops, and not where the pulse says the same."""
        at = self._clock.monotonic()
        if at - self._refused_at >= _SAY_AGAIN and self._heart.is_fresh():
            self._refused_at = at
            log.error("store.refused", error=str(error))

    async def _survive(self, loop: Loop) -> None:
        while True:
            try:
                await loop()
            except StoreRefused as error:
                # Rights taken away, a table gone: it may be put right while this process runs.
                self._say_refused(error)
                await self._clock.sleep(1.0)
            except Exception:
                # A bug in one loop must not stop the others; the loop itself starts over from the store.
                log.exception("loop.failed", loop=loop.__qualname__)
                await self._clock.sleep(1.0)
