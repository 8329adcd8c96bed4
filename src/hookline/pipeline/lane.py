"""What does a worker know of a lane it owns?

The lane's unsent deliveries in their two queues, the ids it must not load again, and how far it has read.
Everything here is memory: losing it loses nothing, the rows are still pending.
"""

from collections import deque

from hookline.model import FOREVER, LONG_AGO, DeliveryId, EndpointId, Queue
from hookline.pipeline.outlet import Outlet
from hookline.rules.slots import Health, is_retrys_turn, shares, window_after
from hookline.store.contract import Loaded, Want

_MEMORY = 15.0  # seconds: rows may commit this late with a smaller seq and still be seen by a floored load
_FULL_LOOK = 30.0  # seconds between loads without a floor


class Buffers:
    """How many deliveries the lanes of a worker hold in memory, by the lanes' health.

    Each class has its own share, as with slots: what hanging endpoints leave lying here must not keep a
    healthy lane from reading its rows.
    """

    __slots__ = ("_limits", "counts")

    def __init__(self, slots: int) -> None:
        self.counts = [0, 0, 0]
        self._limits = tuple(2 * share for share in shares(slots))

    def room(self, health: Health) -> int:
        """How many more deliveries lanes of this health may hold."""
        return self._limits[health] - self.counts[health]


class Lane:
    """One owned lane."""

    __slots__ = (
        "_buffers",
        "_full_look_at",
        "_recent",
        "_seen_due",
        "_seen_seq",
        "_settled_below",
        "active_at",
        "behind",
        "endpoint_id",
        "epoch",
        "generation",
        "health",
        "in_flight",
        "known",
        "loaded_at",
        "lost",
        "missed",
        "next_due",
        "outlet",
        "polled_at",
        "queued",
        "ready",
        "releasing",
        "sends",
        "timed",
        "unsettled",
        "window",
    )

    def __init__(
        self, endpoint_id: EndpointId, epoch: int, outlet: Outlet | None, *, at: float, buffers: Buffers
    ) -> None:
        self.endpoint_id = endpoint_id
        self.epoch = epoch
        self.outlet = outlet  # None: the endpoint is deleted; nothing is sent
        self.ready: deque[Loaded] = deque()
        self.timed: deque[Loaded] = deque()
        self.known: dict[DeliveryId, Loaded | None] = {}  # None: reserved, its accept is under way
        self.in_flight = 0
        self.unsettled = 0  # answered, the settle not yet acknowledged
        self.health = Health.UNTRIED if outlet is None else outlet.health
        self.window = self.cap if self.health is Health.PROVEN else 1
        self.behind = True  # the store may hold rows that are not here; nothing is handed over past them
        self.missed = False  # a hand-over was turned away while a load was under way
        self.releasing = False
        self.lost = False
        self.queued = False  # stands in the dispatcher's line
        self.sends = 0
        self.generation = 0  # counts how often unsent rows were forgotten
        self.active_at = at
        self.polled_at = LONG_AGO  # or of the wish to be looked at now
        self.loaded_at = LONG_AGO
        self.next_due = FOREVER  # store time of the earliest retry this owner knows of
        self._buffers = buffers
        self._seen_seq = 0
        self._seen_due = LONG_AGO
        self._recent = (at, 0, LONG_AGO)
        self._settled_below = (0, LONG_AGO)  # seq and due seen at least _MEMORY ago
        self._full_look_at = LONG_AGO

    @property
    def cap(self) -> int:
        """Requests under way at most."""
        return 1 if self.outlet is None else self.outlet.endpoint.max_in_flight

    @property
    def is_held(self) -> bool:
        """May deliveries be handed to it? (The worker's pulse must be fresh too.)"""
        return not (self.releasing or self.lost) and self.outlet is not None and self.outlet.endpoint.enabled

    @property
    def is_idle(self) -> bool:
        return not (self.known or self.in_flight or self.unsettled)

    def room(self) -> int:
        """How many more deliveries may be kept in memory."""
        return 2 * self.cap - len(self.known)

    def turn(self, health: Health) -> None:
        """Its last attempt went like this."""
        self._buffers.counts[self.health] -= len(self.known)
        self._buffers.counts[health] += len(self.known)
        self.health = health
        self.window = window_after(self.window, health, cap=self.cap)

    def can_send(self) -> bool:
        """Is there something to send now, as far as the lane itself is concerned?"""
        return bool(self.ready or self.timed) and self.in_flight < self.window and self.is_held

    def pop(self) -> Loaded:
        """The next delivery: fresh ones first, with a share for the timed."""
        self.sends += 1
        if self.timed and (not self.ready or is_retrys_turn(self.sends)):
            return self.timed.popleft()
        return self.ready.popleft()

    def push_back(self, delivery: Loaded) -> None:
        """Put back what was taken and not sent."""
        (self.ready if delivery.queue is Queue.READY else self.timed).appendleft(delivery)

    def reserve(self, id: DeliveryId) -> None:
        """An accept is about to write this delivery: no load may bring it before it is handed over."""
        self.known[id] = None
        self._buffers.counts[self.health] += 1

    def add(self, delivery: Loaded) -> None:
        """Keep a delivery, reserved before or loaded now, until it is settled."""
        if delivery.id not in self.known:
            self._buffers.counts[self.health] += 1
        self.known[delivery.id] = delivery
        if delivery.queue is Queue.READY:
            self.ready.append(delivery)
            self._seen_seq = max(self._seen_seq, delivery.seq)
        else:
            self.timed.append(delivery)
            self._seen_due = max(self._seen_due, delivery.due_at)

    def forget(self, id: DeliveryId) -> None:
        """The settle is acknowledged, or the reservation dropped."""
        if id in self.known:
            del self.known[id]
            self._buffers.counts[self.health] -= 1

    def lose(self) -> None:
        """The lane is another's now, or nobody's: nothing in memory counts any more."""
        self.lost = True
        self._buffers.counts[self.health] -= len(self.known)
        self.known.clear()
        self.ready.clear()
        self.timed.clear()

    def forget_unsent(self) -> None:
        """Drop what is not under way, so that it is read again as the store has it now."""
        for delivery in (*self.ready, *self.timed):
            self.forget(delivery.id)
        self.ready.clear()
        self.timed.clear()
        self.generation += 1
        self.read_again()

    def read_again(self) -> None:
        """The next load looks at everything."""
        self._full_look_at = LONG_AGO
        self.polled_at = LONG_AGO
        self.behind = True

    def want(self, room: int, *, at: float) -> Want:
        """What to ask the store for, with room for this many."""
        if at - self._recent[0] >= _MEMORY:
            self._settled_below = self._recent[1:]
            self._recent = (at, self._seen_seq, self._seen_due)
        timed = max(1, room // RETRIES_OF_ROOM)
        if at - self._full_look_at >= _FULL_LOOK:
            self._full_look_at = at
            return Want(self.endpoint_id, room, timed)
        floor, due_floor = self._settled_below
        for delivery in self.known.values():
            if delivery is None:
                continue
            if delivery.queue is Queue.READY:
                floor = min(floor, delivery.seq)
            else:
                due_floor = min(due_floor, delivery.due_at)
        return Want(self.endpoint_id, room, timed, floor, due_floor)


RETRIES_OF_ROOM = (
    2  # timed rows loaded at most: half the room, so that a backlog of retries cannot fill the buffer
)
