"""Gathers the events of the next commit.

Each account adds some in turn, up to the size of a commit. Payloads are judged before an event joins the line, and
events for lanes without room wait beside it, so that nobody waits for either.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hookline import ids as naming
from hookline.clock import Clock
from hookline.errors import HooklineError, Invalid
from hookline.ids import Ids
from hookline.model import EndpointId, Event
from hookline.pipeline.catalogue.catalogue import Catalogue
from hookline.pipeline.intake.account_turns import AccountTurns
from hookline.pipeline.intake.admission import Admission
from hookline.pipeline.intake.drafts import Draft, Entry, Submission
from hookline.pipeline.intake.judging import PayloadJudge
from hookline.pipeline.lanes.handover import Handover
from hookline.pipeline.lanes.lane import Lane
from hookline.rules.admission import MOST, MOST_BYTES, MOST_DELIVERIES, PATIENCE, share

_LOOK = 0.05  # seconds after which lanes that events wait for are checked again


class Commit(NamedTuple):
    """What is committed together."""

    entries: list[Entry]
    repeats: list[tuple[Entry, Entry]]  # events with a key used earlier in the batch, with that earlier one


class Gathering:
    """The submissions that are not stored yet, or not completely."""

    def __init__(
        self,
        catalogue: Catalogue,
        handover: Handover,
        admission: Admission,
        clock: Clock,
        ids: Ids,
        *,
        most_deliveries: int,
        on_judged: Callable[[], None],
    ) -> None:
        self._catalogue = catalogue
        self._handover = handover
        self._admission = admission
        self._clock = clock
        self._ids = ids
        self._most_deliveries = most_deliveries
        self._on_judged = on_judged
        self._line = AccountTurns()
        self._held: dict[Lane, deque[Submission]] = {}  # submissions that wait for room in a lane
        self._is_resting = False  # everything here waits for room
        self.judging = PayloadJudge(catalogue, clock, on_judged=self._judged)
        self.events = 0  # events that are in no commit yet
        self.bytes = 0

    def add(self, submission: Submission) -> None:
        """Put it in line, once its payloads are judged."""
        self.events += len(submission.drafts)
        self.bytes += submission.bytes
        if self._catalogue.content.matters and self._is_concerned(submission.drafts):
            self.judging.add(submission)
            return
        self._line.add(submission)
        if self._is_resting:
            self._admission.has_room.set()

    @property
    def has_any(self) -> bool:
        """Whether there is anything to commit, now or after a rest."""
        return bool(self._line or self._held)

    async def rest(self) -> None:
        """Wait until a lane has room, or something new arrives."""
        self._admission.has_room.clear()
        self._is_resting = True
        try:
            await self._clock.wait(self._admission.has_room, _LOOK)
        finally:
            self._is_resting = False

    def put_back(self, batch: Commit) -> None:
        """It was not committed: put it back in line, at its old place."""
        for entry in reversed([*batch.entries, *(entry for entry, _ in batch.repeats)]):
            submission = entry.submission
            submission.next = min(submission.next, entry.index)
            self.events += 1
            self.bytes += len(entry.event.payload)
            self._line.put_back(submission)

    def gather(self, now: float) -> Commit:
        """The next batch, with its deliveries reserved; empty if all have to wait."""
        if self._held:
            self._let_go()
        entries: list[Entry] = []
        repeats: list[tuple[Entry, Entry]] = []
        keyed: dict[tuple[str, str], Entry] = {}
        line, fan_out = self._line, self._fan_out
        turns, new_id, reserve = line.turns, self._ids.event, self._handover.reserve
        takes_over = self._handover.takes_over()
        events, room, room_bytes = MOST, MOST_DELIVERIES, MOST_BYTES
        turn = left = share(MOST, line.accounts)
        while turns and events > 0 and room > 0 and room_bytes > 0:
            submission = turns[0][0]
            endpoints = fan_out(submission)
            if endpoints is None:
                if line.leave():
                    left = turn
                continue
            count = len(endpoints)
            if count > room and entries:
                break  # it goes first in the next commit
            if count > left != turn:
                line.turn()
                left = turn
                continue
            index = submission.next
            draft = submission.drafts[index]
            given_id = draft.id
            event = Event(
                id=given_id or new_id(),
                account=draft.account,
                type=draft.type,
                payload=draft.payload,
                idempotency_key=draft.idempotency_key,
                deliver_at=draft.deliver_at,
                hops=draft.hops,
                trace=draft.trace,
                created_at=now,
            )
            entry = first = Entry(submission, index, event, endpoints)
            if draft.idempotency_key is not None:
                first = keyed.setdefault((draft.account, draft.idempotency_key), entry)
            if first is not entry:
                repeats.append((entry, first))
            else:
                must_wait = False
                if not takes_over or (given_id is not None and self._is_known(entry)):
                    entry.lanes = (None,) * count
                elif count == 1 and draft.deliver_at is None:
                    # The path of nearly every event. The first delivery of an event has its id.
                    lane = reserve(endpoints[0], event.id)  # type: ignore[arg-type]  # naming the type is a call
                    entry.lanes = (lane,)
                    must_wait = (lane is None or lane.behind) and self._must_wait(entry)
                else:
                    must_wait = self._reserve(entry, now)
                if must_wait:
                    if draft.idempotency_key is not None:
                        del keyed[draft.account, draft.idempotency_key]
                    if line.leave():
                        left = turn
                    continue
                entries.append(entry)
                events -= 1
                room -= count
                room_bytes -= len(draft.payload)
            self.events -= 1
            self.bytes -= len(draft.payload)
            submission.next = index + 1
            left -= count or 1
            if submission.next == len(submission.drafts) and line.leave():
                left = turn
            elif left <= 0:
                line.turn()
                left = turn
        if left != turn:
            line.turn()  # this account had its part of the commit
        return Commit(entries, repeats)

    def _judged(self, submission: Submission) -> None:
        self._line.add(submission)
        if self._is_resting:
            self._admission.has_room.set()
        self._on_judged()

    def _is_concerned(self, drafts: list[Draft]) -> bool:
        """Whether the payload of any of them decides anything."""
        content, find = self._catalogue.content, self._catalogue.find
        kinds = {(draft.account, draft.type) for draft in drafts}
        return any(content.concerns(type, find(account, type)) for account, type in kinds)

    def _fan_out(self, submission: Submission) -> tuple[EndpointId, ...] | None:
        """The endpoints of the first draft that is not refused; None: the submission has to leave the line."""
        drafts = submission.drafts
        while submission.next < len(drafts) and not submission.is_over:
            draft = drafts[submission.next]
            endpoints = self._catalogue.find(draft.account, draft.type)
            if self._catalogue.content.matters:
                wanted = self._wanted(submission, draft, endpoints)
                if wanted is None:
                    return None
                if isinstance(wanted, HooklineError):
                    self._refuse(submission, wanted)
                    continue
                endpoints = wanted
            if len(endpoints) <= self._most_deliveries:
                return endpoints
            self._refuse(submission, self._too_many(len(endpoints)))
        # Its last drafts were refused, or it failed: nothing of it waits for a commit any more.
        unstored = drafts[submission.next :]
        self.events -= len(unstored)
        self.bytes -= sum([len(draft.payload) for draft in unstored])
        return None

    def _wanted(
        self, submission: Submission, draft: Draft, endpoints: tuple[EndpointId, ...]
    ) -> tuple[EndpointId, ...] | HooklineError | None:
        """The endpoints that want the next draft, or its refusal; None: it has to be judged, or judged again."""
        catalogue = self._catalogue
        judgement = submission.judgement()
        if judgement is None:
            if not catalogue.content.concerns(draft.type, endpoints):
                return endpoints
        elif judgement.n == catalogue.n or catalogue.content.holds(judgement, draft.type, endpoints):
            return judgement.wanted
        submission.judge_again()
        self.judging.add(submission)
        return None

    def _too_many(self, deliveries: int) -> Invalid:
        return Invalid(
            f"This event would go to {deliveries:,} endpoints; at most {self._most_deliveries:,} are allowed.",
            pointer="/type",
            code="fanout_limit",
        )

    def _refuse(self, submission: Submission, error: HooklineError) -> None:
        index = submission.next
        submission.next += 1
        self.events -= 1
        self.bytes -= len(submission.drafts[index].payload)
        submission.answer(index, error)

    # --- room in lanes ---

    def _is_known(self, entry: Entry) -> bool:
        """Whether a lane has one of its deliveries already: the event was stored before, and they may be under way."""
        knows, id = self._handover.knows, entry.event.id
        return any(
            knows(endpoint, naming.delivery_of(id, ordinal))
            for ordinal, endpoint in enumerate(entry.endpoints)
        )

    def _reserve(self, entry: Entry, now: float) -> bool:
        """Reserve its deliveries where they can be handed over; True if it has to wait for a lane."""
        reserve, event = self._handover.reserve, entry.event
        if event.deliver_at is not None and self._clock.due(event.deliver_at) > now:
            return False
        entry.lanes = [
            reserve(endpoint, naming.delivery_of(event.id, ordinal))
            for ordinal, endpoint in enumerate(entry.endpoints)
        ]
        return self._must_wait(entry)

    def _must_wait(self, entry: Entry) -> bool:
        lane = self._admission.held_by(entry)
        return lane is not None and self._hold(entry, lane)

    def _hold(self, entry: Entry, lane: Lane) -> bool:
        """Let its submission wait until the lane has room; False: it has waited long enough."""
        submission, at = entry.submission, self._clock.monotonic()
        if submission.held_at is None:
            submission.held_at = at
        elif at - submission.held_at >= PATIENCE:
            return False
        for ordinal, reserved in enumerate(entry.lanes):
            if reserved is not None:
                reserved.forget(naming.delivery_of(entry.event.id, ordinal))
        self._held.setdefault(lane, deque()).append(submission)
        return True

    def _let_go(self) -> None:
        """Put the submissions back in line whose lane has room, or that have waited long enough."""
        since = self._clock.monotonic() - PATIENCE
        takes_over = self._handover.takes_over()
        for lane, waiting in list(self._held.items()):
            room = self._admission.room(lane) if takes_over else None
            going: list[Submission] = []
            while waiting and (room is None or len(going) < room or _came(waiting[0]) <= since):
                going.append(waiting.popleft())
            for submission in reversed(going):
                self._line.put_back(submission)
            if not waiting:
                del self._held[lane]


def _came(submission: Submission) -> float:
    return submission.held_at or 0.0
