"""Holds what a worker knows of a lane it owns.

These are the lane's state, its unsent deliveries in their two queues, the ids it must not load again, and how much it
may have under way. All of it is memory: losing it loses nothing, because the rows are still pending. Only this module
and the parts of a lane that it builds (flow control with the circuit, strict order, read position) change it.
"""

from collections import deque
from collections.abc import Callable, Container
from typing import Protocol

from hookline.model import FOREVER, LONG_AGO, DeliveryId, EndpointId, Ordering, Outcome, Queue
from hookline.pipeline.catalogue.prepared_endpoint import PreparedEndpoint
from hookline.pipeline.lanes.buffers import Buffers
from hookline.pipeline.lanes.flow_control import FlowControl
from hookline.pipeline.lanes.read_position import ReadPosition
from hookline.pipeline.lanes.strict_order import StrictOrder
from hookline.rules.lane_state import Mode, ModeStep, Recovery, RecoveryStep, mode_after, recovery_after
from hookline.rules.slots import (
    RETRY_SHARE,
    SLOW,
    LaneHealth,
    depth,
    health_after,
    is_retrys_turn,
    window_after,
)
from hookline.store.contract import LaneNote, Loaded, Settlement, Suspect, Taken, Want


class WaitingLine(Protocol):
    """Where lanes stand that wait for the same thing."""

    @property
    def line(self) -> "deque[Lane]": ...

    def room_in_line(self) -> int:
        """How many deliveries each of them may hold in memory meanwhile."""


class Lane:
    """One owned lane."""

    __slots__ = (
        "_buffers",
        "_held_up",
        "_shared",
        "active_at",
        "aside",
        "behind",
        "cap",
        "capacity",
        "depth",
        "endpoint_id",
        "epoch",
        "flow",
        "generation",
        "has_few_ready",
        "health",
        "in_flight",
        "is_called",
        "is_held",
        "is_loading",
        "is_ordinary",
        "known",
        "missed",
        "mode",
        "next_due",
        "order",
        "parked_at",
        "polled_at",
        "prepared",
        "reading",
        "ready",
        "recovery",
        "sends",
        "takes_fresh",
        "timed",
        "unsettled",
        "window",
    )

    def __init__(
        self,
        taken: Taken,
        prepared: PreparedEndpoint | None,
        *,
        at: float,
        now: Callable[[], float],
        buffers: Buffers,
        very_slow: Container[EndpointId],
    ) -> None:
        self.endpoint_id = taken.endpoint_id
        self.epoch = taken.epoch
        endpoint = None if prepared is None else prepared.endpoint
        self.flow = FlowControl(taken, endpoint, now=now, very_slow=very_slow)
        self.mode = Mode.OPEN
        self.recovery = Recovery.SUSPECT if taken.suspect else Recovery.NONE
        # None: deliveries are sent in parallel. A head that the last owner noted is given up then.
        self.order: StrictOrder | None = StrictOrder(self.flow, taken.head)
        self.prepared = prepared
        self.ready: deque[Loaded] = deque()
        self.timed: deque[Loaded] = deque()
        self.aside: dict[
            DeliveryId, Loaded
        ] = {}  # unsent, and out of the queues: suspects that await their turn
        self.known: dict[DeliveryId, Loaded | None] = {}  # None: reserved, its accept is under way
        self.in_flight = 0
        self.unsettled = 0  # answered, the settle not yet acknowledged
        self.health = LaneHealth.UNTRIED if prepared is None else prepared.health
        self.behind = True  # the store may hold rows that are not here; nothing is handed over past them
        self.has_few_ready = False  # the last load found fewer fresh ones than there was room for
        self.missed = False  # something was committed while a load was under way, and is not here
        self.is_loading = False
        self._held_up: list[Loaded] = []  # reserved, and committed while a load was under way
        self.parked_at: WaitingLine | None = None  # in whose line it stands: its host's, or that for memory
        self.is_called = False  # it was first in its host's line, and a slot was free
        self.sends = 0
        self.generation = 0  # counts how often unsent rows were forgotten
        self.active_at = at
        self.polled_at = LONG_AGO  # when it was last loaded; long ago: it is to be loaded now
        self.next_due = FOREVER  # store time of the earliest retry this owner knows of
        self._buffers = self._shared = buffers
        self.is_held = False  # may it send? (The worker's pulse must be fresh too.)
        self.is_ordinary = False  # neither in strict order nor recovering from its last owner's death
        self.takes_fresh = False  # may a delivery that was just committed be handed to it?
        self.window = 1
        self.follow(prepared)
        self.reading = ReadPosition(at=at)
        self._doubt()
        if self.health is LaneHealth.PROVEN and not taken.suspect:
            self.window = self.cap
        if taken.suspect and self.order is not None and prepared is not None:
            # What the dead owner sent may still be under way: the next one must not overtake it.
            self.flow.wait_out(now() + prepared.endpoint.timeout)

    # --- its state ---

    def follow(self, prepared: PreparedEndpoint | None) -> None:
        """The endpoint is this now; None: it was deleted, and nothing is sent."""
        if prepared is not self.prepared:
            self.mode = mode_after(self.mode, ModeStep.CHANGE)
        self.prepared = prepared
        if self.parked_at is not None and (prepared is None or prepared.host is not self.parked_at):
            self.unpark()
        endpoint = None if prepared is None else prepared.endpoint
        self.flow.follow(endpoint)
        if (
            endpoint is not None
        ):  # else it was deleted, or is not read yet: nothing is sent, and a head is kept
            self._follow_order(is_strict=endpoint.ordering is Ordering.STRICT)
        self.cap = 1 if endpoint is None or self.order is not None else endpoint.max_in_flight
        self.depth = depth(self.cap, is_strict=self.order is not None)
        self._set_capacity()
        self.window = min(self.window, self.cap)
        self._restate()

    def _follow_order(self, *, is_strict: bool) -> None:
        if is_strict:
            self.order = self.order or StrictOrder(self.flow, None)
            return
        if self.order is not None and self.order.head is not None:
            self.order.give_up()  # nothing waits for it any more
        self.order = None

    def _set_capacity(self) -> None:
        # Memory is for what is soon sent: those that are not proven hold what they need to go on, no more.
        most = self._shared.most(self.health)
        self.capacity = min(self.depth if self.health is LaneHealth.PROVEN else 2 * self.cap, most)

    def _step(self, step: ModeStep) -> None:
        self.mode = mode_after(self.mode, step)
        self._restate()

    def _care(self, care: RecoveryStep) -> None:
        self.recovery = recovery_after(self.recovery, care)
        self._restate()

    def _restate(self) -> None:
        self.is_held = self.mode is Mode.OPEN and self.prepared is not None and self.prepared.is_open
        self.is_ordinary = self.order is None and self.recovery is Recovery.NONE
        self.takes_fresh = self.is_held and self.is_ordinary

    def begin_release(self) -> None:
        """It is being let go: nothing is handed to it any more."""
        self._step(ModeStep.RELEASE)

    def keep(self) -> None:
        """It was not let go after all."""
        self._step(ModeStep.KEEP)
        self.read_again()

    def lose(self) -> None:
        """The lane is another's now, or nobody's: nothing in memory counts any more."""
        self._step(ModeStep.LOSE)
        self._buffers.counts[self.health] -= len(self.known)
        self._held_up.clear()
        self.known.clear()
        self.ready.clear()
        self.timed.clear()
        self.aside.clear()

    def begin_care(self) -> None:
        """What a dead owner may have had under way is sent with care from now on."""
        self._care(RecoveryStep.BEGIN)

    def end_care(self) -> None:
        """The suspects that were read are settled; there may be more, for which there was no room at once."""
        # In strict order only one was under way.
        is_over = self.order is not None or not self.reading.has_unseen_suspects
        self._care(RecoveryStep.FINISH if is_over else RecoveryStep.INTERRUPT)
        self.read_again()

    def begin_again(self) -> None:
        """Drop what is not under way, suspects too, so that it is read again as the store has it now."""
        self._care(RecoveryStep.INTERRUPT)
        self.forget_unsent()

    @property
    def is_lost(self) -> bool:
        return self.mode is Mode.LOST

    @property
    def is_releasing(self) -> bool:
        return self.mode is Mode.RELEASING

    @property
    def is_strict(self) -> bool:
        return self.order is not None

    @property
    def is_suspect(self) -> bool:
        """May a dead owner have had some of its deliveries under way?"""
        return self.recovery is not Recovery.NONE

    @property
    def is_careful(self) -> bool:
        """Are these being sent with care now?"""
        return self.recovery is Recovery.CAREFUL

    @property
    def is_at_rest(self) -> bool:
        """Is nothing under way, and no release either?"""
        return not (self.in_flight or self.unsettled or self.is_careful or self.is_releasing)

    @property
    def is_movable(self) -> bool:
        """May it be given to another worker now? What is suspect is sent here first."""
        return self.is_at_rest and not self.is_suspect

    # --- what it may send ---

    @property
    def is_idle(self) -> bool:
        return not (self.known or self.in_flight or self.unsettled)

    @property
    def has_unsent(self) -> bool:
        return bool(self.ready or self.timed)

    @property
    def awaits_head(self) -> bool:
        """Must a delivery that is not in memory go before any other?"""
        return self.order is not None and self.order.awaits(self.known)

    def room(self) -> int:
        """How many more deliveries may be kept in memory; there is always room for the head."""
        line = self._line()
        if line is None or not line.line:
            room = self.capacity - len(self.known)
        else:
            room = min(self.capacity, line.room_in_line()) - len(self.known)
        return max(1, room) if self.order is not None and self.order.awaits(self.known) else room

    def wants_more(self) -> bool:
        """Is there so much room that a load is worth it? At half, or less while others wait for the same host."""
        line = self._line()
        if line is None or not line.line:
            return 2 * self.room() >= self.capacity
        return self.room() >= max(1, min(self.capacity, line.room_in_line()) // 2)

    def _line(self) -> WaitingLine | None:
        """The line that what it holds has to share memory with."""
        if self.parked_at is not None or self.prepared is None:
            return self.parked_at
        return self.prepared.host

    def can_send(self) -> bool:
        """Is there something to send now, as far as the lane itself is concerned?"""
        if not self.is_held or self.in_flight >= self.window or not (self.ready or self.timed):
            return False
        if self.parked_at is not None:
            return False
        flow = self.flow
        if flow.is_plain and self.order is None:
            return True
        if not self._is_turn():
            return False
        if flow.is_probing and self.in_flight:
            return False
        return flow.opens_at() <= flow.now()

    def awaits_time(self) -> bool:
        """Could it send if only its gate were open?"""
        if (
            not self.is_held
            or self.in_flight >= self.window
            or not self.has_unsent
            or self.parked_at is not None
        ):
            return False
        return self._is_turn() and not (self.flow.is_probing and self.in_flight)

    def free_window(self) -> int:
        """How many more it could send at once now, if it were given them."""
        if not self.is_held or self.parked_at is not None:
            return 0
        flow = self.flow
        free = self.window - self.in_flight - len(self.ready) - len(self.timed)
        if flow.is_plain and self.order is None:
            return max(0, free)
        if flow.wants_probe():
            return 0 if self.in_flight or self.has_unsent else 1
        if flow.opens_at() > flow.now() or (self.order is not None and self.unsettled):
            return 0
        return min(1, max(0, free))  # a probe, a rate or an order: one after the other

    def _is_turn(self) -> bool:
        """Whether order lets the next one be sent."""
        order = self.order
        return order is None or (not (self.in_flight or self.unsettled) and order.has_turn(self.timed))

    def pop(self) -> Loaded:
        """Begin the next delivery: fresh ones first, with a share for the timed; a strict lane's head before all."""
        self.sends += 1
        self.in_flight += 1
        if self.order is not None:
            head = self.order.pop(self.timed)
            if head is not None:
                return head
        if self.timed and (not self.ready or is_retrys_turn(self.sends)):
            return self.timed.popleft()
        return self.ready.popleft()

    def unpop(self, delivery: Loaded) -> None:
        """Put back what was only looked at: whose turn it is stays as it was."""
        self.sends -= 1
        self.in_flight -= 1
        self.push_back(delivery)

    def not_sent(self, delivery: Loaded) -> bool:
        """Put back what was begun and not sent; False: it is not this lane's any more."""
        self.in_flight -= 1
        if delivery.id not in self.known or self.is_lost:
            return False
        self.push_back(delivery)
        return True

    def set_aside(self) -> list[Loaded]:
        """Take everything that is unsent out of the queues, to be put back when its turn comes."""
        self.aside = {delivery.id: delivery for delivery in (*self.ready, *self.timed)}
        self.ready.clear()
        self.timed.clear()
        return list(self.aside.values())

    def _doubt(self) -> None:
        """Nothing of what a dead owner may have had under way is read, or all of it was forgotten."""
        if self.is_suspect:
            self.reading.doubt(self.depth)

    def forget_aside(self, id: DeliveryId) -> None:
        """What was set aside will not be sent."""
        self.aside.pop(id, None)
        self.forget(id)

    def push_back(self, delivery: Loaded) -> None:
        """Put back what was taken and not sent."""
        self.aside.pop(delivery.id, None)
        (self.ready if delivery.queue is Queue.READY else self.timed).appendleft(delivery)

    # --- what becomes of it ---

    def landed(
        self, outcome: Outcome, *, duration: float, asked: float | None, was_probe: bool, at: float
    ) -> bool:
        """An attempt of it was answered, and is settled from now on; says whether that opened or closed the circuit."""
        self.in_flight -= 1
        self.unsettled += 1
        self.active_at = at
        flow = self.flow
        if (
            outcome is Outcome.ACCEPTED
            and duration <= SLOW
            and self.health is LaneHealth.PROVEN
            and self.window == self.cap
            and flow.is_untroubled
        ):
            flow.durations.append(duration)
            flow.breaker.count_success()  # the way of nearly every attempt: nothing changes
            return False
        is_turned = flow.landed(outcome, duration=duration, asked=asked, was_probe=was_probe)
        health = health_after(outcome, flow.durations)
        self._buffers.counts[self.health] -= len(self.known)
        self._buffers.counts[health] += len(self.known)
        if health is not self.health:
            self.health = health
            self._set_capacity()
            self._leave_beyond(self.capacity)
        # After a probe the backlog is let out step by step, from one.
        self.window = 1 if was_probe else window_after(self.window, outcome, cap=self.cap)
        if self.prepared is not None:
            self.prepared.health = health
        return is_turned

    def conclude(self, settlement: Settlement) -> bool:
        """What an answer means for what is sent next; says whether sending with care ends here."""
        version = None if self.prepared is None else self.prepared.endpoint.updated_at
        if settlement.gone is not None and settlement.gone == version:  # else it may have another URL by now
            self._step(ModeStep.STOP)
        is_first = self.order is not None and self.order.landed(settlement)
        ends_care = self.is_careful and (is_first or self.flow.wants_no_probe_yet())
        if ends_care:
            # The circuit opened, or order holds: its other suspects wait with everything else.
            self._care(RecoveryStep.FINISH if self.order is not None else RecoveryStep.INTERRUPT)
        if ends_care or is_first:
            self.forget_unsent()  # they go after the head, and are read again then
        return ends_care

    def settled(self, id: DeliveryId) -> None:
        """The settle of one of its attempts is acknowledged."""
        self.unsettled -= 1
        self.forget(id)
        if self.order is not None and self.has_unsent and self.awaits_head:
            self.forget_unsent()  # read while the head was under way: it must leave room for it

    def leave_unsettled(self) -> None:
        """A settlement of it cannot be written: the lane goes on without it, and keeps its delivery in mind."""
        self.unsettled -= 1

    def settle_again(self) -> None:
        """That settlement is tried once more."""
        self.unsettled += 1

    def note(self) -> LaneNote:
        """What the next owner must know of it."""
        flow = self.flow
        return LaneNote(
            endpoint_id=self.endpoint_id,
            epoch=self.epoch,
            hold_until=flow.hold_until,
            head=None if self.order is None else self.order.head,
            circuit=flow.circuit,
            applied=flow.applied,
            rest_until=flow.rest_until,
        )

    def suspect(self, delivery: Loaded) -> Suspect:
        """A delivery of it, as a suspect."""
        return Suspect(delivery.id, self.endpoint_id, self.epoch, delivery.replays)

    def reserve(self, id: DeliveryId) -> None:
        """An accept is about to write this delivery: no load may bring it before it is handed over."""
        self.known[id] = None
        self._buffers.counts[self.health] += 1

    def is_reserved(self, id: DeliveryId) -> bool:
        """Is it only known by its id, until it is handed over?"""
        return id in self.known and self.known[id] is None

    def hold_up(self, delivery: Loaded) -> bool:
        """Keep what was reserved, now committed, until the load under way has brought what goes before it.

        False: there is no load under way. Without this a lane that fell behind would stay so for as long as events keep
        coming: after each load there would be some that it has not seen.
        """
        if not self.is_loading:
            return False
        self._held_up.append(delivery)
        return True

    def begin_load(self, *, at: float, now: float) -> None:
        """A load of it is under way."""
        self.missed = False
        self.is_loading = True
        self.polled_at = at
        if self.next_due <= now:
            self.next_due = FOREVER

    def loaded(self, want: Want, *, ready: int, timed: int) -> None:
        """The load brought so many rows."""
        if self.is_suspect:
            self.reading.saw_suspects(want, ready=ready, timed=timed)
        self.has_few_ready = ready < want.ready
        self.behind = self.missed or ready >= want.ready or timed >= want.timed
        self._end_load(is_complete=not self.behind)

    def not_loaded(self) -> None:
        """The load failed, or what it brought is out of date."""
        self._end_load(is_complete=False)

    def _end_load(self, *, is_complete: bool) -> None:
        self.is_loading = False
        held_up, self._held_up = self._held_up, []
        for delivery in held_up:
            if not is_complete:
                self.forget(delivery.id)
            elif delivery.id in self.known:
                self.add(delivery)

    def want_load(self) -> None:
        """It is to be loaded as soon as possible."""
        self.polled_at = LONG_AGO

    def miss(self) -> None:
        """The store holds a due delivery of it that is not in memory."""
        self.behind = self.missed = True

    def has_all(self) -> None:
        """It was empty when it was woken for what is handed to it now: the store holds nothing else."""
        self.behind = False

    def expect(self, due_at: float) -> bool:
        """A delivery of it is due then; says whether it is the first."""
        if due_at >= self.next_due:
            return False
        self.next_due = due_at
        return True

    def touch(self, at: float) -> None:
        """It has something to send."""
        self.active_at = at

    def call(self) -> None:
        """It was first in its host's line, and a slot is free."""
        self.is_called = True

    def end_call(self) -> None:
        """It sends now, or has nothing to send."""
        self.is_called = False

    def add(self, delivery: Loaded, *, at: float | None = None) -> None:
        """Keep a delivery, handed over at that time or loaded, until it is settled."""
        if at is not None:
            self.active_at = at
        if delivery.id not in self.known:
            self._buffers.counts[self.health] += 1
        self.known[delivery.id] = delivery
        reading = self.reading
        if delivery.queue is Queue.READY:
            self.ready.append(delivery)
            if delivery.seq > reading.seen_seq:
                reading.seen_seq = delivery.seq
        else:
            self.timed.append(delivery)
            if delivery.due_at > reading.seen_due:
                reading.seen_due = delivery.due_at

    def forget(self, id: DeliveryId) -> None:
        """The settle is acknowledged, or the reservation dropped."""
        if id in self.known:
            del self.known[id]
            self._buffers.counts[self.health] -= 1

    def park(self, line: WaitingLine) -> None:
        """It waits for its host, or for memory.

        What it holds beyond its share is left to be read again, and the rest is no longer counted with what other
        lanes hold: they must not run out of buffers because of it.
        """
        self.parked_at = line
        self.is_called = False
        self._shared.counts[self.health] -= len(self.known)
        self._buffers = Buffers(0)
        self._buffers.counts[self.health] += len(self.known)
        self._leave_beyond(line.room_in_line())

    def _leave_beyond(self, keep: int) -> None:
        """Leave what it holds unsent, beyond so many, to be read again."""
        # A strict lane holds its head and little else; what is sent with care is waited for one by one.
        if len(self.ready) + len(self.timed) > keep and self.order is None and not self.is_careful:
            for queue in (self.timed, self.ready):
                while queue and len(self.ready) + len(self.timed) > keep:
                    self.forget(queue.pop().id)
            self.generation += 1
            self.read_again()

    def unpark(self) -> None:
        """It stands in that line no more."""
        self.parked_at = None
        self._shared.counts[self.health] += len(self.known)
        self._buffers = self._shared

    def forget_unsent(self) -> None:
        """Drop what is not under way, so that it is read again as the store has it now."""
        for delivery in (*self.ready, *self.timed, *self._held_up, *self.aside.values()):
            self.forget(delivery.id)
        self._held_up.clear()
        self.ready.clear()
        self.timed.clear()
        self.aside.clear()
        self._doubt()
        self.generation += 1
        self.read_again()

    def read_again(self) -> None:
        """The next load looks at everything."""
        self.reading.begin_again()
        self.polled_at = LONG_AGO
        self.behind = True

    def want(self, room: int, *, at: float) -> Want:
        """What to ask the store for, with room for this many."""
        self.reading.remember(at)
        # Where fresh ones wait, retries are loaded in the share they are sent in: the buffer must not run out of
        # fresh ones first.
        timed = room if self.has_few_ready or not self.is_ordinary else max(1, room // RETRY_SHARE)
        if self.order is not None and self.order.awaits(self.known):
            # From where it stands: what is due before it may not be sent before it, and would only take its room.
            return Want(self.endpoint_id, 0, 1, due_floor=self.order.due or LONG_AGO)
        if self.is_suspect and self.order is None:
            return self.reading.want_suspects(self.endpoint_id, room)
        return self.reading.want(self.endpoint_id, room, timed, known=self.known.values(), at=at)
