"""Takes and releases the lanes that this worker owns.

Lanes are taken when a pulse shows that one is due, and sooner when others notify that they woke some; never while all
slots are in use. So no worker asks for lanes, with a lock and a commit, where there are none.
"""

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.errors import HooklineError, StoreUnavailable
from hookline.model import CircuitState, DeliveryId, EndpointId, WorkerId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.lanes.buffers import Buffers
from hookline.pipeline.lanes.circuit_breaker import say_closed
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.notes import LaneNotes
from hookline.pipeline.membership.heartbeat import Heartbeat
from hookline.pipeline.refused_rows import write_apart
from hookline.rules.crash_suspects import few_of_the_dead
from hookline.rules.fair_share import surplus
from hookline.rules.slots import LaneHealth
from hookline.store.contract import Loaded, Release, Store, Taken

_TAKE = 200  # lanes taken in one statement: 2.3 ms on PostgreSQL
_MOST = 5_000  # lanes a worker holds
_FOR_PROVEN = 1_000  # of these, for endpoints known to answer: a crowd of others must not keep them out
_SHED = 500  # lanes of a crowd that are released in one round, so that others have their turn
_QUIET = 15.0  # seconds without work after which a lane is released
_LEFT = 1.0  # seconds for which a free lane is left to workers with fewer lanes

log = structlog.get_logger()


class Ownership:
    """The owned lanes."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        heartbeat: Heartbeat,
        clock: Clock,
        *,
        slots: int,
        very_slow: Container[EndpointId],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._heartbeat = heartbeat
        self._clock = clock
        self._very_slow = very_slow  # whose circuits trip at half their threshold
        self.on_adopted: Callable[[Lane], None]
        self.on_kept: Callable[[Lane], None]
        self.on_dropped: Callable[[Lane], None]
        self._is_in_doubt = False  # a take or release failed: the store may know other owners than this does
        self.set_aside = 0  # notes and releases that the store refused, since the start
        self._shared_out = 0  # takes in a row that left lanes of dead workers to others
        self._is_past_suspects = False  # the last take was full and had no suspect lane
        self.lanes: dict[EndpointId, Lane] = {}
        self.buffers = Buffers(slots)
        self.notes = LaneNotes(
            store,
            clock,
            worker=lambda: heartbeat.id,
            on_refused=self._note_refused,
            announces=lambda: catalogue.announces,
        )

    async def take(self) -> bool:
        """Take free lanes that are awake; True if more should be taken now.

        Lanes of dead workers are shared out: one of them may kill its next owner too, and all its other lanes with it.
        So where there are other workers, only a few are taken until it is known whether they are suspect.
        """
        few = None if self._is_past_suspects else few_of_the_dead(self._shared_out, peers=self._peers())
        limit = min(_TAKE if few is None else few, _MOST - _FOR_PROVEN - len(self.lanes))
        if limit <= 0:
            return False
        worker = self._heartbeat.id
        taken = await self._guarded_take(None, limit)
        await self._adopt(taken, worker)
        is_full = len(taken) == limit
        if few is not None and any(lane.suspect for lane in taken):
            self._shared_out += 1
            return False
        self._is_past_suspects = is_full
        if not is_full:
            self._shared_out = 0
        return is_full

    def _peers(self) -> int:
        """The number of other workers, including those that have not yet reported how many slots they have."""
        return sum(
            peer.kind != "api" and not peer.buried and not peer.load.draining
            for peer in self._heartbeat.peers
        )

    async def take_these(self, waiting: Mapping[EndpointId, Sequence[Loaded]]) -> dict[EndpointId, Taken]:
        """Take the free ones of these lanes that there is room for, unless other workers have fewer.

        Each comes with the deliveries that are to be handed over to it. Only the lanes that this call added are returned.
        A reconcile may have found one while the answer to the take was on its way; such a lane has been loaded since.
        """
        lanes: Sequence[EndpointId] = sorted(waiting)
        if self.surplus():
            return {}
        if len(self.lanes) + len(lanes) > _MOST - _FOR_PROVEN:
            lanes = self._let_in(lanes)
        if not lanes:
            return {}
        worker = self._heartbeat.id
        copies = [delivery.id for lane in lanes for delivery in waiting[lane]]
        adopted = await self._adopt(await self._guarded_take(lanes, len(lanes), copies), worker)
        return {lane.endpoint_id: lane for lane in adopted}

    def elsewhere(self) -> list[int]:
        """The lane counts of the workers that could take more."""
        return [
            peer.load.lanes
            for peer in self._heartbeat.peers
            if peer.load.free_slots > 0 and not (peer.buried or peer.load.draining)
        ]

    def surplus(self) -> int:
        """How many of the lanes here should be with other workers."""
        return surplus(len(self.lanes), self.elsewhere())

    async def release_quiet(self) -> None:
        """Release the lanes that have been idle for a while, or whose endpoint may not be sent to."""
        at = self._clock.monotonic()
        quiet = [
            lane
            for lane in self.lanes.values()
            if lane.is_at_rest
            and (
                (lane.is_idle and at - lane.active_at >= _QUIET)
                or not lane.is_held
                or lane.flow.is_held_back()
            )
        ]
        await self.release(quiet)
        if len(self.lanes) >= _MOST - _FOR_PROVEN:
            await self.release(self._crowd(), woken=True)

    def _crowd(self) -> list[Lane]:
        """Lanes that had their turn and are not known to answer well, while more wait than can be owned."""
        crowd = (
            lane
            for lane in self.lanes.values()
            if lane.health is not LaneHealth.PROVEN and lane.sends and lane.is_movable
        )
        return list(islice(crowd, _SHED))

    def _let_in(self, lanes: Sequence[EndpointId]) -> list[EndpointId]:
        """The ones of these lanes that there is room for."""
        proven: list[EndpointId] = []
        others: list[EndpointId] = []
        for id in lanes:
            prepared = self._catalogue.prepared(id)
            (proven if prepared is not None and prepared.health is LaneHealth.PROVEN else others).append(id)
        del proven[max(0, _MOST - len(self.lanes)) :]
        del others[max(0, _MOST - _FOR_PROVEN - len(self.lanes) - len(proven)) :]
        return sorted(proven + others)

    async def release(self, lanes: Iterable[Lane], *, woken: bool = False) -> None:
        """Release lanes that have nothing under way: RELEASE, then RECHECK, then forget.

        `woken` ones have more to send: they go last among the free lanes that wait for an owner.
        """
        going = [lane for lane in lanes if not lane.in_flight and not lane.unsettled and not lane.is_lost]
        if not going:
            return
        for lane in going:
            lane.begin_release()
            lane.forget_unsent()
        try:
            await self.notes.write(going)
            await write_apart(going, partial(self._let_go, woken=woken), self._cannot_let_go)
            await self._store.wake(sorted(lane.endpoint_id for lane in going), now=self._clock.now())
        except BaseException:  # cancelled too: whether they were released is checked before anything else
            self._is_in_doubt = True
            raise
        for lane in going:
            self.drop(lane)

    async def _let_go(self, lanes: Sequence[Lane], *, woken: bool) -> list[EndpointId]:
        now = self._clock.now()
        releases = [_release(lane, wake_at=now if woken else lane.next_due) for lane in lanes]
        return await self._store.release(self._heartbeat.id, releases, now=now)

    async def _cannot_let_go(self, lane: Lane, error: Exception) -> list[EndpointId]:
        """Forget it like the others: if this process continues, the next reconcile finds it again."""
        self._say_set_aside("lane.not_released", lane, error)
        return []

    def _note_refused(self, lane: Lane, error: Exception) -> None:
        self._say_set_aside("lane.note_refused", lane, error)

    def _say_set_aside(self, event: str, lane: Lane, error: Exception) -> None:
        self.set_aside += 1
        # For an error that is not the store's, only its name: its text may quote what was to be written.
        said = str(error) if isinstance(error, HooklineError) else type(error).__name__
        log.error(event, endpoint_id=ids.show("endpoint", lane.endpoint_id), error=said)

    async def reconcile(self) -> None:
        """Compare with the owner in the store: adopt lanes that are not known here, drop lanes that were lost."""
        before, worker = list(self.lanes.values()), self._heartbeat.id
        owned = {taken.endpoint_id: taken for taken in await self._store.owned(worker)}
        lost = [lane.endpoint_id for lane in before if lane.endpoint_id not in owned]
        if lost:
            # Released after all, with what was known then: looked at again before it is forgotten here.
            await self._store.wake(sorted(lost), now=self._clock.now())
        if worker != self._heartbeat.id:
            return  # buried meanwhile: the lanes under the new id are compared next time
        for lane in before:
            stored = owned.pop(lane.endpoint_id, None)
            if stored is None or stored.epoch != lane.epoch:
                self.drop(lane)
                if stored is not None and stored.epoch != lane.epoch:
                    owned[lane.endpoint_id] = stored
            elif lane.is_releasing:
                self.keep(lane)
        await self._adopt([taken for id, taken in owned.items() if id not in self.lanes], worker)
        self._is_in_doubt = False

    @property
    def is_in_doubt(self) -> bool:
        return self._is_in_doubt

    def keep(self, lane: Lane) -> None:
        """Keep a lane that was not released after all. Every release that ends without releasing must call this.

        Nobody offered the lane meanwhile, and a lane with a full buffer is not loaded either: it would stand still.
        """
        lane.keep()
        self.on_kept(lane)

    def drop(self, lane: Lane) -> None:
        """Forget a lane."""
        if self.lanes.get(lane.endpoint_id) is lane:
            del self.lanes[lane.endpoint_id]
        lane.lose()
        self.on_dropped(lane)

    def drop_all(self) -> list[EndpointId]:
        """Forget every lane, because none is ours any more; which they were."""
        lost = list(self.lanes.values())
        for lane in lost:
            self.drop(lane)
        return [lane.endpoint_id for lane in lost]

    async def _guarded_take(
        self, these: Sequence[EndpointId] | None, limit: int, copies: Sequence[DeliveryId] = ()
    ) -> list[Taken]:
        worker = self._heartbeat.id
        try:
            if these is None:
                awake_by = self._clock.now() - (_LEFT if self.surplus() else 0.0)
                taken = await self._store.take(worker, limit=limit, now=awake_by)
            else:
                taken = await self._store.take_these(worker, these, copies=copies, now=self._clock.now())
        except BaseException:
            self._is_in_doubt = True
            raise
        return taken

    async def _adopt(self, taken: Sequence[Taken], worker: WorkerId) -> list[Taken]:
        """Add the lanes that are owned under this id; returns those that were not known here."""
        if any(self._catalogue.prepared(lane.endpoint_id) is None for lane in taken):
            await self._catalogue.catch_up()  # an endpoint may be younger than the last pulse
        if worker != self._heartbeat.id:
            return []  # buried meanwhile: they are freed with the rest
        adopted = []
        for found in taken:
            known = self.lanes.get(found.endpoint_id)
            if known is not None:
                if known.epoch >= found.epoch:
                    continue
                self.drop(known)
            lane = Lane(
                found,
                self._catalogue.prepared(found.endpoint_id),
                at=self._clock.monotonic(),
                now=self._clock.now,
                buffers=self.buffers,
                very_slow=self._very_slow,
            )
            if found.is_reset:
                lane.flow.reset(self._catalogue.n)
            if lane.flow.breaker.is_closed and found.circuit.state is not CircuitState.CLOSED:
                say_closed(lane, "an operator closed it")
            self.lanes[found.endpoint_id] = lane
            self.on_adopted(lane)
            adopted.append(found)
        return adopted


def _release(lane: Lane, *, wake_at: float) -> Release:
    bucket = lane.flow.bucket
    return Release(
        lane.endpoint_id,
        lane.epoch,
        wake_at,
        None if bucket is None else bucket.tokens,
        None if bucket is None else bucket.at,
        # In strict order it already waited for what was under way, and would wait again each time it is taken.
        lane.is_suspect and lane.order is None,
    )


_TAKE_SOONEST = 0.02  # least seconds between two takes, however many notifications of woken lanes arrive


class LaneTaker:
    """Takes lanes while there is room for their deliveries; in a process that does not deliver, none."""

    def __init__(
        self,
        ownership: Ownership,
        dispatcher: Dispatcher,
        heartbeat: Heartbeat,
        clock: Clock,
        *,
        delivers: bool,
    ) -> None:
        self._ownership = ownership
        self._dispatcher = dispatcher
        self._heartbeat = heartbeat
        self._clock = clock
        self._are_some = asyncio.Event()
        self._is_at_rest = asyncio.Event()
        self._is_at_rest.set()
        self.is_open = delivers

    def close(self) -> None:
        """Take nothing more."""
        self.is_open = False

    async def rest(self) -> None:
        """Wait until no take is under way."""
        await self._is_at_rest.wait()

    def can_take(self) -> bool:
        """Whether lanes may be taken now."""
        return self.is_open and not self._dispatcher.is_saturated and self._heartbeat.is_fresh()

    def nudge(self) -> None:
        """There seem to be lanes to take: try soon."""
        self._are_some.set()

    def pulsed(self) -> None:
        """After each pulse, which tells when the first free lane wakes."""
        if self._heartbeat.wakes_at <= self._clock.now():
            self._are_some.set()

    async def run(self) -> None:
        """Take until cancelled."""
        while True:
            await self._are_some.wait()
            self._are_some.clear()
            if self.can_take():
                self._is_at_rest.clear()
                try:
                    while await self._ownership.take() and self.can_take():
                        pass
                except StoreUnavailable as error:
                    log.debug("take.failed", error=str(error))  # the next pulse sees them again
                finally:
                    self._is_at_rest.set()
            await self._clock.sleep(_TAKE_SOONEST)
