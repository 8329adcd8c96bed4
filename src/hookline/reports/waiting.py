"""Finds what a pending delivery waits for.

It is the first of these that holds it back. The owner of the lane knows best; if it is another process, what it knew at
its last heartbeat counts. If nobody is to be believed, the store answers alone.
"""

from hookline.model import FOREVER, Circuit, CircuitState, Delivery, Endpoint, Ordering, State
from hookline.store.contract import LaneRow

WORDS = ("due", "circuit", "receiver", "rate", "slot", "order", "paused", "disabled")


def waiting_for(
    delivery: Delivery,
    *,
    endpoint: Endpoint | None,
    lane: LaneRow | None,
    circuit: Circuit,
    owner_says: str | None,
    now: float,
) -> str | None:
    """One word; None for a delivery that is not pending. `owner_says`: what holds the lane back, as its owner knows."""
    if delivery.state is not State.PENDING:
        return None
    if endpoint is None or not endpoint.enabled:
        return "disabled"  # a deleted one is about to be cancelled
    if endpoint.paused:
        return "paused"
    rests = endpoint.circuit is not None and circuit.state is not CircuitState.CLOSED
    if rests and delivery.due_at <= max(now, circuit.probe_at or FOREVER):
        return "circuit"
    head = lane.head if lane else None
    is_strict = endpoint.ordering is Ordering.STRICT
    is_behind = is_strict and head not in (None, delivery.id)
    if lane is not None and lane.rest_until > now and delivery.due_at <= lane.rest_until and not is_behind:
        return "receiver"
    if delivery.due_at > now:
        return "due"
    if is_behind:
        return "order"
    if owner_says is not None and not (owner_says == "order" and head == delivery.id):
        return owner_says
    if lane is not None and lane.hold_until > now:
        return "due"
    # A strict lane owned elsewhere sends one at a time, and this is not the one.
    return "order" if is_strict and lane is not None and lane.owner is not None and head is None else "slot"
