"""Checks what an application publishes, with the API's messages.

Nothing of the database is touched: what is refused here was never written.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from secrets import SystemRandom
from typing import TYPE_CHECKING, Any, NewType

import msgspec

from hookline import rfc3339
from hookline.errors import Invalid, TooLarge, Unreadable
from hookline.model import DEFAULT_ACCOUNT
from hookline.outbox.limits import MOST_DRAFTS, publish_limits
from hookline.outbox.table import OutboxRow
from hookline.rules import hops as hop_counts
from hookline.validate import payload as payloads
from hookline.validate.names import check_account, check_idempotency_key, check_type
from hookline.validate.payload_encoding import Payload, encoded

if TYPE_CHECKING:
    from hookline.ids import Ids

EventId = NewType("EventId", str)  # as receivers and the API see it: evt_…

MAX_AHEAD_S = 365 * 86_400.0


class Draft(msgspec.Struct, frozen=True):
    """An event to publish with others."""

    type: str
    payload: Payload
    account: str = DEFAULT_ACCOUNT
    idempotency_key: str | None = None
    deliver_at: datetime | None = None
    hops: int = 0  # of the webhook that caused this publish (`Verified.hops`), so that loops end


def checked(draft: Draft) -> OutboxRow:
    """The row of a draft, under a new id; `Invalid` if the API would refuse it."""
    hops = hop_counts.checked(draft.hops, most=publish_limits().hops)
    return OutboxRow(
        type=check_type(draft.type),
        account=check_account(draft.account),
        idempotency_key=None
        if draft.idempotency_key is None
        else check_idempotency_key(draft.idempotency_key),
        deliver_at=None if draft.deliver_at is None else _moment(draft.deliver_at),
        hops=int(hops),
        payload=_encoded(draft.payload),
        id=_ids().event(),
    )


def checked_together(drafts: Iterable[Draft]) -> list[OutboxRow]:
    """The rows of drafts that are published all or none; `Invalid` names the draft."""
    limit = publish_limits().batch_bytes
    rows: list[OutboxRow] = []
    size = 0
    for place, draft in enumerate(islice(drafts, MOST_DRAFTS + 1)):
        if place == MOST_DRAFTS:
            raise Invalid(
                f"A batch has at most {MOST_DRAFTS:,} events. Publish the rest with another call in the same transaction.",
                code="too_many_events",
            )
        if not isinstance(draft, Draft):
            raise TypeError(f"drafts[{place}] is no hookline.outbox.Draft but {type(draft).__name__}.")
        try:
            row = checked(draft)
        except Invalid as error:
            raise Invalid(
                f"drafts[{place}]: {error.detail}", pointer=f"/{place}{error.pointer}", code=error.code
            ) from None
        size += len(row.payload)
        if size > limit:
            raise Invalid(
                f"The payloads of a batch may have at most {limit:,} bytes. "
                "Publish the rest with another call in the same transaction.",
                code="too_large",
            )
        rows.append(row)
    return rows


def shown(row: OutboxRow) -> EventId:
    """The row's id as people and programs see it."""
    from hookline.ids import show

    return EventId(show("event", row.id))


def _encoded(payload: Payload) -> bytes:
    body = encoded(payload)
    try:
        payloads.check(body, publish_limits().payload_bytes)
    except Unreadable as error:
        raise Invalid(error.detail, pointer="/payload", code=error.code) from None
    except TooLarge as error:
        raise Invalid(str(error), pointer="/payload", code="too_large") from None
    return body


def _moment(moment: Any) -> datetime:
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise Invalid("deliver_at is a datetime with a zone.", pointer="/deliver_at")
    at = moment.timestamp()
    if not rfc3339.can_be_shown(at):  # its zone can carry a moment out of the range
        raise Invalid("deliver_at lies in the years 1 to 9999.", pointer="/deliver_at")
    if at > _wall() + MAX_AHEAD_S:
        raise Invalid("deliver_at lies at most 365 days ahead.", pointer="/deliver_at")
    return moment.astimezone(UTC)


def _wall() -> float:
    from hookline.clock import SystemClock  # loads asyncio, which importing the outbox need not

    return SystemClock().wall()


@cache
def _ids() -> "Ids":
    from hookline.clock import SystemClock
    from hookline.ids import Ids

    # Of the system: processes that were forked from one would otherwise draw the same numbers.
    return Ids(SystemClock(), SystemRandom())
