"""How does an event become durable?

Publishes that arrive while a commit is under way share the next one: one statement, one round trip, one fsync
for all of them. Nobody is answered before the commit that holds the event, its deliveries and its key. What was
handed in together may take several commits: accounts take turns, and each commit has an end.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

import structlog

from hookline import ids as naming
from hookline.clock import Clock
from hookline.errors import HooklineError, Invalid, Overloaded, StoreRefused, StoreUnavailable
from hookline.ids import Ids
from hookline.model import EndpointId, Event, EventId
from hookline.pipeline.admission import Admission
from hookline.pipeline.catalogue import Catalogue
from hookline.pipeline.drafts import Done, Draft, Entry, Published, Result, Submission
from hookline.pipeline.handing import Handing
from hookline.pipeline.handover import Handover
from hookline.pipeline.judging import Judging
from hookline.pipeline.line import Line
from hookline.pipeline.repeats import answer_by, answer_repeat, digest
from hookline.rules.admission import MOST_BYTES, MOST_DELIVERIES, REQUEST_DELIVERIES, share
from hookline.store.contract import Acceptance, Prior, Publication, Store

_WAITING_EVENTS = 20_000  # beyond this a publish is refused, not kept
_WAITING_BYTES = 128 * 1024 * 1024
_TRIES = 2  # the second meets a connection that was lost unnoticed

Repeats = list[tuple[Entry, Entry]]  # whose key stands earlier in the same commit, with that earlier one

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
        self._most_in_a_request = max(REQUEST_DELIVERIES, most_deliveries)
        self._on_refused = on_refused
        self._line = Line()
        self._judging = Judging(catalogue, clock, on_judged=self._stand_in_line)
        self._handing = Handing(handover, clock)
        self._waiting_events = 0  # in no commit yet
        self._waiting_bytes = 0
        self._flusher: asyncio.Task[None] | None = None

    def submit(self, drafts: list[Draft], done: Done) -> None:
        """Accept all drafts, in order; what was refused is an error in its place. Raises Overloaded, or Invalid.

        `done` is called with the results after the last commit, or with the error that all of them share. It must not
        raise.
        """
        submission = Submission(drafts, done)
        if not drafts:
            done([])
            return
        if (
            self._waiting_events + len(drafts) > _WAITING_EVENTS
            or self._waiting_bytes + submission.bytes > _WAITING_BYTES
        ):
            raise Overloaded("More events are waiting to be stored than can be kept; try again in a moment.")
        if len(drafts) > 1:
            self._check_deliveries(drafts)
        self._waiting_events += len(drafts)
        self._waiting_bytes += submission.bytes
        if self._catalogue.content.matters and self._is_concerned(drafts):
            self._judging.add(submission)
        else:
            self._stand_in_line(submission)

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
        """Accept one draft; raises what refused it. When this returns, its lanes are in the to-wake set or have it."""
        (result,) = await self.accept([draft])
        if isinstance(result, HooklineError):
            raise result
        await self._handing.until_now()
        return result

    async def close(self) -> None:
        """Wait for what was handed in."""
        while self._flusher is not None or not self._judging.is_idle:
            if self._flusher is not None:
                await self._flusher
            else:
                await self._clock.sleep(0)
        await self._handing.until_now()

    def _check_deliveries(self, drafts: list[Draft]) -> None:
        """Refuse a request that asks for more than one may. Counted before filters: so much is known at once."""
        kinds = Counter([(draft.account, draft.type) for draft in drafts])
        asked = sum([count * len(self._catalogue.find(*kind)) for kind, count in kinds.items()])
        if asked > self._most_in_a_request:
            raise Invalid(
                f"These {len(drafts):,} events would make {asked:,} deliveries, counted before filters; one request "
                f"may make at most {self._most_in_a_request:,}. Send fewer events in a request.",
                pointer="/events",
                code="fanout_limit",
            )

    def _is_concerned(self, drafts: list[Draft]) -> bool:
        """Does the payload of any of them decide anything?"""
        content, find = self._catalogue.content, self._catalogue.find
        if len(drafts) == 1:
            (draft,) = drafts
            return content.concerns(draft.type, find(draft.account, draft.type))
        kinds = {(draft.account, draft.type) for draft in drafts}
        return any(content.concerns(type, find(account, type)) for account, type in kinds)

    def _stand_in_line(self, submission: Submission) -> None:
        self._line.add(submission)
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        try:
            while self._line:
                now = self._clock.now()
                entries, repeats = self._gather(now)
                if entries:
                    await self._commit(entries, repeats, now)
                await self._handing.keep_up()
        finally:
            self._flusher = None

    # --- gathering ---

    def _gather(self, now: float) -> tuple[list[Entry], Repeats]:
        """What the next commit holds: some of each account's, in turn."""
        entries: list[Entry] = []
        repeats: Repeats = []
        keyed: dict[tuple[str, str], Entry] = {}
        line, fan_out, new_id = self._line, self._fan_out, self._ids.event
        takes_over = self._handover.takes_over()
        events, room, room_bytes = self._admission.at_once(), MOST_DELIVERIES, MOST_BYTES
        turn = left = share(events, line.accounts)
        while line and events > 0 and room > 0 and room_bytes > 0:
            submission = line.first()
            endpoints = fan_out(submission)
            if endpoints is None:
                if line.leave():
                    left = turn
                continue
            count = 0 if isinstance(endpoints, HooklineError) else len(endpoints)
            if count > room and entries:
                break  # in the next commit, as the first
            if count > left != turn:
                line.turn()
                left = turn
                continue
            index = submission.next
            draft = submission.drafts[index]
            submission.next = index + 1
            self._waiting_events -= 1
            self._waiting_bytes -= len(draft.payload)
            left -= count or 1
            if submission.next == len(submission.drafts) and line.leave():
                left = turn
            elif left <= 0:
                line.turn()
                left = turn
            if isinstance(endpoints, HooklineError):
                submission.answer(index, endpoints)
                continue
            entry = Entry(
                submission,
                index,
                Event(
                    id=new_id(),
                    account=draft.account,
                    type=draft.type,
                    payload=draft.payload,
                    idempotency_key=draft.idempotency_key,
                    deliver_at=draft.deliver_at,
                    hops=draft.hops,
                    created_at=now,
                ),
                endpoints,
            )
            if draft.idempotency_key is not None:
                first = keyed.setdefault((draft.account, draft.idempotency_key), entry)
                if first is not entry:
                    repeats.append((entry, first))
                    continue
            if takes_over:
                self._reserve(entry, now)
            else:
                entry.lanes = (None,) * count
            entries.append(entry)
            events -= 1
            room -= count
            room_bytes -= len(draft.payload)
        if left != turn:
            line.turn()  # it had its part of this one
        return entries, repeats

    def _fan_out(self, submission: Submission) -> tuple[EndpointId, ...] | HooklineError | None:
        """Who the next draft goes to, or why it is refused; None: the submission does not stand in line any more."""
        if submission.is_over:
            self._forget(submission)
            return None
        catalogue = self._catalogue
        index = submission.next
        draft = submission.drafts[index]
        endpoints = catalogue.find(draft.account, draft.type)
        if catalogue.content.matters:
            judgement = submission.judgement(index)
            if judgement is None:
                if catalogue.content.concerns(draft.type, endpoints):
                    self._judging.add(submission)
                    return None
            elif judgement.n == catalogue.n or catalogue.content.holds(judgement, draft.type, endpoints):
                if isinstance(judgement.wanted, HooklineError):
                    return judgement.wanted
                endpoints = judgement.wanted
            else:
                submission.judge_again()
                self._judging.add(submission)
                return None
        if len(endpoints) > self._most_deliveries:
            return Invalid(
                f"This event would go to {len(endpoints):,} endpoints; at most {self._most_deliveries:,} are allowed.",
                pointer="/type",
                code="fanout_limit",
            )
        return endpoints

    def _forget(self, submission: Submission) -> None:
        """It failed: the drafts that are in no commit do not wait any more."""
        unstored = submission.drafts[submission.next :]
        self._waiting_events -= len(unstored)
        self._waiting_bytes -= sum([len(draft.payload) for draft in unstored])

    def _put_back(self, entries: list[Entry], repeats: Repeats) -> None:
        """Let what was gathered stand in line again, where it stood."""
        for entry in reversed([*entries, *(entry for entry, _ in repeats)]):
            submission = entry.submission
            submission.next = min(submission.next, entry.index)
            self._waiting_events += 1
            self._waiting_bytes += len(entry.event.payload)
            self._line.put_back(submission)

    # --- committing ---

    async def _commit(self, entries: list[Entry], repeats: Repeats, now: float) -> None:
        seen = self._catalogue.n  # what the entries were fanned out by
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
            self._refuse(entries, repeats, error)
            return
        if acceptance.stale:
            self._put_back(entries, repeats)
            return
        priors = acceptance.priors
        accepted = [entry for entry in entries if not (priors and self._answer_prior(entry, priors))]
        # Before the answers: whoever gets one and waits for what is to be handed over finds it there.
        self._handing.add(accepted, acceptance.first_seq, now)
        for entry in accepted:
            event = entry.event
            entry.submission.answer(
                entry.index, Published(event.id, event.type, event.account, now, len(entry.endpoints))
            )
        for entry, first in repeats:
            answer_repeat(entry, first, priors)

    def _refuse(self, entries: list[Entry], repeats: Repeats, error: Exception) -> None:
        if not isinstance(error, HooklineError):
            log.exception("accept.failed", events=len(entries))
            error = StoreUnavailable("The event could not be stored; it may be tried again.")
        elif isinstance(error, StoreRefused):
            self._on_refused(error)
        for entry in (*entries, *(entry for entry, _ in repeats)):
            entry.submission.fail(error)

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

    def _reserve(self, entry: Entry, now: float) -> None:
        reserve, event = self._handover.reserve, entry.event
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
