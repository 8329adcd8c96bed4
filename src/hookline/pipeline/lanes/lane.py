"""Holds what a worker knows of a lane it owns.

These are the lane's unsent deliveries in their two queues, the ids it must not load again, and how much it may have
under way. All of it is memory: losing it loses nothing, because the rows are still pending.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from hookline.model import FOREVER, LONG_AGO, DeliveryId, Ordering, Outcome, Queue
from hookline.pipeline.catalogue.prepared_endpoint import PreparedEndpoint
from hookline.pipeline.lanes.buffers import Buffers
from hookline.pipeline.lanes.flow_control import FlowControl
from hookline.pipeline.lanes.read_position import ReadPosition
from hookline.rules.slots import (
    RETRY_SHARE,
    SLOW,
    LaneHealth,
    depth,
    health_after,
    is_retrys_turn,
    window_after,
)
from hookline.store.contract import LaneNote, Loaded, Suspect, Taken, Want


def _nobody(lane: "Lane", before: LaneHealth) -> None:
    """Nobody keeps lanes by their health here."""


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
        "_is_gone",
        "_shared",
        "active_at",
        "alarm_at",
        "aside",
        "behind",
        "cap",
        "depth",
        "endpoint_id",
        "epoch",
        "flow",
        "generation",
        "has_few_ready",
        "health",
        "in_flight",
        "is_called",
        "is_careful",
        "is_held",
        "is_loading",
        "is_strict",
        "is_suspect",
        "kept",
        "known",
        "look_at",
        "lost",
        "missed",
        "next_due",
        "on_regraded",
        "parked_at",
        "polled_at",
        "prepared",
        "reading",
        "ready",
        "releasing",
        "sends",
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
    ) -> None:
        self.endpoint_id = taken.endpoint_id
        self.epoch = taken.epoch
        self.flow = FlowControl(taken, None if prepared is None else prepared.endpoint, now=now)
        self.is_suspect = taken.suspect  # its last owner died: what it holds is sent with care first
        self.is_careful = False  # being sent with care now: nothing more is loaded
        self._is_gone = False
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
        self.on_regraded: Callable[[Lane, LaneHealth], None] = _nobody  # told what its health was before
        self.behind = True  # the store may hold rows that are not here; nothing is handed over past them
        self.has_few_ready = False  # the last load found fewer fresh ones than there was room for
        self.missed = False  # something was committed while a load was under way, and is not here
        self.is_loading = False
        self._held_up: list[Loaded] = []  # reserved, and committed while a load was under way
        self.releasing = False
        self.lost = False
        self.parked_at: WaitingLine | None = None  # in whose line it stands: its host's, or that for memory
        self.is_called = False  # it was first in its host's line, and a slot was free
        self.sends = 0
        self.generation = 0  # counts how often unsent rows were forgotten
        self.active_at = at
        self.alarm_at = FOREVER  # when the dispatcher looks at it again by itself
        self.polled_at = LONG_AGO  # or of the wish to be looked at now
        self.look_at = FOREVER  # when the loader looks at it next, by the monotonic clock
        self.next_due = FOREVER  # store time of the earliest retry this owner knows of
        self._buffers = self._shared = buffers
        self.is_held = False  # may deliveries be handed to it? (The worker's pulse must be fresh too.)
        self.window = 1
        self.follow(prepared)
        self.reading = ReadPosition(at=at)
        self._doubt()
        if self.health is LaneHealth.PROVEN and not taken.suspect:
            self.window = self.cap

    def follow(self, prepared: PreparedEndpoint | None) -> None:
        """The endpoint is this now; None: it was deleted, and nothing is sent."""
        if prepared is not self.prepared:
            self._is_gone = False
        self.prepared = prepared
        if self.parked_at is not None and (prepared is None or prepared.host is not self.parked_at):
            self.unpark()
        endpoint = None if prepared is None else prepared.endpoint
        self.is_strict = endpoint is not None and endpoint.ordering is Ordering.STRICT
        self.cap = 1 if endpoint is None or self.is_strict else endpoint.max_in_flight
        self.depth = depth(self.cap, is_strict=self.is_strict)
        self._keep()
        self.window = min(self.window, self.cap)
        self.flow.follow(endpoint)
        self._restate()

    def _keep(self) -> None:
        # Memory is for what is soon sent: those that are not proven hold what they need to go on, no more.
        most = self._shared.most(self.health)
        self.kept = min(self.depth if self.health is LaneHealth.PROVEN else 2 * self.cap, most)

    def begin_release(self) -> None:
        """It is being let go: nothing is handed to it any more."""
        self.releasing = True
        self._restate()

    def keep(self) -> None:
        """It was not let go after all."""
        self.releasing = False
        self.read_again()
        self._restate()

    def stop(self, *, asked: float) -> None:
        """The endpoint of that version said that it is gone: nothing is sent to it until it is disabled, or changed."""
        if self.prepared is not None and self.prepared.endpoint.updated_at == asked:
            self._is_gone = True
            self._restate()

    def _restate(self) -> None:
        self.is_held = not (self.releasing or self.lost or self._is_gone) and (
            self.prepared is not None and self.prepared.is_open
        )

    @property
    def is_idle(self) -> bool:
        return not (self.known or self.in_flight or self.unsettled)

    @property
    def has_unsent(self) -> bool:
        return bool(self.ready or self.timed)

    @property
    def awaits_head(self) -> bool:
        """Must a delivery that is not in memory go before any other?"""
        return self.is_strict and self.flow.head is not None and self.flow.head not in self.known

    def room(self) -> int:
        """How many more deliveries may be kept in memory; there is always room for the head."""
        line = self._line()
        if line is None or not line.line:
            room = self.kept - len(self.known)
        else:
            room = min(self.kept, line.room_in_line()) - len(self.known)
        return max(1, room) if self.is_strict and self.awaits_head else room

    def wants_more(self) -> bool:
        """Is there so much room that a load is worth it? At half, or less while others wait for the same host."""
        line = self._line()
        if line is None or not line.line:
            return 2 * self.room() >= self.kept
        return self.room() >= max(1, min(self.kept, line.room_in_line()) // 2)

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
        if flow.is_plain and not self.is_strict:
            return True
        if self.is_strict and (self.in_flight or self.unsettled or not self._is_heads_turn()):
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
        if self.is_strict and (self.in_flight or self.unsettled or not self._is_heads_turn()):
            return False
        return not (self.flow.is_probing and self.in_flight)

    def free_window(self) -> int:
        """How many more it could send at once now, if it were given them."""
        if not self.is_held or self.parked_at is not None:
            return 0
        flow = self.flow
        free = self.window - self.in_flight - len(self.ready) - len(self.timed)
        if flow.is_plain and not self.is_strict:
            return max(0, free)
        if flow.wants_probe():
            return 0 if self.in_flight or self.has_unsent else 1
        if flow.opens_at() > flow.now() or (self.is_strict and self.unsettled):
            return 0
        return min(1, max(0, free))  # a probe, a rate or an order: one after the other

    def _is_heads_turn(self) -> bool:
        head = self.flow.head
        return head is None or any(delivery.id == head for delivery in self.timed)

    def pop(self) -> Loaded:
        """The next delivery: fresh ones first, with a share for the timed; a strict lane's head before all."""
        self.sends += 1
        head = self.flow.head
        if head is not None and self.is_strict:
            for delivery in self.timed:
                if delivery.id == head:
                    self.timed.remove(delivery)
                    return delivery
        if self.timed and (not self.ready or is_retrys_turn(self.sends)):
            return self.timed.popleft()
        return self.ready.popleft()

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

    def end_care(self) -> None:
        """The suspects that were read are settled; there may be more, for which there was no room at once."""
        self.is_careful = False
        # In strict order only one was under way.
        self.is_suspect = not self.is_strict and self.reading.has_unseen_suspects
        self.read_again()

    def forget_aside(self, id: DeliveryId) -> None:
        """What was set aside will not be sent."""
        self.aside.pop(id, None)
        self.forget(id)

    def push_back(self, delivery: Loaded) -> None:
        """Put back what was taken and not sent."""
        self.aside.pop(delivery.id, None)
        (self.ready if delivery.queue is Queue.READY else self.timed).appendleft(delivery)

    def unpop(self, delivery: Loaded) -> None:
        """Put back what was only looked at: whose turn it is stays as it was."""
        self.sends -= 1
        self.push_back(delivery)

    def landed(self, outcome: Outcome, *, duration: float, asked: float | None, was_probe: bool) -> None:
        """An attempt of it was answered."""
        if (
            outcome is Outcome.ACCEPTED
            and duration <= SLOW
            and self.health is LaneHealth.PROVEN
            and self.window == self.cap
            and self.flow.is_untroubled
        ):
            self.flow.count_success(duration)  # the way of nearly every attempt: nothing changes
            return
        self.flow.landed(outcome, duration=duration, asked=asked, was_probe=was_probe)
        health = health_after(outcome, self.flow.durations)
        self._buffers.counts[self.health] -= len(self.known)
        self._buffers.counts[health] += len(self.known)
        if health is not self.health:
            before, self.health = self.health, health
            self._keep()
            self._leave_beyond(self.kept)
            self.on_regraded(self, before)
        # After a probe the backlog is let out step by step, from one.
        self.window = 1 if was_probe else window_after(self.window, outcome, cap=self.cap)
        if self.prepared is not None:
            self.prepared.health = health

    def note(self) -> LaneNote:
        """What the next owner must know of it."""
        flow = self.flow
        return LaneNote(
            endpoint_id=self.endpoint_id,
            epoch=self.epoch,
            hold_until=flow.hold_until,
            head=flow.head,
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

    def loaded(self, *, all_of_them: bool) -> None:
        """The load has ended; did it bring everything there was?"""
        self.is_loading = False
        held_up, self._held_up = self._held_up, []
        for delivery in held_up:
            if not all_of_them:
                self.forget(delivery.id)
            elif delivery.id in self.known:
                self.add(delivery)

    def add(self, delivery: Loaded) -> None:
        """Keep a delivery, reserved before or loaded now, until it is settled."""
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
        if len(self.ready) + len(self.timed) > keep and not self.is_strict and not self.is_careful:
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

    def lose(self) -> None:
        """The lane is another's now, or nobody's: nothing in memory counts any more."""
        self.lost = True
        self._restate()
        self._buffers.counts[self.health] -= len(self.known)
        self._held_up.clear()
        self.known.clear()
        self.ready.clear()
        self.timed.clear()
        self.aside.clear()

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
        timed = (
            room if self.has_few_ready or self.is_suspect or self.is_strict else max(1, room // RETRY_SHARE)
        )
        if self.awaits_head:
            # From where it stands: what is due before it may not be sent before it, and would only take its room.
            return Want(self.endpoint_id, 0, 1, due_floor=self.flow.head_due or LONG_AGO)
        if self.is_suspect and not self.is_strict:
            return self.reading.want_suspects(self.endpoint_id, room)
        return self.reading.want(self.endpoint_id, room, timed, known=self.known.values(), at=at)
