"""Checks many events that a program publishes together, and shows what became of a publish."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hookline import rfc3339
from hookline.client.answers import Published
from hookline.client.call import moment
from hookline.client.publishing import NewEvent, new_events, payload_bytes
from hookline.errors import HooklineError, Invalid, TooLarge, Unreadable
from hookline.ids import show

if TYPE_CHECKING:  # loaded with the first object
    from hookline import app
    from hookline.pipeline.intake import drafts


def checked_together(
    events: Iterable[NewEvent], hookline: "app.Hookline"
) -> "list[drafts.Draft | HooklineError]":
    """The draft of each event, or why it is refused; raises where a client would, which could not send them."""
    read: list[drafts.Draft | HooklineError] = []
    for place, (event, body) in enumerate(_sendable(events, hookline.settings.batch_limit_bytes)):
        try:
            read.append(
                hookline.draft(
                    event.type,
                    body,
                    account=event.account,
                    idempotency_key=event.idempotency_key,
                    deliver_at=event.deliver_at,
                    hops=event.hops,
                )
            )
        except Invalid as error:
            read.append(error.under(f"/events/{place}"))
        except (TooLarge, Unreadable) as error:
            read.append(error)
    return read


def shown(published: "drafts.Published", hookline: "app.Hookline") -> Published:
    """A publish as the API answers it."""
    return Published(
        id=show("event", published.id),
        type=published.type,
        account=published.account,
        created_at=rfc3339.moment(hookline.clock.shown(published.created_at)),
        deliveries=published.deliveries,
        duplicate=published.duplicate,
    )


def _sendable(events: Iterable[NewEvent], limit_bytes: int) -> list[tuple[NewEvent, bytes]]:
    from hookline.api.publishing.envelope import BATCH_LIMIT  # loaded with the first object

    found: list[tuple[NewEvent, bytes]] = []
    size = 0
    given = new_events(events)
    if len(given) > BATCH_LIMIT:
        text = f"A batch has at most {BATCH_LIMIT:,} events; these are {len(given):,}."
        raise Invalid(text, pointer="/events", code="too_many_events")
    for event in given:
        if event.deliver_at is not None:
            moment("deliver_at", event.deliver_at)
        body = payload_bytes(event.payload)
        size += len(body)
        if size > limit_bytes:
            raise TooLarge("The payloads of a batch", limit_bytes=limit_bytes)
        found.append((event, body))
    return found
