"""Moves lanes on when something happens to them.

Lanes are adopted, loaded, answered, settled, changed by operators and dropped. Each of these is decided by the lane
itself. Here the parts that wait for the lane learn of it: dispatcher, loader, settler and crash recovery.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from hookline import ids
from hookline.clock import Clock
from hookline.model import EndpointId, Outcome, State
from hookline.pipeline.attempt import Flight
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.catalogue.host_limits import Host
from hookline.pipeline.lanes.circuit_breaker import CircuitProbes, say_closed, say_opened
from hookline.pipeline.lanes.crash_recovery import CrashRecovery
from hookline.pipeline.lanes.dispatcher import Dispatcher
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.lane_tasks import LaneTasks
from hookline.pipeline.lanes.loader import Loader
from hookline.pipeline.lanes.ownership import Ownership
from hookline.pipeline.lanes.strict_order import HeadFinder
from hookline.pipeline.settle import Settler
from hookline.rules.slots import LaneHealth
from hookline.store.contract import Change, Settlement, Store, Verdict

log = structlog.get_logger()


class LaneEvents:
    """What the parts of a worker report about its lanes."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        ownership: Ownership,
        dispatcher: Dispatcher,
        loader: Loader,
        settler: Settler,
        clock: Clock,
        *,
        on_gone: Callable[[], None],
        on_condemned: Callable[[EndpointId, int], None],
    ) -> None:
        self._catalogue = catalogue
        self._ownership = ownership
        self._dispatcher = dispatcher
        self._loader = loader
        self._settler = settler
        self._clock = clock
        self._on_gone = on_gone  # an endpoint was disabled
        self.tasks = LaneTasks(clock, nudge=loader.nudge, on_end=self._task_ended)
        self._probes = CircuitProbes(ownership.notes)
        self._heads = HeadFinder(store, nudge=loader.nudge, offer=dispatcher.offer)
        self.recovery = CrashRecovery(
            store,
            clock,
            self.tasks,
            slots=dispatcher.slots,
            worker=settler.worker,
            probe=self._probes.send,
            offer=dispatcher.offer,
            alone=dispatcher.alone,
            on_done=loader.nudge,
            on_condemned=on_condemned,
            announces=lambda: catalogue.announces,
        )
        # In the order they came back: one seed, one run. With the full host that a redirect led to, if that was why.
        self._unsent: dict[Lane, Host | None] = {}
        self._gone: set[EndpointId] = set()  # answered "gone" here, not yet seen to be disabled
        self.progress = asyncio.Event()  # something came back or was settled: a drain looks again

    # --- owned or not ---

    def adopted(self, lane: Lane) -> None:
        """The lane is owned here now."""
        self.find_head(lane)
        self._loader.nudge(lane)

    def kept(self, lane: Lane) -> None:
        """The lane was to be released, and was not."""
        if lane.has_unsent:
            self.loaded(lane)
        self._loader.nudge(lane)

    def dropped(self, lane: Lane) -> None:
        """The lane is not owned here any more."""
        self.tasks.cancel(lane)

    # --- from the load to the settlement ---

    def loaded(self, lane: Lane) -> None:
        """The lane has something to send."""
        if lane.is_suspect:
            self.recovery.begin(lane)
        elif lane.has_unsent:
            lane.touch(self._clock.monotonic())
            self._dispatcher.offer(lane)

    def find_head(self, lane: Lane) -> None:
        """The head of a strict lane, if there is one, may wait until another time than is known here."""
        if lane.order is not None and lane.order.head is not None:
            self.tasks.run(lane, self._heads.find(lane))

    def wants_probe(self, lane: Lane) -> None:
        """The lane's circuit asks for a probe, and there is something to send."""
        if not lane.is_suspect:  # else it is sent with care, and the probe is seen to there
            self.tasks.run(lane, self._probes.send(lane))

    def _task_ended(self, lane: Lane) -> None:
        """What held its lane back may be over; suspects are sent with care instead."""
        if not lane.is_suspect:
            self._dispatcher.offer(lane)

    def landed(self, flight: Flight, settlement: Settlement, asked: float | None) -> None:
        """An attempt was answered."""
        lane, attempt = flight.lane, settlement.attempt
        before = lane.health
        try:
            is_turned = lane.landed(
                attempt.outcome,
                duration=attempt.duration,
                asked=asked,
                was_probe=flight.is_probe,
                at=self._clock.monotonic(),
            )
            if is_turned and not lane.is_lost:
                _say_turned(lane, attempt.outcome)
        except Exception:  # an error in the lane must not keep the delivery from being settled
            log.exception("lane.failed", delivery=ids.show("delivery", attempt.delivery_id))
        self._dispatcher.finish(flight.health, flight.prepared.host)
        if not lane.is_ordinary or lane.health is not before or settlement.gone is not None:
            self._conclude(lane, before, settlement)
        self._settler.add(lane, settlement)
        if lane.has_unsent:
            self._dispatcher.offer(lane)
        if self._dispatcher.waiting:
            self._dispatcher.pump()

    def _conclude(self, lane: Lane, before: LaneHealth, settlement: Settlement) -> None:
        """The answer changes what is sent next."""
        try:
            if lane.health is not before:
                self._loader.regraded(lane, before)
                self._dispatcher.regraded(lane, before)
            if lane.conclude(settlement):
                self.tasks.cancel(lane)
        except Exception:
            log.exception("lane.failed", delivery=ids.show("delivery", settlement.attempt.delivery_id))

    def not_sent(self, flight: Flight) -> None:
        """No byte of an attempt was sent."""
        lane = flight.lane
        if lane.not_sent(flight.delivery):
            self._unsent[lane] = (
                flight.full
            )  # offered again by the next good pulse, or one that sees room there
        self._dispatcher.finish(flight.health, flight.prepared.host)
        self.progress.set()

    def settled(self, lane: Lane, settlement: Settlement, verdict: Verdict) -> None:
        """The end of an attempt is stored."""
        id = settlement.attempt.delivery_id
        lane.settled(id)
        if verdict is Verdict.LATE and lane.is_lost:
            return  # whoever owns the lane now still has to do it: that may be this worker, and its turn may have come
        if settlement.gone is not None:
            self._gone_settled(lane)
        self._loader.settled(id)
        self.recovery.settled(id)
        if settlement.state is State.PENDING and verdict is not Verdict.LATE:
            self._loader.expect(lane, settlement.due_at)
        if lane.behind and lane.wants_more():
            self._loader.nudge(lane)
        if lane.order is not None:
            self._dispatcher.offer(lane)

    def _gone_settled(self, lane: Lane) -> None:
        """The settlement disabled the endpoint, unless it was changed since: the catalogue will show it."""
        prepared = self._catalogue.prepared(lane.endpoint_id)
        if prepared is not None and prepared.endpoint.enabled:
            self._gone.add(lane.endpoint_id)
        self._on_gone()

    def set_aside(self, lane: Lane, settlement: Settlement) -> None:
        """A settlement cannot be written: the lane goes on without it."""
        lane.leave_unsettled()
        self.recovery.settled(settlement.attempt.delivery_id)
        self._dispatcher.offer(lane)

    # --- from outside ---

    def changed(self, endpoint: EndpointId, changes: Sequence[Change]) -> None:
        """An operator changed the endpoint."""
        if endpoint in self._gone:
            self._gone.discard(endpoint)
            self._say_disabled(endpoint)
        lane = self._ownership.lanes.get(endpoint)
        if lane is None:
            return
        was_closed = lane.flow.breaker.is_closed
        lane.follow(self._catalogue.prepared(endpoint))
        for change in changes:
            if change.kind == "reset":
                lane.flow.reset(change.n)
        if lane.flow.breaker.is_closed and not was_closed:
            say_closed(lane, "an operator closed it")
        if lane.is_careful:
            if lane.is_held:
                return  # its suspects are marked and go first; everything is read again after them
            self.tasks.cancel(lane)
        lane.begin_again()
        self.find_head(lane)
        self._loader.nudge(lane)

    def _say_disabled(self, id: EndpointId) -> None:
        prepared = self._catalogue.prepared(id)
        if prepared is not None and not prepared.endpoint.enabled:
            log.warning(
                "endpoint.disabled",
                endpoint_id=ids.show("endpoint", id),
                account=prepared.endpoint.account,
                reason=prepared.endpoint.disabled_reason,
            )

    def pulsed(self) -> None:
        """A good pulse: what could not be sent may be sent now."""
        unsent, self._unsent = self._unsent, {}
        room: dict[Host, float] = {}
        for lane, host in unsent.items():
            if host is not None and not lane.is_lost:
                left = room.setdefault(host, host.cap - host.in_flight)
                if left <= 0:
                    self._unsent[lane] = host
                    continue
                room[host] = left - 1
            self._dispatcher.offer(lane)
        self._dispatcher.look_at_alarms()
        self._dispatcher.call_waiting()
        self._dispatcher.pump()


def _say_turned(lane: Lane, outcome: Outcome) -> None:
    if lane.flow.breaker.is_closed:
        say_closed(lane, f"the probe was {outcome.value}")
    else:
        say_opened(lane)
