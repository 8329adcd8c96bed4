"""Defines how a store deletes what is old.

A part of the contract: see `store.contract` for what holds for every verb. The walk follows the events' ids, which
begin with the time they were made. So it needs no index of its own, and publishing and settling pay nothing for it.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hookline.ids import first_at
from hookline.model import EventId

BEFORE_ALL = EventId(bytes(16))


class Pruned(msgspec.Struct, frozen=True):
    """What one step of the walk deleted, or would have."""

    events: int = 0
    deliveries: int = 0
    after: EventId = BEFORE_ALL  # where to continue
    is_last: bool = True  # nothing follows


class RetentionStore(Protocol):
    """The verbs that delete what is old."""

    async def prune(
        self,
        *,
        done_before: float,
        dead_before: float,
        after: EventId = BEFORE_ALL,
        limit: int,
        is_dry: bool = False,
    ) -> Pruned:
        """Look at up to `limit` events from above `after`, and delete the finished old ones, in one transaction.

        An event is finished when none of its deliveries is pending. It is old when each was delivered or cancelled
        before `done_before` or died before `dead_before`; without deliveries, when it was made before `done_before`. One that
        was made after a source's `clear_at` stays: a row of its outbox may still bring it, and would make it anew. It
        is deleted with its deliveries, their attempts and its idempotency key, and is counted. At most `limit`
        deliveries are deleted at once: an event with more loses them in several steps and is deleted with the last.
        """

    async def prune_records(self, *, done_before: float, told_before: float, limit: int) -> int:
        """Delete up to `limit` of each kind of record that is no longer needed, in one transaction; how many.

        These are jobs that finished before `done_before`, with their idempotency keys; changes written before
        `told_before`, except the last one and resets that no owner has applied; lanes of deleted endpoints that no
        delivery and no change names any more.
        """

    async def take_prune_turn(self, *, every: float, now: float) -> bool:
        """Whether it is time to prune and no other process does; the next turn is then in `every` seconds."""


class Looked(msgspec.Struct, frozen=True, gc=False):
    """An event on the walk."""

    id: EventId
    account: str
    is_over: bool  # finished and old: it can be deleted
    deliveries: int


class PruneBatch(msgspec.Struct, frozen=True):
    """The events that one step deletes."""

    events: tuple[Looked, ...]
    after: EventId
    is_last: bool

    def as_found(self) -> Pruned:
        """What would be deleted if nothing changed meanwhile."""
        deliveries = sum(event.deliveries for event in self.events)
        return Pruned(len(self.events), deliveries, self.after, self.is_last)

    def as_deleted(self, *, events: int, deliveries: int, limit: int, after: EventId) -> Pruned:
        """What was deleted; the rest of an event with too many deliveries is looked at again, from `after` on."""
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
    """The next events with at most `limit` deliveries in all, or one event; the walk continues after the last seen."""
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
