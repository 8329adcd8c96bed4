"""Waits for the receiver's answer to a delivery's first request."""

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookline.cli.client import Client

_LOOK_EVERY = 0.1  # seconds
_LOOKS = 700  # a receiver has up to a minute to answer


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
