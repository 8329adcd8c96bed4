"""Reads deliveries and attempts from stored rows, whatever the rows hold."""

from typing import Any

from hookline.model import NO_TIMINGS, Attempt, Delivery, Outcome, Queue
from hookline.store import spoiled_rows

_DELIVERY = {"queue": Queue.TIMED}
_ATTEMPT = {"outcome": Outcome.TRANSIENT}
_PHASES = ("dns", "connect", "tls", "first_byte")


def read_delivery(values: dict[str, Any]) -> Delivery | None:
    """The delivery in these columns; None: it has no id, endpoint or state."""
    death = {name: values.pop(f"death_{name}") for name in ("reason", "at", "attempts")}
    values["last_death"] = None if death["reason"] is None else death
    return spoiled_rows.read(Delivery, values, _DELIVERY)


def read_attempt(values: dict[str, Any]) -> Attempt | None:
    """The attempt in these columns; None: it has no id."""
    timings = {name: values.pop(name) for name in _PHASES}
    values["timings"] = NO_TIMINGS if all(each is None for each in timings.values()) else timings
    for name in ("request_headers", "response_headers"):
        values[name] = spoiled_rows.decoded(values[name])
    for name in ("late", "response_truncated"):
        values[name] = bool(values[name])
    values["response_body"] = values["response_body"] or b""
    return spoiled_rows.read(Attempt, values, _ATTEMPT)
