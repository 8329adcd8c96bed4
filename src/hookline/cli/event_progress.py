"""Follows an event until all its deliveries have ended.

It polls. The deliveries do not depend on it: interrupting the command changes nothing about them.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hookline.cli.exits import FAILED, CommandError
from hookline.cli.first_answer import why_waiting
from hookline.cli.output import counted, printable
from hookline.cli.printing.columns import EndpointUrls, answer_of_delivery, short_url, took
from hookline.cli.printing.short_ids import ShortIds
from hookline.cli.printing.times import Times

if TYPE_CHECKING:
    from hookline.cli.client import Client

_LOOK_EVERY = 0.2  # seconds
_LOOK_AT_MANY_EVERY = 2.0
_MANY = 200  # deliveries, a page of them

Delivery = Mapping[str, Any]


def follow_event(client: "Client", event_id: str, *, timeout: float) -> list[Delivery]:
    """The event's deliveries when all have ended or the time is up; says each change on stderr."""
    from hookline.clock import SystemClock

    clock = SystemClock()
    until = clock.monotonic() + timeout
    seen: dict[str, tuple[Any, ...]] = {}
    urls = EndpointUrls(client)
    try:
        while True:
            found = list(client.pages(f"/v1/events/{event_id}/deliveries", limit=None))
            short = ShortIds(each["id"] for each in found)
            for each in reversed(found):  # in the order of the fan-out
                now = each["state"], each["attempts"], _held_by(each)
                if seen.get(each["id"]) != now:
                    seen[each["id"]] = now
                    url = short_url(urls.of(each["endpoint_id"]) or "a deleted endpoint")
                    text = printable(f"{url}: {progress(each)}")
                    click.echo(f"{short.show(each['id'])} {text}", err=True)
            left = until - clock.monotonic()
            if left <= 0 or all(each["state"] != "pending" for each in found):
                return found
            every = _LOOK_EVERY if len(found) <= _MANY else _LOOK_AT_MANY_EVERY
            threading.Event().wait(min(every, left))
    except KeyboardInterrupt:
        click.echo(
            f"The deliveries continue on the server; `hookline events deliveries {event_id}` shows them.",
            err=True,
        )
        raise


def progress(delivery: Delivery) -> str:
    """What a delivery has come to, in words."""
    state, tries = delivery["state"], delivery["attempts"]
    answer = answer_of_delivery(delivery)
    if state == "delivered":
        return f"delivered, {answer} in {took(delivery['last_duration_ms'])}, attempt {tries}"
    if state == "pending":
        held = _held_by(delivery)
        why = why_waiting(held) if held else f"next try {Times().show(delivery['due_at'])}" if tries else ""
        failed = f"attempt {tries} failed: {answer}" if tries else ""
        return "; ".join(filter(None, [failed or "pending", why]))
    reason = f" ({delivery['reason']})" if delivery["reason"] not in (None, state) else ""
    return f"{state}{reason}" + (f" after {counted(tries, 'attempt', 'attempts')}: {answer}" if tries else "")


def _held_by(delivery: Delivery) -> str | None:
    """What keeps it waiting, if a person can do something about it; a free slot is there a moment later."""
    waits: str | None = delivery["waiting_for"]
    return None if waits in ("due", "slot") else waits


def check_all_delivered(deliveries: Sequence[Delivery], *, timeout: str) -> None:
    """Raise unless all were delivered."""
    count = {
        state: sum(each["state"] == state for each in deliveries)
        for state in ("pending", "dead", "cancelled")
    }
    said = list(_shortfall(count, len(deliveries)))
    if said:
        up = f"the time is up ({timeout}): " if count["pending"] else ""
        raise CommandError(f"{up}{', '.join(said)}.", FAILED)


def _shortfall(count: Mapping[str, int], all: int) -> Iterator[str]:
    for state, words in (("pending", "still pending"), ("dead", "dead"), ("cancelled", "cancelled")):
        if count[state]:
            yield f"{count[state]:,} of {counted(all, 'delivery', 'deliveries')} {words}"
