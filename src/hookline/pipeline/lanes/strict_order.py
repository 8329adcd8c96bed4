"""Keeps the order of a strict lane.

A delivery that failed goes before any other of its lane. It is the head: the lane waits until it is due, sends it, and
waits for its settlement. Heads are stored with the lane's note, so that the next owner keeps the order too. A lane
without strict order has no such object.
"""

from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

from hookline.model import LONG_AGO, Delivery, DeliveryId, State
from hookline.pipeline.lanes.flow_control import FlowControl
from hookline.store.contract import Loaded, Settlement, Store

if TYPE_CHECKING:
    from hookline.pipeline.lanes.lane import Lane


class StrictOrder:
    """The head of a strict lane."""

    __slots__ = ("_flow", "due", "head")

    def __init__(self, flow: FlowControl, head: DeliveryId | None) -> None:
        self._flow = flow
        self.head = head
        self.due: float | None = None  # where to find the head among the timed; None: to be looked up

    def landed(self, settlement: Settlement) -> bool:
        """An attempt was answered; says whether its delivery is the head now, so that all others wait."""
        id = settlement.attempt.delivery_id
        if settlement.state is State.PENDING:
            self.head, self.due = id, settlement.due_at
            self._flow.hold(settlement.due_at)
            return True
        if self.head == id:
            self.head, self.due = None, LONG_AGO
            self._flow.changed()
        return False

    def awaits(self, known: Container[DeliveryId]) -> bool:
        """Must a delivery that is not in memory go before any other?"""
        return self.head is not None and self.head not in known

    def has_turn(self, timed: deque[Loaded]) -> bool:
        """Is there no head, or is it here?"""
        head = self.head
        return head is None or any(delivery.id == head for delivery in timed)

    def pop(self, timed: deque[Loaded]) -> Loaded | None:
        """The head, if it is here."""
        for delivery in timed:
            if delivery.id == self.head:
                timed.remove(delivery)
                return delivery
        return None

    def first(self, suspects: Sequence[Loaded]) -> Sequence[Loaded]:
        """The one that a dead owner may have had under way: none may go before it, however few marks it has."""
        return [each for each in suspects if each.id == self.head] or suspects[:1]

    def found(self, delivery: Delivery | None) -> None:
        """The store was asked what became of the head: it may wait until another time, or be none any more."""
        if delivery is not None and delivery.state is State.PENDING and delivery.attempts:
            self.due = delivery.due_at
            self._flow.hold_anew(delivery.due_at)
        else:
            self.give_up()  # one that starts over is no head: it takes its turn with all others

    def give_up(self) -> None:
        """There is no head any more."""
        self.head, self.due = None, LONG_AGO
        self._flow.hold_anew(LONG_AGO)


class HeadFinder:
    """Asks the store where the heads of lanes wait."""

    def __init__(
        self, store: Store, *, nudge: "Callable[[Lane], None]", offer: "Callable[[Lane], None]"
    ) -> None:
        self._store = store
        self._nudge = nudge
        self._offer = offer

    async def find(self, lane: "Lane") -> None:
        """An operator may have moved the delivery that the lane waits for, or the last owner knew more."""
        while (order := lane.order) is not None and order.head is not None and order.head not in lane.known:
            believed, generation = (order.head, order.due), lane.generation
            found = await self._store.delivery(order.head)
            if lane.is_lost or lane.order is not order or (order.head, order.due) != believed:
                return  # it was sent meanwhile, and what was read is older than what is known here
            if lane.generation == generation:  # else the lane was changed again: what was read may be older
                order.found(found)
                self._nudge(lane)
                self._offer(lane)
                return
        # A head that is known is under way: its settlement says what becomes of it.
