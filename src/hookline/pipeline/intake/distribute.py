"""Hands committed deliveries over to their lanes.

This happens in the next turns of the loop, while the next batch is already with the store. Each turn does a part: a
delivery that is handed over is mostly sent at once, and others wait for that. Whatever happens on the way, nothing
stays reserved: otherwise loads would leave it out forever.

If operators changed anything since the accept began, the commit is read from the store instead. One of its deliveries may
have been cancelled or replayed, and its lane has already forgotten what it held.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import structlog

from hookline import ids as naming
from hookline.clock import Clock
from hookline.failpoints import failpoint
from hookline.model import Queue
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.intake.drafts import Entry
from hookline.pipeline.lanes.handover import Handover
from hookline.rules.loop_budget import DELIVERIES
from hookline.store.contract import INLINE_PAYLOAD_BYTES, Loaded

log = structlog.get_logger()


class _Commit(NamedTuple):
    entries: list[Entry]
    first_seq: int
    now: float
    seen: int  # the last change that was known when the accept began


class Distributor:
    """Hands over commits, in order."""

    def __init__(
        self,
        handover: Handover,
        catalogue: Catalogue,
        clock: Clock,
        *,
        on_turn: Callable[[float], None],
    ) -> None:
        self._handover = handover
        self._catalogue = catalogue
        self._clock = clock
        self._on_turn = on_turn  # called with the time from a commit to the next turn of the loop
        self._added_at = 0.0
        self._commits: deque[_Commit] = deque()
        self._entry = 0  # the next entry of the first commit
        self._ordinal = 0  # the next delivery of that entry
        self._added = 0
        self._ended = 0
        self.longest = 0  # the most deliveries that were ever handed over in one turn

    def add(self, entries: list[Entry], first_seq: int, now: float, seen: int) -> None:
        """These are committed."""
        if not self._commits:
            self._added_at = self._clock.monotonic()
            asyncio.get_running_loop().call_soon(self._begin)
        self._commits.append(_Commit(entries, first_seq, now, seen))
        self._added += 1

    async def keep_up(self) -> None:
        """Wait until no more than one commit is still to be handed over."""
        while len(self._commits) > 1:
            await self._clock.sleep(0)

    async def until_now(self) -> None:
        """Wait until everything added so far is handed over."""
        last = self._added
        while self._ended < last:
            await self._clock.sleep(0)

    def _begin(self) -> None:
        self._on_turn(self._clock.monotonic() - self._added_at)
        self._go_on()

    def _go_on(self) -> None:
        left = DELIVERIES
        at = self._clock.monotonic()
        while self._commits and left > 0:
            commit = self._commits[0]
            try:
                if not self._entry and not self._ordinal:
                    failpoint("handover.before")
                while self._entry < len(commit.entries) and left > 0:
                    left -= self._hand_over(commit, commit.entries[self._entry], left, at)
            except Exception:
                log.exception("handover.failed", events=len(commit.entries) - self._entry)
                self._leave(commit)
            if self._entry == len(commit.entries):
                self._commits.popleft()
                self._entry = 0
                self._ended += 1
        if DELIVERIES - left > self.longest:
            self.longest = DELIVERIES - left
        if self._commits:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _hand_over(self, commit: _Commit, entry: Entry, most: int, at: float) -> int:
        """Hand over to the lanes owned here, from memory; wake the others. At most `most` deliveries; how many."""
        event, now = entry.event, commit.now
        begin, end = self._ordinal, len(entry.endpoints)
        is_last = end - begin <= most
        if not is_last:
            end = begin + most
        hand_over, announce = self._handover.hand_over, self._handover.announce
        if commit.seen != self._catalogue.n:
            for ordinal in range(begin, end):
                self._leave_one(entry, ordinal)
            self._entry += is_last
            self._ordinal = 0 if is_last else end
            return end - begin or 1
        if event.deliver_at is not None and (due_at := self._clock.due(event.deliver_at)) > now:
            for endpoint in entry.endpoints[begin:end]:
                announce(endpoint, due_at=due_at)
            self._entry += is_last
            self._ordinal = 0 if is_last else end
            return end - begin or 1
        payload = event.payload if len(event.payload) <= INLINE_PAYLOAD_BYTES else None
        for ordinal in range(begin, end):
            endpoint, lane = entry.endpoints[ordinal], entry.lanes[ordinal]
            delivery = Loaded(
                # The first delivery has the event's id.
                naming.delivery_of(event.id, ordinal) if ordinal else event.id,  # type: ignore[arg-type]  # naming the type is a call
                endpoint,
                Queue.READY,
                commit.first_seq,
                now,  # due_at
                0,  # attempts
                0,  # replays
                0,  # marks
                event.type,
                event.idempotency_key,
                now,  # created_at
                payload,
                event.hops,
                len(event.payload),
                event.trace,
            )
            if lane is not None:
                hand_over(lane, delivery, at=at)
            else:
                announce(endpoint, delivery)
            self._ordinal = ordinal + 1
        if is_last:
            self._entry += 1
            self._ordinal = 0
        return end - begin or 1

    def _leave(self, commit: _Commit) -> None:
        """Leave the rest to be read from the store."""
        for entry in commit.entries[self._entry :]:
            for ordinal in range(self._ordinal, len(entry.endpoints)):
                self._leave_one(entry, ordinal)
            self._ordinal = 0
        self._entry = len(commit.entries)

    def _leave_one(self, entry: Entry, ordinal: int) -> None:
        lane = entry.lanes[ordinal] if entry.lanes else None
        if lane is not None:
            self._handover.give_up(lane, naming.delivery_of(entry.event.id, ordinal))
        self._handover.announce(entry.endpoints[ordinal])
