"""How does an event become durable?

Publishes that arrive while a commit is under way share the next one: one statement, one round trip, one fsync
for all of them. Nobody is answered before the commit that holds the event, its deliveries and its key.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

import structlog

from hookline import ids as naming
from hookline.clock import Clock
from hookline.errors import (
    HooklineError,
    Invalid,
    Overloaded,
    SchemaMismatch,
    StoreRefused,
    StoreUnavailable,
)
from hookline.failpoints import failpoint
from hookline.ids import Ids
from hookline.model import Event, EventId, Queue
from hookline.pipeline.admission import Admission
from hookline.pipeline.catalogue import Catalogue
from hookline.pipeline.drafts import Done, Draft, Entry, Published, Result, Submission
from hookline.pipeline.handover import Handover
from hookline.pipeline.repeats import answer_by, answer_repeat, digest, split
from hookline.store.contract import INLINE_PAYLOAD_BYTES, Acceptance, Loaded, Prior, Publication, Store

_BATCH_DELIVERIES = 5_000  # in one commit; a submission is never split
_BATCH_BYTES = 8 * 1024 * 1024
_WAITING_EVENTS = 20_000  # beyond this a publish is refused, not kept
_WAITING_BYTES = 128 * 1024 * 1024
_TRIES = 2  # the second meets a connection that was lost unnoticed

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
        self._admission = admission
        self._clock = clock
        self._ids = ids
        self._most_deliveries = most_deliveries
        self._on_refused = on_refused
        self._waiting: deque[Submission] = deque()
        self._waiting_events = 0
        self._waiting_bytes = 0
        self._flusher: asyncio.Task[None] | None = None

    def submit(self, drafts: list[Draft], done: Done) -> None:
        """Accept all drafts, in order; what was refused is an error in its place. Raises Overloaded.

        `done` is called with the results after the commit, or with the error that all of them share. It must not
        raise.
        """
        submission = Submission(drafts, done)
        if (
            self._waiting_events + len(drafts) > _WAITING_EVENTS
            or self._waiting_bytes + submission.bytes > _WAITING_BYTES
        ):
            raise Overloaded("More events are waiting to be stored than can be kept; try again in a moment.")
        self._waiting.append(submission)
        self._waiting_events += len(drafts)
        self._waiting_bytes += submission.bytes
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def accept(self, drafts: list[Draft]) -> list[Result]:
        """Accept all drafts; as `submit`, and raises the error that all of them share."""
        future: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()

        def done(results: list[Result] | HooklineError) -> None:
            if future.done():
                return  # whoever asked went away
            if isinstance(results, HooklineError):
                future.set_exception(results)
            else:
                future.set_result(results)

        self.submit(drafts, done)
        return await future

    async def publish(self, draft: Draft) -> Published:
        """Accept one draft; raises what refused it."""
        (result,) = await self.accept([draft])
        if isinstance(result, HooklineError):
            raise result
        return result

    async def close(self) -> None:
        """Wait for the commits under way."""
        if self._flusher is not None:
            await self._flusher

    async def _flush(self) -> None:
        try:
            while self._waiting:
                now = self._clock.now()
                submissions, entries = self._gather(now)
                try:
                    await self._commit(entries, now)
                except Exception as error:
                    if not isinstance(error, HooklineError):
                        log.exception("accept.failed", events=len(entries))
                        error = StoreUnavailable("The event could not be stored; it may be tried again.")
                    elif isinstance(error, StoreRefused):
                        self._on_refused(error)
                    for submission in submissions:
                        submission.done(error)
                else:
                    for submission in submissions:
                        submission.done(submission.results)  # type: ignore[arg-type]  # all are filled in by now
        finally:
            self._flusher = None

    def _gather(self, now: float) -> tuple[list[Submission], list[Entry]]:
        submissions: list[Submission] = []
        entries: list[Entry] = []
        keys: set[tuple[str, str]] = set()
        size = deliveries = 0
        most = self._admission.at_once()
        find, new_id = self._catalogue.find, self._ids.event
        while (
            self._waiting and len(entries) < most and size < _BATCH_BYTES and deliveries < _BATCH_DELIVERIES
        ):
            submission = self._waiting[0]
            named = [
                (d.account, d.idempotency_key) for d in submission.drafts if d.idempotency_key is not None
            ]
            if entries and not keys.isdisjoint(named):
                break  # the same key again: its answer depends on the commit before
            keys.update(named)
            self._waiting.popleft()
            self._waiting_events -= len(submission.drafts)
            self._waiting_bytes -= submission.bytes
            submissions.append(submission)
            size += submission.bytes
            for index, draft in enumerate(submission.drafts):
                event = Event(
                    id=new_id(),
                    account=draft.account,
                    type=draft.type,
                    payload=draft.payload,
                    idempotency_key=draft.idempotency_key,
                    deliver_at=draft.deliver_at,
                    hops=draft.hops,
                    created_at=now,
                )
                endpoints = find(draft.account, draft.type)
                deliveries += len(endpoints)
                entries.append(Entry(submission, index, event, endpoints))
        return submissions, entries

    async def _commit(self, entries: list[Entry], now: float) -> None:
        seen = self._catalogue.n  # what the entries were fanned out by
        if self._catalogue.content.matters:
            entries = [entry for entry in entries if await self._looks_right(entry)]
        firsts, repeats = split(entries)
        most = self._most_deliveries
        while True:
            written = [
                entry for entry in firsts if len(entry.endpoints) <= most or self._refuse_fan_out(entry)
            ]
            try:
                self._reserve(written, now)
                acceptance = await self._store_batch(written, now, seen)
            except BaseException:
                self._in_doubt(written)
                raise
            if not acceptance.stale:
                break
            self._drop_reservations(written)
            await self._catalogue.catch_up()
            seen = self._catalogue.n
            for entry in firsts:
                entry.endpoints = self._catalogue.find(entry.event.account, entry.event.type)
            if self._catalogue.content.matters:
                firsts = [entry for entry in firsts if await self._looks_right(entry)]
        priors = acceptance.priors
        accepted = [entry for entry in written if not (priors and self._answer_prior(entry, priors))]
        for entry in accepted:
            event = entry.event
            entry.submission.results[entry.index] = Published(
                event.id, event.type, event.account, now, len(entry.endpoints)
            )
        for entry, first in repeats:
            answer_repeat(entry, first, acceptance.priors)
        # In the next loop step: the next batch is then already with the store while these are sent.
        asyncio.get_running_loop().call_soon(self._hand_over, accepted, acceptance.first_seq, now)

    def _refuse_fan_out(self, entry: Entry) -> bool:
        """Say that the event goes to too many; always False."""
        entry.answer(
            Invalid(
                f"This event would go to {len(entry.endpoints):,} endpoints; at most {self._most_deliveries:,} are allowed.",
                pointer="/type",
                code="fanout_limit",
            )
        )
        return False

    async def _looks_right(self, entry: Entry) -> bool:
        """Let the payload say who wants the event; False when it was refused."""
        event = entry.event
        judged = await self._catalogue.content.judge(event.type, event.payload, entry.endpoints)
        if isinstance(judged, SchemaMismatch):
            entry.answer(judged)
            return False
        entry.endpoints = judged
        return True

    async def _store_batch(self, entries: list[Entry], now: float, seen: int) -> Acceptance:
        if not entries:
            return Acceptance(stale=False)
        batch = [
            Publication(
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

    def _reserve(self, entries: list[Entry], now: float) -> None:
        if not self._handover.takes_over():
            for entry in entries:
                entry.lanes = (None,) * len(entry.endpoints)
            return
        reserve = self._handover.reserve
        for entry in entries:
            event = entry.event
            if event.deliver_at is not None and event.deliver_at > now:
                entry.lanes = ()
            elif len(entry.endpoints) == 1:
                entry.lanes = (reserve(entry.endpoints[0], naming.delivery_of(event.id, 0)),)
            else:
                entry.lanes = [
                    reserve(endpoint, naming.delivery_of(event.id, ordinal))
                    for ordinal, endpoint in enumerate(entry.endpoints)
                ]

    def _drop_reservations(self, entries: list[Entry]) -> None:
        for entry in entries:
            for ordinal, lane in enumerate(entry.lanes):
                if lane is not None:
                    self._handover.give_up(lane, naming.delivery_of(entry.event.id, ordinal))
            entry.lanes = ()

    def _in_doubt(self, entries: list[Entry]) -> None:
        """The batch may have been committed: whoever owns its lanes must look."""
        self._drop_reservations(entries)
        for endpoint in dict.fromkeys(endpoint for entry in entries for endpoint in entry.endpoints):
            self._handover.announce(endpoint)

    def _answer_prior(self, entry: Entry, priors: Mapping[EventId, Prior]) -> bool:
        """Say what an event whose key was used before became; False: its key is new, or it has none."""
        event = entry.event
        prior = priors.get(event.id)
        if prior is None:
            return False
        self._drop_reservations([entry])
        for endpoint in prior.endpoints:
            self._handover.announce(endpoint)
        answer_by(prior, entry)
        return True

    def _hand_over(self, entries: list[Entry], first_seq: int, now: float) -> None:
        """From memory to the lanes that are held here; the others are told.

        Whatever happens on the way, nothing stays reserved: the store would be asked for everything but that for ever.
        """
        left = deque(entries)
        try:
            self._hand_over_each(left, first_seq, now)
        except Exception:
            log.exception("handover.failed", events=len(left))
        finally:
            if left:
                self._in_doubt(list(left))

    def _hand_over_each(self, left: deque[Entry], first_seq: int, now: float) -> None:
        """Each is among those that are left until all of its deliveries are handed over."""
        hand_over, announce = self._handover.hand_over, self._handover.announce
        at = self._clock.monotonic()
        failpoint("handover.before")
        while left:
            entry = left[0]
            event = entry.event
            if event.deliver_at is not None and event.deliver_at > now:
                for endpoint in entry.endpoints:
                    announce(endpoint, due_at=event.deliver_at)
                left.popleft()
                continue
            payload = event.payload if len(event.payload) <= INLINE_PAYLOAD_BYTES else None
            for ordinal, (endpoint, lane) in enumerate(zip(entry.endpoints, entry.lanes, strict=True)):
                delivery = Loaded(
                    naming.delivery_of(event.id, ordinal),
                    endpoint,
                    Queue.READY,
                    first_seq,
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
                )
                if lane is not None:
                    hand_over(lane, delivery, at=at)
                else:
                    announce(endpoint, delivery)
            left.popleft()
