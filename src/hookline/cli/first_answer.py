"""Waits for the receiver's answer to a delivery's first request, or says why it was not sent."""

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookline.cli.client import Client

_LOOK_EVERY = 0.1  # seconds
_LOOKS = 700  # a receiver has up to a minute to answer

# By `waiting_for`, with the next step.
_WHY = {
    "due": "it is not due yet",
    "circuit": "the endpoint's circuit is open; `hookline endpoints reset-circuit` closes it",
    "receiver": "the receiver asked to wait (Retry-After)",
    "rate": "the endpoint's rate limit is reached",
    "slot": "no worker has a free slot for it; check with `hookline doctor`",
    "order": "an earlier delivery has not ended (strict ordering)",
    "paused": "the endpoint is paused; `hookline endpoints resume` resumes it",
    "disabled": "the endpoint is disabled; `hookline endpoints enable` enables it",
}


def answered(client: "Client", delivery_id: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The delivery, and its first attempt if it was made in time."""
    delivery: dict[str, Any] = client.get(f"/v1/deliveries/{delivery_id}")
    for _ in range(_LOOKS):
        if delivery["attempts"] or delivery["state"] != "pending":
            break
        threading.Event().wait(_LOOK_EVERY)
        delivery = client.get(f"/v1/deliveries/{delivery_id}")
    attempts = list(client.pages(f"/v1/deliveries/{delivery_id}/attempts", limit=None))
    return delivery, attempts[-1] if attempts else None


def why_not_sent(delivery: dict[str, Any]) -> str:
    """The reason why a delivery was not sent, with the next step if there is one."""
    if delivery["state"] != "pending":
        return f"it is {delivery['state']}"
    return why_waiting(delivery["waiting_for"])


def why_waiting(waiting_for: str) -> str:
    """What a pending delivery waits for, with the next step if there is one."""
    return _WHY.get(waiting_for, f"it waits for {waiting_for}")
