"""Makes published events durable.

Publishes that arrive while a commit is under way share the next one: one statement, one round trip, one fsync for all
of them. No publish is answered before the commit that holds the event, its deliveries and its key. A large submission
may take several commits: accounts take turns, and the size of a commit is limited.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import structlog

from hookline import ids as naming
from hookline.clock import Clock
from hookline.errors import AcceptFailed, HooklineError, Invalid, Overloaded, StoreRefused, StoreUnavailable
from hookline.ids import Ids
from hookline.model import EventId
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.histogram import ROWS, SECONDS, Histogram
from hookline.pipeline.intake.admission import Admission
from hookline.pipeline.intake.distribute import Distributor
from hookline.pipeline.intake.drafts import Done, Draft, Entry, Published, Result, Submission
from hookline.pipeline.intake.gathering import Commit, Gathering
from hookline.pipeline.intake.idempotency import answer_by, answer_repeat, digest
from hookline.pipeline.lanes.handover import Handover
from hookline.rules.admission import REQUEST_DELIVERIES
from hookline.rules.readiness import Publishing
from hookline.store.contract import Acceptance, EventFanout, Prior, Store

_WAITING_EVENTS = 20_000  # beyond this a publish is refused, not kept
_WAITING_BYTES = 128 * 1024 * 1024
_TRIES = 2  # the first may meet a connection that was lost unnoticed

log = structlog.get_logger()


class Intake:
    """Accepts events in shared commits."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        handover: Handover,
        admission: Admission,
        clock: Clock,
        ids: Ids,
        *,
        most_deliveries: int,
        on_refused: Callable[[StoreRefused], None],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._handover = handover
        self._clock = clock
        self._most_in_a_request = max(REQUEST_DELIVERIES, most_deliveries)
        self._on_refused = on_refused
        self._gathering = Gathering(
            catalogue,
            handover,
            admission,
            clock,
            ids,
            most_deliveries=most_deliveries,
            on_judged=self._begin,
        )
        self._handing = Distributor(handover, catalogue, clock, on_turn=admission.turned)
        self._flusher: asyncio.Task[None] | None = None
        self.seconds = Histogram(SECONDS)  # of each event, from the publish to the commit that holds it
        self.batches = Histogram(ROWS)  # events in each commit
        self._moved_at = float("-inf")  # when a commit was last begun
        self._committed_at = float("-inf")  # when the last good one was begun
        self._refused_at = float("-inf")
        self._refusal = ""

    @property
    def publishing(self) -> Publishing:
        """How it goes."""
        is_waiting = self._flusher is not None or self._gathering.has_any
        return Publishing(
            self._moved_at if is_waiting else None, self._committed_at, self._refused_at, self._refusal
        )

    def submit(self, drafts: list[Draft], done: Done) -> None:
        """Accept all drafts, in order; a refused draft has an error in its place. Raises Overloaded, or Invalid.

        `done` is called with the results after the last commit, or with the error that all of them share. It must not
        raise.
        """
        submission = Submission(drafts, done, self._clock.monotonic())
        if not drafts:
            done([])
            return
        gathering = self._gathering
        if (
            gathering.events + len(drafts) > _WAITING_EVENTS
            or gathering.bytes + submission.bytes > _WAITING_BYTES
        ):
            self._note_refusal("more events are waiting to be stored than can be kept")
            raise Overloaded("More events are waiting to be stored than can be kept; try again in a moment.")
        if len(drafts) > 1:
            self._check_deliveries(drafts)
        gathering.add(submission)
        if self._flusher is None:
            self._begin()

    async def accept(self, drafts: list[Draft]) -> list[Result]:
        """Accept all drafts, like `submit`; raises the error that all of them share."""
        future: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()

        def done(results: list[Result] | HooklineError) -> None:
            if future.done():
                return  # the caller went away
            if isinstance(results, HooklineError):
                future.set_exception(results)
            else:
                future.set_result(results)

        self.submit(drafts, done)
        return await future

    async def publish(self, draft: Draft) -> Published:
        """Accept one draft; raises its refusal. When this returns, its lanes have it or are about to be woken."""
        (result,) = await self.accept([draft])
        if isinstance(result, HooklineError):
            raise result
        await self._handing.until_now()
        return result

    async def close(self) -> None:
        """Wait for everything that was handed in."""
        while self._flusher is not None or not self._gathering.judging.is_idle:
            if self._flusher is not None:
                await self._flusher
            else:
                await self._clock.sleep(0)
        await self._handing.until_now()

    def _check_deliveries(self, drafts: list[Draft]) -> None:
        """Refuse a request with too many deliveries. They are counted before filters: that number is known at once."""
        kinds = Counter([(draft.account, draft.type) for draft in drafts])
        asked = sum([count * len(self._catalogue.find(*kind)) for kind, count in kinds.items()])
        if asked > self._most_in_a_request:
            raise Invalid(
                f"These {len(drafts):,} events would make {asked:,} deliveries, counted before filters; one request "
                f"may make at most {self._most_in_a_request:,}. Send fewer events in a request.",
                pointer="/events",
                code="fanout_limit",
            )

    def _begin(self) -> None:
        if self._flusher is None:
            self._moved_at = self._clock.monotonic()
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        try:
            while self._gathering.has_any:
                now = self._clock.now()
                self._moved_at = self._clock.monotonic()
                batch = self._gathering.gather(now)
                if batch.entries:
                    await self._commit(batch, now)
                elif self._gathering.has_any:
                    await self._gathering.rest()
                await self._handing.keep_up()
        finally:
            self._flusher = None

    async def _commit(self, batch: Commit, now: float) -> None:
        entries = batch.entries
        seen = self._catalogue.n  # the catalogue that the entries were fanned out by
        try:
            try:
                acceptance = await self._store_batch(entries, now, seen)
            except BaseException:
                self._in_doubt(entries)
                raise
            if acceptance.stale:
                self._drop_reservations(entries)
                await self._catalogue.catch_up()
        except Exception as error:
            self._refuse(batch, error)
            return
        self._committed_at = self._moved_at
        if acceptance.stale:
            self._gathering.put_back(batch)
            return
        priors = acceptance.priors
        accepted = [entry for entry in entries if not (priors and self._answer_prior(entry, priors))]
        if acceptance.repeats:
            accepted = self._answer_repeats(accepted, acceptance.repeats, now)
        # Before the answers: a caller that gets one and waits for the hand-over finds it there.
        self._handing.add(accepted, acceptance.first_seq, now, seen)
        self._measure(batch)
        for entry in accepted:
            event = entry.event
            entry.submission.answer(
                entry.index, Published(event.id, event.type, event.account, now, len(entry.endpoints))
            )
        for entry, first in batch.repeats:
            answer_repeat(entry, first, priors)

    def _measure(self, batch: Commit) -> None:
        """Count what was committed. The clock is read once a commit, and each event adds to one bucket."""
        ended = self._clock.monotonic()
        self.batches.add(len(batch.entries))
        self.seconds.add_all([ended - entry.submission.came for entry in batch.entries])
        if batch.repeats:
            self.seconds.add_all([ended - entry.submission.came for entry, _ in batch.repeats])

    def _refuse(self, batch: Commit, error: Exception) -> None:
        if not isinstance(error, HooklineError):
            log.exception("accept.failed", events=len(batch.entries))
            error = AcceptFailed("The event could not be stored; it may be tried again.")
        elif isinstance(error, StoreRefused):
            self._on_refused(error)
        if isinstance(error, StoreUnavailable | StoreRefused):
            self._note_refusal(str(error))
        for entry in (*batch.entries, *(entry for entry, _ in batch.repeats)):
            entry.submission.fail(error)

    def _note_refusal(self, why: str) -> None:
        self._refused_at, self._refusal = self._clock.monotonic(), why

    async def _store_batch(self, entries: list[Entry], now: float, seen: int) -> Acceptance:
        if not entries:
            return Acceptance(stale=False)
        batch = [
            EventFanout(
                entry.event,
                entry.endpoints,
                digest(entry.event) if entry.event.idempotency_key is not None else b"",
            )
            for entry in entries
        ]
        for left in reversed(range(_TRIES)):
            try:
                return await self._store.accept(batch, catalogue=seen, now=now)
            except StoreUnavailable:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _drop_reservations(self, entries: list[Entry]) -> None:
        for entry in entries:
            for ordinal, lane in enumerate(entry.lanes):
                if lane is not None:
                    self._handover.give_up(lane, naming.delivery_of(entry.event.id, ordinal))
            entry.lanes = ()

    def _in_doubt(self, entries: list[Entry]) -> None:
        """The batch may have been committed: the owners of its lanes must look."""
        self._drop_reservations(entries)
        for endpoint in dict.fromkeys(endpoint for entry in entries for endpoint in entry.endpoints):
            self._handover.announce(endpoint)

    def _answer_repeats(self, entries: list[Entry], repeats: frozenset[EventId], now: float) -> list[Entry]:
        """Answer the events that were stored before under their ids; the others.

        Their deliveries may be long under way, or done: only the store knows.
        """
        found = [entry for entry in entries if entry.event.id in repeats]
        self._in_doubt(found)
        for entry in found:
            event = entry.event
            entry.submission.answer(
                entry.index,
                Published(event.id, event.type, event.account, now, len(entry.endpoints), is_repeat=True),
            )
        return [entry for entry in entries if entry.event.id not in repeats]

    def _answer_prior(self, entry: Entry, priors: Mapping[EventId, Prior]) -> bool:
        """Answer an event whose key was used before; False: its key is new, or it has none."""
        event = entry.event
        prior = priors.get(event.id)
        if prior is None:
            return False
        self._drop_reservations([entry])
        for endpoint in prior.endpoints:
            self._handover.announce(endpoint)
        answer_by(prior, entry)
        return True
