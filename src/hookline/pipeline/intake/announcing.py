"""Publishes hookline's own events, in one process at a time.

Deaths, opened circuits and the like are announced in the commit that makes them facts. Each announcement becomes an
event of the account `hookline`. The event and the end of its announcement are one commit, so no announcement gets lost
and none becomes two events.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from hookline.clock import Clock
from hookline.errors import SchemaMismatch
from hookline.ids import Ids
from hookline.model import OWN_ACCOUNT, EndpointId, Event
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.catalogue.payload_rules import Judgement
from hookline.pipeline.intake.idempotency import digest
from hookline.rules.admission import MOST_DELIVERIES
from hookline.rules.loop_budget import LoopBudget
from hookline.store.contract import Announcement, EventFanout, NotificationRow, Store
from hookline.store.contract.measuring.announcements import ANNOUNCE, ANNOUNCE_CHUNK

ANNOUNCE_EVERY = 1.0  # seconds
LEFT_OVER_EVERY = 5.0  # likewise, while nobody listens: some may be left from before

Show = Callable[[Sequence[Announcement]], Awaitable[Sequence[bytes]]]  # the payload of each


class TellsPeople(Protocol):
    """Knows which people are told of own events by mail or chat."""

    def recipients(self, announcement: Announcement) -> Sequence[object]:
        """Who is told of it."""

    def rows(
        self, announcements: Sequence[Announcement], payloads: Sequence[bytes], *, now: float
    ) -> Sequence[NotificationRow]:
        """The messages to send."""


class Announcer:
    """The periodic task that publishes own events."""

    name = ANNOUNCE
    every = ANNOUNCE_EVERY

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        clock: Clock,
        ids: Ids,
        *,
        show: Show,
        wake: Callable[[EndpointId], None],
        people: TellsPeople,
        on_told: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._clock = clock
        self._ids = ids
        self._show = show
        self._wake = wake  # a lane that the store has something for
        self._people = people
        self._on_told = on_told  # there are messages to send
        self._slice = LoopBudget()
        self.published = 0  # own events, since the start

    async def work(self) -> float | None:
        """Publish the first announcements; the seconds until there may be more."""
        most = max(1, min(ANNOUNCE_CHUNK, MOST_DELIVERIES // max(1, self._catalogue.count(OWN_ACCOUNT))))
        found = await self._store.announcements(limit=most)
        if not found:
            return None if self._catalogue.announces else LEFT_OVER_EVERY
        # Read before anything is decided by it: if endpoints change meanwhile, the store says that it is stale.
        n = self._catalogue.n
        wanted = [each for each in found if self._is_wanted(each)]
        payloads = await self._show(wanted) if wanted else []
        now = self._clock.now()
        messages = self._people.rows(wanted, payloads, now=now)
        fanned = [
            await self._fan_out(each, payload, now=now)
            for each, payload in zip(wanted, payloads, strict=True)
        ]
        batch = [each for each in fanned if each.endpoints]
        try:
            answer = await self._store.publish_announcements(
                [each.n for each in found], batch, notifications=messages, catalogue=n, now=now
            )
        finally:  # also if the commit is in doubt
            for endpoint in {endpoint for each in batch for endpoint in each.endpoints}:
                self._wake(endpoint)
        if answer is None:
            return None  # another process publishes
        if answer.stale:
            await self._catalogue.catch_up()
            return 0.0
        self.published += len(batch)
        if messages:
            self._on_told()
        return 0.0 if len(found) == most else None

    def _is_wanted(self, announcement: Announcement) -> bool:
        """Whether an endpoint or a person gets it. An own event that nobody gets is not stored."""
        return bool(self._catalogue.find(OWN_ACCOUNT, announcement.kind)) or bool(
            self._people.recipients(announcement)
        )

    async def _fan_out(self, announcement: Announcement, payload: bytes, *, now: float) -> EventFanout:
        event = Event(
            id=self._ids.event(),
            account=OWN_ACCOUNT,
            type=announcement.kind,
            payload=payload,
            idempotency_key=f"announcement:{announcement.n}",
            created_at=now,
        )
        return EventFanout(event, await self._endpoints(event), digest(event))

    async def _endpoints(self, event: Event) -> tuple[EndpointId, ...]:
        """The endpoints that want it. A schema cannot refuse an own event: its payload is what it is."""
        catalogue = self._catalogue
        asked = catalogue.find(event.account, event.type)
        if not catalogue.content.matters or not catalogue.content.concerns(event.type, asked):
            return asked
        judging = catalogue.content.judge(catalogue.n, event.type, event.payload, asked, self._slice)
        while True:
            try:
                awaited = next(judging)
            except StopIteration as end:
                judgement: Judgement = end.value
                wanted = judgement.wanted
                return asked if isinstance(wanted, SchemaMismatch) else wanted
            if awaited is None:
                await self._clock.sleep(0)
            else:
                await awaited
            self._slice.begin()
