"""What must a store be able to take away?

A part of the contract: see `store.contract` for what holds for every verb. The walk goes along the events' ids, which
begin with the time they were made: it needs no index of its own, so that publishing and settling pay nothing for it.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.ids import first_at
from hookline.model import EventId

BEFORE_ALL = EventId(bytes(16))


class Pruned(msgspec.Struct, frozen=True):
    """What one step of the walk took away, or would have."""

    events: int = 0
    deliveries: int = 0
    after: EventId = BEFORE_ALL  # where to go on
    is_last: bool = True  # there is nothing further on


class RetentionStore(Protocol):
    """The verbs about what is kept for how long."""

    async def prune(
        self,
        *,
        done_before: float,
        dead_before: float,
        after: EventId = BEFORE_ALL,
        limit: int,
        is_dry: bool = False,
    ) -> Pruned:
        """Look at up to `limit` events from above `after`, and delete those that are over and old, in one transaction.

        An event is over when none of its deliveries is pending, and old when each was delivered or cancelled before
        `done_before` or died before `dead_before`; one without deliveries when it was made before `done_before`. It
        goes with its deliveries, their attempts and its idempotency key, and is counted. No more than `limit`
        deliveries go at once: an event with more loses them in several steps, and goes with the last.
        """

    async def prune_records(self, *, done_before: float, told_before: float, limit: int) -> int:
        """Delete up to `limit` of each kind of record that nobody needs any more, in one transaction; how many went.

        Jobs that finished before `done_before`, with their idempotency keys; changes that were written before `told_before`,
        but for the last one and resets that no owner has carried out; lanes of deleted endpoints that no delivery and no
        change names any more.
        """

    async def take_prune_turn(self, *, every: float, now: float) -> bool:
        """Is it time to prune, and nobody else at it? Then the next turn is in `every` seconds."""


class Looked(msgspec.Struct, frozen=True, gc=False):
    """An event on the walk."""

    id: EventId
    account: str
    is_over: bool  # and old: it can go
    deliveries: int


class PruneBatch(msgspec.Struct, frozen=True):
    """The events that one step takes away."""

    events: tuple[Looked, ...]
    after: EventId
    is_last: bool

    def as_found(self) -> Pruned:
        """What would go if nothing changed meanwhile."""
        deliveries = sum(event.deliveries for event in self.events)
        return Pruned(len(self.events), deliveries, self.after, self.is_last)

    def as_deleted(self, *, events: int, deliveries: int, limit: int, after: EventId) -> Pruned:
        """What went; of an event with more deliveries than go at once the rest is looked at again, from `after` on."""
        if deliveries == limit:
            return Pruned(events, deliveries, after, is_last=False)
        return Pruned(events, deliveries, self.after, self.is_last)

    def accounts(self) -> dict[EventId, str]:
        return {event.id: event.account for event in self.events}


def walk_ends_before(*, done_before: float, dead_before: float) -> EventId | None:
    """No event from this id on can be old; None: nothing is ever old enough."""
    newest = max(done_before, dead_before)
    return EventId(first_at(newest)) if newest > 0 else None


def batch_of(looked: Sequence[Looked], *, after: EventId, limit: int) -> PruneBatch:
    """As many events as have `limit` deliveries, but one at least; the walk goes on behind the last that was judged."""
    chosen: list[Looked] = []
    room = limit
    for event in looked:
        if event.is_over:
            if chosen and event.deliveries > room:
                return PruneBatch(tuple(chosen), after, is_last=False)
            chosen.append(event)
            room -= event.deliveries
        after = event.id
    return PruneBatch(tuple(chosen), after, is_last=len(looked) < limit)
