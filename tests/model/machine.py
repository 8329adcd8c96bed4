"""The steps that publishers and workers can take, in any order.

Hypothesis draws small numbers. What they stand for (the third lane, the last attempt but one) is looked up in the
reference, so that most steps do something and a failing run shrinks to few of them. Only what could really happen is
drawn: ids are never used twice, an epoch or an attempt's number may be old but never one of the future, one batch
names no delivery, key or lane twice. What people do is in `machine_operators`.

`take` with a limit and `cancel_deleted` may choose among equals; they are called so that there is one answer.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, ClassVar, TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from factories import NOW, a_worker, an_attempt, an_endpoint, an_event
from hookline.ids import Ids, event_of
from hookline.model import (
    CLOSED,
    FOREVER,
    LONG_AGO,
    Circuit,
    CircuitState,
    ErrorKind,
    Ordering,
    Outcome,
    Reason,
    State,
)
from hookline.store.contract import (
    Acceptance,
    EventFanout,
    LaneNote,
    Load,
    Release,
    Settlement,
    Suspect,
    Want,
)
from hookline.testing.clock import ManualClock
from tests.model.driver import Driver
from tests.model.reference import LaneRow, Reference

T = TypeVar("T")
MOST_LANES = 5
N = st.integers(0, 7)
MASK = st.integers(1, 2**MOST_LANES - 1)
OPEN = Circuit(state=CircuitState.OPEN, failures=5, cooldown=60.0, opened_at=NOW, probe_at=NOW + 60)

A_PUBLICATION = st.tuples(
    st.sampled_from([0, 1]),  # whose clock makes the id
    st.sampled_from(["default", "default", "acme"]),
    MASK,
    st.sampled_from([None, None, -5, 30, 300]),  # deliver_at, from now
    st.sampled_from([None, None, "a", "b"]),  # idempotency key
    st.sampled_from([10, 10, 10, 17_000]),  # bytes of payload
)


def pick(of: Sequence[T], n: int) -> T:
    return of[n % len(of)]


def masked(of: Sequence[T], mask: int) -> list[T]:
    return [one for n, one in enumerate(of) if mask >> n & 1]


def by_id(answer: list[Any]) -> list[Any]:
    return sorted(answer, key=lambda taken: taken.endpoint_id)


def when(holds: Callable[[Reference], object]) -> Any:
    """Only while this is true of the reference."""
    return precondition(lambda machine: holds(machine.driver.reference))


def has_owner(reference: Reference) -> bool:
    return any(lane.owner for lane in reference.lanes.values())


def is_at_work(reference: Reference) -> bool:
    return any(lane.owner and reference.pending(id) for id, lane in reference.lanes.items())


class Machine(RuleBasedStateMachine):
    """Publishers and workers."""

    new_driver: ClassVar[Callable[[], Driver]]

    def __init__(self) -> None:
        super().__init__()
        self.driver = type(self).new_driver()
        self.reference = self.driver.reference
        # Two makers of ids whose clocks are an hour apart: the order of ids is not that of publishing.
        self.makers = [Ids(ManualClock(NOW + ahead), Random(seed)) for seed, ahead in enumerate((0, 3_600))]
        self.published: list[tuple[list[EventFanout], int]] = []
        self.settled: list[tuple[Any, list[Settlement], list[LaneNote]]] = []

    @property
    def now(self) -> float:
        return self.driver.now

    @initialize()
    def begins(self) -> None:
        for account, ordering in (("default", "parallel"), ("default", "strict"), ("acme", "parallel")):
            self.add_endpoint(account, ordering)
        for _ in range(2):
            self.register()
        # Every example begins with owned lanes that have work, or most would never get there.
        first = [
            (0, "default", 31, None, "a", 10),
            (1, "default", 31, None, None, 10),
            (0, "acme", 31, None, "a", 10),
        ]
        self.publish(first, wakes=True, behind=False)
        self.take_these(0, 31)
        self.settle(0, ["retried", "dead"], False)
        self.goes_on()

    def goes_on(self) -> None:
        """What else has happened before an example begins."""

    @invariant()
    def agrees(self) -> None:
        self.driver.look()

    # what rules share

    def add_endpoint(self, account: str, ordering: str) -> None:
        id = self.driver.name(self.makers[0].endpoint(), "lane")
        fields = {"created_at": self.now, "updated_at": self.now, "ordering": Ordering(ordering)}
        endpoint = an_endpoint(id=id, account=account, **fields)
        self.reference.create_endpoint(endpoint)
        self.driver.do("create_endpoint", endpoint, now=self.now, expected=None)

    def lanes(self) -> list[LaneRow]:
        return list(self.reference.lanes.values())

    def worker(self, n: int) -> Any:
        return pick(list(self.reference.workers), n)

    def owned_lane(self, n: int, *, with_work: bool = False) -> LaneRow:
        lanes = [lane for lane in self.lanes() if lane.owner is not None]
        return pick([x for x in lanes if not with_work or self.reference.pending(x.endpoint_id)], n)

    def wake(self, lanes: Sequence[Any]) -> None:
        self.reference.wake(lanes, now=self.now)
        self.driver.do("wake", lanes, now=self.now, expected=None)
        self.driver.owed.difference_update(lanes)

    def owe(self, lanes: Sequence[Any], *, wakes: bool) -> None:
        """Whoever makes rows due or frees a lane owes it a wake, now or a moment later."""
        self.driver.owed.update(lanes)
        if wakes and lanes:
            self.driver.look()
            self.wake(lanes)

    def a_note(self, lane: LaneRow, epoch: int, n: int) -> LaneNote:
        waiting = [row.id for row in self.reference.pending(lane.endpoint_id)]
        return LaneNote(
            endpoint_id=lane.endpoint_id,
            epoch=epoch,
            hold_until=pick([LONG_AGO, self.now + 120, self.now + 5], n),
            head=pick([None, *waiting], n) if lane.strict else None,
            circuit=pick([CLOSED, OPEN], n),
            applied=len(self.reference.changes) if n % 3 else lane.applied,
            rest_until=pick([LONG_AGO, LONG_AGO, self.now + 5], n // 3),
        )

    # time and publishers

    @rule(seconds=st.sampled_from([1, 10, 60, 400]))
    def time_passes(self, seconds: int) -> None:
        self.driver.now += seconds
        self.driver.steps.append(f"{seconds} s pass")

    @rule(
        batch=st.lists(A_PUBLICATION, min_size=1, max_size=3),
        wakes=st.booleans(),
        behind=st.sampled_from([False, False, False, True]),
    )
    def publish(self, batch: list[tuple[Any, ...]], wakes: bool, behind: bool) -> None:
        publications: list[EventFanout] = []
        keys = set()
        for maker, account, mask, later, key, size in batch:
            if key is not None and (account, key) in keys:
                continue
            keys.add((account, key))
            endpoints = [e.id for e in self.reference.endpoints.values() if e.account == account]
            event = an_event(
                id=self.driver.name(self.makers[maker].event(), "event"),
                account=account,
                type=f"order.{account}",
                payload=b"1" * size,
                idempotency_key=key,
                deliver_at=None if later is None else self.now + later,
                created_at=self.now,
            )
            publications.append(EventFanout(event, tuple(masked(endpoints, mask)), f"{size}".encode()))
        number = len(self.reference.changes) if not behind else self.reference.catalogue - 1
        self.published.append((publications, number))
        self.accept(publications, number, wakes=wakes)

    @precondition(lambda self: self.published)
    @rule(n=N, refreshed=st.booleans(), wakes=st.booleans())
    def publish_again(self, n: int, refreshed: bool, wakes: bool) -> None:
        """Its first answer was lost."""
        publications, number = pick(self.published, n)
        gone = any(lane not in self.reference.endpoints for p in publications for lane in p.endpoints)
        refreshed = refreshed and not gone  # nobody fans out to an endpoint that is not in the catalogue
        self.accept(publications, len(self.reference.changes) if refreshed else number, wakes=wakes)

    def accept(self, batch: list[EventFanout], catalogue: int, *, wakes: bool) -> None:
        before = set(self.reference.deliveries)
        expected = self.reference.accept(batch, catalogue=catalogue, now=self.now)
        self.driver.say("accept", batch, catalogue=catalogue)
        written = [id for id in self.reference.deliveries if id not in before]
        for id in written:
            ordinal = int.from_bytes(id) - int.from_bytes(event_of(id))
            self.driver._names.setdefault(id, f"{self.driver.show(event_of(id))}.{ordinal}")
        for subject in self.driver.subjects:
            answer = self.driver.run(subject.store.accept(batch, catalogue=catalogue, now=self.now))
            if not isinstance(answer, Acceptance):
                self.driver.fail(subject, str(answer))
            self.driver.compare(subject, (answer.stale, answer.priors), (expected.stale, expected.priors))
            seqs = subject.tables.seqs() if written else {}
            if any(seqs.get(id, FOREVER) < answer.first_seq for id in written):
                self.driver.fail(subject, "first_seq is not the first")
        lanes = sorted({self.reference.deliveries[id].endpoint_id for id in written})
        self.owe(lanes, wakes=wakes)

    # workers

    @when(lambda r: len(r.workers) < 4)
    @rule()
    def register(self) -> None:
        worker = a_worker(id=self.driver.name(self.makers[0].worker(), "worker"))
        self.reference.register(worker)
        self.driver.do("register", worker, expected=None)

    @when(lambda r: r.workers)
    @rule(n=N)
    def beat(self, n: int) -> None:
        worker = self.worker(n)
        self.driver.do("beat", worker, Load(), now=self.now, expected=self.reference.beat(worker))

    @when(lambda r: r.workers)
    @rule(n=N, beats_behind=st.sampled_from([0, 0, 1]))
    def bury(self, n: int, beats_behind: int) -> None:
        worker = self.worker(n)
        beat = self.reference.workers[worker].beat - beats_behind
        expected = self.reference.bury(worker, beat=beat, now=self.now)
        self.driver.do("bury", worker, beat=beat, now=self.now, expected=expected)

    @when(lambda r: r.workers)
    @rule(n=N, wakes=st.booleans())
    def free(self, n: int, wakes: bool) -> None:
        dead = [id for id in self.reference.workers if not self.reference.lives(id)]
        worker = pick(dead or list(self.reference.workers), n)
        lanes = self.reference.free(worker, now=self.now)
        self.driver.do("free", worker, now=self.now, expected=lanes, seen=sorted)
        self.owe(lanes, wakes=wakes)

    @when(lambda r: r.workers)
    @rule(n=N)
    def retire(self, n: int) -> None:
        worker = self.worker(n)
        self.reference.retire(worker)
        self.driver.do("retire", worker, expected=None)

    @when(lambda r: r.workers)
    @rule(n=N, limit=st.integers(1, 4))
    def take(self, n: int, limit: int) -> None:
        waiting = self.reference.to_take(now=self.now)
        while limit < len(waiting) and waiting[limit].wake_at == waiting[limit - 1].wake_at:
            limit += 1
        worker = self.worker(n)
        taken = self.reference.take(worker, limit=limit, now=self.now)

        def seen(answer: list[Any]) -> list[Any]:
            assert [lane.woke_at for lane in answer] == sorted(lane.woke_at for lane in answer), (
                "not in order"
            )
            return sorted(answer, key=lambda lane: (lane.woke_at, lane.endpoint_id))

        self.driver.do("take", worker, limit=limit, now=self.now, expected=taken, seen=seen)

    @when(lambda r: r.workers and r.lanes)
    @rule(n=N, mask=MASK)
    def take_these(self, n: int, mask: int) -> None:
        worker, lanes = self.worker(n), masked(list(self.reference.lanes), mask)
        copies = masked(list(self.reference.deliveries), mask)
        taken = self.reference.take_these(worker, lanes, copies=copies, now=self.now)
        self.driver.do("take_these", worker, lanes, copies=copies, now=self.now, expected=taken, seen=by_id)

    @when(lambda r: r.deliveries)
    @rule(mask=MASK, ready=st.integers(0, 3), timed=st.integers(0, 3), floor=st.none() | N, known=MASK, n=N)
    def load(self, mask: int, ready: int, timed: int, floor: int | None, known: int, n: int) -> None:
        deliveries = list(self.reference.deliveries)
        lowest = None if floor is None else pick(deliveries, floor)
        ids = masked(deliveries[n:], known) if n % 2 else []
        due_floor = pick([LONG_AGO, self.now - 30], n)
        wants = [Want(id, ready, timed, 0, due_floor) for id in masked(list(self.reference.lanes), mask)]
        expected = {
            want.endpoint_id: self.reference.load(want, floor=lowest, known=ids, now=self.now)
            for want in wants
        }
        self.driver.say("load", wants, known=ids, floor=lowest)
        for subject in self.driver.subjects:
            seq = 0 if lowest is None else subject.tables.seqs()[lowest]
            floored = [msgspec.structs.replace(want, floor=seq) for want in wants]
            found: dict[Any, list[Any]] = {want.endpoint_id: [] for want in wants}
            for loaded in self.driver.run(subject.store.load(floored, known=ids, now=self.now)):
                found[loaded.endpoint_id].append(msgspec.structs.replace(loaded, seq=0))
            self.driver.compare(subject, found, expected)

    # owners

    @when(is_at_work)
    @rule(
        n=N,
        ends=st.lists(st.sampled_from(["delivered", "retried", "dead"]), min_size=1, max_size=3),
        noted=st.booleans(),
    )
    def settle(self, n: int, ends: list[str], noted: bool) -> None:
        """As an owner does; it may have lost its lane all the same, if it was buried."""
        lane = self.owned_lane(n, with_work=True)
        rows = self.reference.pending(lane.endpoint_id)
        batch = [
            self.a_settlement(row.id, lane, end, number=row.attempts + 1, replays=row.replays)
            for row, end in zip(rows, ends, strict=False)
        ]
        self.settle_all(lane.owner, batch, [self.a_note(lane, lane.epoch, n)] if noted else [])

    @when(is_at_work)
    @rule(
        n=N,
        end=st.sampled_from(["delivered", "retried", "dead"]),
        wrong=st.sampled_from(["epoch", "number", "replays", "worker"]),
    )
    def settle_wrongly(self, n: int, end: str, wrong: str) -> None:
        """One thing is not as it was when the attempt began, but it is never a thing of the future."""
        lane = self.owned_lane(n, with_work=True)
        rows = self.reference.pending(lane.endpoint_id)
        row = max(rows, key=lambda row: (row.replays, row.attempts)) if wrong != "epoch" else pick(rows, n)
        number, replays, worker = row.attempts + 1, row.replays, lane.owner
        match wrong:
            case "number":
                number = max(1, row.attempts)
            case "replays":
                number, replays = 1, max(0, row.replays - 1)
            case "worker":
                worker = self.worker(n)
        settlement = self.a_settlement(row.id, lane, end, number=number, replays=replays)
        if wrong == "epoch":
            settlement = msgspec.structs.replace(settlement, epoch=lane.epoch - 1)
        self.settle_all(worker, [settlement], [self.a_note(lane, settlement.epoch, n)])

    @when(lambda r: r.deliveries and r.workers)
    @rule(n=N, delivery=N, end=st.sampled_from(["delivered", "retried", "dead"]))
    def settle_too_late(self, n: int, delivery: int, end: str) -> None:
        """By anybody, about any delivery: most of them have ended, or are of lanes that nobody owns."""
        row = pick(list(self.reference.deliveries.values()), delivery)
        lane = self.reference.lanes[row.endpoint_id]
        settlement = self.a_settlement(row.id, lane, end, number=row.attempts + 1, replays=row.replays)
        self.settle_all(self.worker(n), [settlement], [])

    @when(has_owner)
    @rule(n=N, end=st.sampled_from(["delivered", "retried"]))
    def die_and_settle(self, n: int, end: str) -> None:
        """Buried with a request under way, whose answer still comes."""
        lane = self.owned_lane(n)
        if self.reference.lives(lane.owner):
            self.bury(list(self.reference.workers).index(lane.owner), 0)
        if rows := self.reference.pending(lane.endpoint_id):
            row = rows[0]
            settlement = self.a_settlement(row.id, lane, end, number=row.attempts + 1, replays=row.replays)
            self.settle_all(lane.owner, [settlement], [])

    @precondition(lambda self: self.settled)
    @rule(n=N)
    def settle_again(self, n: int) -> None:
        """Its first answer was lost."""
        worker, batch, notes = pick(self.settled[::-1], n)
        verdicts = self.reference.settle(worker, batch, notes=notes, now=self.now)
        self.driver.do("settle", worker, batch, notes=notes, now=self.now, expected=verdicts)

    def settle_all(self, worker: Any, batch: list[Settlement], notes: list[LaneNote]) -> None:
        self.settled.append((worker, batch, notes))
        self.settle_again(0)

    def a_settlement(self, id: Any, lane: LaneRow, end: str, *, number: int, replays: int) -> Settlement:
        attempt = an_attempt(
            id,
            id=self.driver.name(self.makers[0].attempt(), "attempt"),
            number=number,
            replays=replays,
            at=self.now,
            **{} if end == "delivered" else _FAILED,
        )
        state, reason = _ENDS[end]
        return Settlement(attempt, lane.endpoint_id, lane.epoch, state, self.now + 30.0 * number, reason)

    @when(has_owner)
    @rule(n=N, lost=st.sampled_from([0, 0, 1]))
    def note(self, n: int, lost: int) -> None:
        lane = self.owned_lane(n)
        notes = [self.a_note(lane, lane.epoch - lost, n)]
        written = self.reference.note(lane.owner, notes)
        self.driver.do("note", lane.owner, notes, now=self.now, expected=written)

    @when(has_owner)
    @rule(
        n=N,
        mask=MASK,
        lost=st.sampled_from([0, 0, 1]),
        older=st.sampled_from([0, 0, 1]),
        condemned=st.booleans(),
    )
    def suspect(self, n: int, mask: int, lost: int, older: int, condemned: bool) -> None:
        lane = self.owned_lane(n)
        rows = [x for x in self.reference.deliveries.values() if x.endpoint_id == lane.endpoint_id]
        suspects = [
            Suspect(x.id, x.endpoint_id, lane.epoch - lost, max(0, x.replays - older))
            for x in masked(rows[::-1], mask)
        ]
        if condemned:
            dead = self.reference.condemn(lane.owner, suspects[:1], now=self.now)
            self.driver.do("condemn", lane.owner, suspects[:1], now=self.now, expected=dead, seen=sorted)
        else:
            marked = self.reference.mark(lane.owner, suspects)
            self.driver.do("mark", lane.owner, suspects, now=self.now, expected=marked, seen=sorted)

    @when(has_owner)
    @rule(
        n=N, lost=st.sampled_from([0, 0, 1]), until=st.sampled_from([FOREVER, 0.0, 40.0]), wakes=st.booleans()
    )
    def release(self, n: int, lost: int, until: float, wakes: bool) -> None:
        lane = self.owned_lane(n)
        tokens = (2.5, self.now) if n % 2 else (None, None)
        releases = [
            Release(lane.endpoint_id, lane.epoch - lost, self.now + until, *tokens, suspect=n % 3 == 1)
        ]
        worker = lane.owner
        let_go = self.reference.release(worker, releases)
        self.driver.do("release", worker, releases, now=self.now, expected=let_go, seen=sorted)
        self.owe(let_go, wakes=wakes)

    @when(lambda r: r.lanes)
    @rule(mask=MASK)
    def wake_some(self, mask: int) -> None:
        self.wake(masked(list(self.reference.lanes), mask))

    @when(lambda r: r.lanes)
    @rule(n=st.none() | N)
    def sweep(self, n: int | None) -> None:
        after = None if n is None else pick(sorted(self.reference.lanes), n)
        self.reference.sweep(after=after, now=self.now)
        self.driver.do("sweep", after=after, now=self.now, expected=None)
        self.driver.owed -= {id for id in self.reference.lanes if after is None or id > after}


_FAILED = {"outcome": Outcome.TRANSIENT, "status": 503, "error": ErrorKind.HTTP_5XX, "error_detail": "503"}
_ENDS = {
    "delivered": (State.DELIVERED, None),
    "retried": (State.PENDING, None),
    "dead": (State.DEAD, Reason.EXHAUSTED),
}
