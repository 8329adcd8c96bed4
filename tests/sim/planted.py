"""Bugs that the simulation must detect.

Each bug has a name and is a small change to the product, made for one test and reverted. They are the list of the
design (M1 to M25, and B3 of measuring), as far as they apply to lanes, and others that the simulation, a run with real
faults or an audit found.
Where a bug differs from its entry in the list, its docstring says how.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec

import hookline.pipeline.lanes.ownership
import hookline.pipeline.lanes.payload_memory
import hookline.pipeline.membership.burial
import hookline.pipeline.membership.heartbeat
import hookline.pipeline.sending.client
import hookline.pipeline.sending.dial
import hookline.pipeline.settle
import hookline.pipeline.worker
import hookline.rules.circuit
import hookline.rules.settlement
from hookline.admin.changes import Changes
from hookline.clock import SystemClock
from hookline.model import LONG_AGO, Circuit, EndpointId, Outcome, WorkerId
from hookline.pipeline.intake.accept import Intake
from hookline.pipeline.lane_events import LaneEvents
from hookline.pipeline.lanes.circuit_breaker import CircuitBreaker, CircuitProbes
from hookline.pipeline.lanes.flow_control import FlowControl
from hookline.pipeline.lanes.handover import Handover
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.loader import Loader
from hookline.pipeline.lanes.notes import LaneNotes
from hookline.pipeline.lanes.ownership import Ownership
from hookline.pipeline.measuring.latency_meter import LatencyMeter, MeasuredBatch
from hookline.pipeline.membership.heartbeat import Heartbeat
from hookline.pipeline.outbox.accepting import Accepted, CheckedRows, RowAcceptor
from hookline.pipeline.outbox.moving import RowMover, TimedHead
from hookline.pipeline.settle import Settler
from hookline.rules.circuit import begin_probe
from hookline.rules.lane_state import Recovery
from hookline.rules.liveness import By, DeadWorker, Seen, Watch
from hookline.rules.retry import Policy, wait_after
from hookline.store.contract import (
    Acceptance,
    EventFanout,
    Loaded,
    Pulse,
    Release,
    RowPlace,
    Settlement,
    Taken,
    Verdict,
    WaitingRow,
)
from hookline.store.sqlite import accept, retention, sql
from hookline.store.sqlite import lanes as sqlite_lanes
from hookline.store.sqlite.driver.bulk import write_rows
from hookline.store.sqlite.driver.connections import on_writer
from hookline.store.sqlite.lanes import attempt_row
from hookline.store.sqlite.store import SqliteStore
from tests.sim.sessions import Sessions

Plant = Callable[["Garden"], None]
BUGS: dict[str, Plant] = {}


class Garden:
    """The changes, so that they can be reverted."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, place: Any, name: str, value: Any) -> Any:
        """Replace an attribute; returns the old value."""
        before = place.__dict__[name]
        self._before.append((place, name, before))
        setattr(place, name, value)
        return before

    def replace(self, module: Any, name: str, right: str, wrong: str) -> None:
        """Change the words of a statement."""
        before: str = getattr(module, name)
        if right not in before:
            raise AssertionError(f"{name} has changed: plant the bug anew")
        self.put(module, name, before.replace(right, wrong))

    def clear(self) -> None:
        for place, name, value in reversed(self._before):
            setattr(place, name, value)
        self._before.clear()


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run with this bug."""
    garden = Garden()
    try:
        BUGS[name](garden)
        yield
    finally:
        garden.clear()


def bug(name: str) -> Callable[[Plant], Plant]:
    def keep(plant: Plant) -> Plant:
        BUGS[name] = plant
        return plant

    return keep


def _unfence(garden: Garden) -> None:
    garden.replace(
        sql, "SETTLE_DELIVERIES", "SELECT id FROM workers WHERE id = ? AND buried_at IS NULL", "SELECT ?"
    )
    garden.replace(sql, "SETTLE_DELIVERIES", "AND l.owner = me.id AND l.epoch = u.epoch", "")


@bug("M1 settle without token")
def _m1(garden: Garden) -> None:
    _unfence(garden)


@bug("M2 a crash under a delivery is not counted")
def _m2(garden: Garden) -> None:
    """Lanes of the dead are sent like any other."""
    adopted = garden.put(LaneEvents, "adopted", None)

    def careless(self: LaneEvents, lane: Lane) -> None:
        lane.recovery = Recovery.NONE
        lane._restate()
        adopted(self, lane)

    LaneEvents.adopted = careless


@bug("M3 due by the wall clock")
def _m3(garden: Garden) -> None:
    garden.put(SystemClock, "now", lambda self: self.wall())


@bug("M4 a circuit's probe is sent before it is written down")
def _m4(garden: Garden) -> None:
    async def hasty(self: CircuitProbes, lane: Lane) -> None:
        lane.flow.begin_probe()
        lane.flow.grant_probe()

    garden.put(CircuitProbes, "send", hasty)


@bug("M5 a bucket for each worker")
def _m5(garden: Garden) -> None:
    def forgetful(lane: Lane, *, wake_at: float) -> Release:
        return Release(lane.endpoint_id, lane.epoch, wake_at, None, None)

    garden.put(hookline.pipeline.lanes.ownership, "_release", forgetful)
    garden.replace(sql, "FREE", "tokens = 0, tokens_at = :now", "tokens = NULL, tokens_at = NULL")


@bug("M6 the lanes of the dead are not freed")
def _m6(garden: Garden) -> None:
    async def careless(store: Any, clock: Any, dead: Any, **_: Any) -> None:
        for id, beat, _by in dead:
            await store.bury(id, beat=beat, now=clock.now())

    garden.put(hookline.pipeline.worker, "bury", careless)


@bug("M7 acknowledged before the commit")
def _m7(garden: Garden) -> None:
    async def early(self: Any, entries: list[Any], now: float, seen: int) -> Acceptance:
        batch = [EventFanout(entry.event, entry.endpoints, b"") for entry in entries]

        async def late() -> None:
            await asyncio.sleep(0.3)
            await self._store.accept(batch, catalogue=seen, now=now)

        self.late = asyncio.create_task(late())
        self._drop_reservations(entries)
        for entry in entries:
            entry.endpoints = ()
        return Acceptance(stale=False)

    garden.put(Intake, "_store_batch", early)


@bug("M8 the idempotency key is not in the transaction")
def _m8(garden: Garden) -> None:
    garden.put(accept, "_key_rows", lambda batch: [])


def _waits(garden: Garden, wait: Callable[..., float | None]) -> None:
    garden.put(hookline.rules.settlement, "wait_after", wait)


@bug("M9 jitter is fixed")
def _m9(garden: Garden) -> None:
    def fixed(failures: int, *, policy: Policy, roll: float, asked: float | None = None) -> float | None:
        return wait_after(failures, policy=policy, roll=0.5, asked=asked)

    _waits(garden, fixed)


@bug("M10 Retry-After replaces the policy's wait")
def _m10(garden: Garden) -> None:
    def obedient(failures: int, *, policy: Policy, roll: float, asked: float | None = None) -> float | None:
        wait = wait_after(failures, policy=policy, roll=roll)
        return wait if wait is None or asked is None else asked

    _waits(garden, obedient)


@bug("M11 taking over resets the attempts")
def _m11(garden: Garden) -> None:
    right = inspect.unwrap(garden.put(SqliteStore, "free", None))

    def resetting(store: Any, connection: Any, worker: Any, *, now: float) -> Any:
        freed = right(store, connection, worker, now=now)
        for lane in freed:
            connection.execute(
                "UPDATE deliveries SET attempts = 0 WHERE endpoint_id = ? AND state = 'pending'", (lane,)
            )
        return freed

    SqliteStore.free = on_writer(resetting)


@bug("M12 a settlement is refused to a worker that is late with its beat, and not buried")
def _m12(garden: Garden) -> None:
    right = garden.put(sqlite_lanes, "_settle_all", None)

    def strict(connection: Any, worker: Any, batch: Sequence[Settlement], *, now: float) -> list[Verdict]:
        row = connection.execute("SELECT seen_at FROM workers WHERE id = ?", (worker,)).fetchone()
        if row is not None and now - row[0] > 1.5:
            for each in batch:
                write_rows(connection, sql.SETTLE_ATTEMPTS, [attempt_row(each.attempt, late=True)])
            return [Verdict.LATE] * len(batch)
        return right(connection, worker, batch, now=now)  # type: ignore[no-any-return]

    sqlite_lanes._settle_all = strict


@bug("M13 pruned by the age of the event")
def _m13(garden: Garden) -> None:
    for name in ("PRUNE_LOOK", "PRUNE_DELIVERIES"):
        garden.replace(retention, name, "AND d.done_at < :done_before", "")
        garden.replace(retention, name, "AND d.done_at < :dead_before", "")


@bug("M14 deleting an endpoint leaves its pending deliveries")
def _m14(garden: Garden) -> None:
    garden.replace(sql, "CANCEL_DELETED", "WHERE l.deleted = 1", "WHERE l.deleted = 2")


@bug("M15 the probe of a dead worker is waited for")
def _m15(garden: Garden) -> None:
    def endless(self: CircuitBreaker) -> float:
        until = self._now() + 1e6
        self.circuit = begin_probe(self.circuit, until=until)
        return until

    garden.put(CircuitBreaker, "begin_probe", endless)


@bug("M16 no recheck after a release")
def _m16(garden: Garden) -> None:
    right = garden.put(Ownership, "release", None)

    async def trusting(self: Ownership, lanes: Any, *, woken: bool = False) -> None:
        store = self._store

        class Deaf:
            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            async def wake(self, lanes: Any, *, now: float) -> None:
                """Nothing is looked at."""

        self._store = Deaf()
        try:
            await right(self, lanes, woken=woken)
        finally:
            self._store = store

    Ownership.release = trusting


@bug("M17 woken before the commit, not after it")
def _m17(garden: Garden) -> None:
    """Of lanes that are not held here."""
    store_batch = garden.put(Intake, "_store_batch", None)
    announce = Handover.announce

    async def early(self: Any, entries: list[Any], now: float, seen: int) -> Acceptance:
        for entry in entries:
            for endpoint in entry.endpoints:
                announce(self._handover, endpoint)
        await self._handover.wakes.flush()
        return await store_batch(self, entries, now, seen)  # type: ignore[no-any-return]

    def silent(self: Handover, endpoint: Any, delivery: Any = None, *, due_at: float | None = None) -> None:
        lane = self._lanes.get(endpoint)
        if lane is not None and lane.is_held:
            announce(self, endpoint, delivery, due_at=due_at)

    Intake._store_batch = early
    garden.put(Handover, "announce", silent)


@bug("M18 the fence is looked at in an earlier snapshot")
def _m18(garden: Garden) -> None:
    _unfence(garden)
    write = garden.put(Settler, "_write", None)

    async def looked(
        self: Settler, batch: Sequence[tuple[Lane, Settlement]], *, with_notes: bool = True
    ) -> list[Verdict]:
        try:
            owned = {lane.endpoint_id: lane.epoch for lane in await self._store.owned(self.worker())}
        except Exception:
            owned = {lane.endpoint_id: lane.epoch for lane, _ in batch}
        ours = [each for each in batch if owned.get(each[1].endpoint_id) == each[1].epoch]
        verdicts = (
            dict(zip(map(id, ours), await write(self, ours, with_notes=with_notes), strict=True))
            if ours
            else {}
        )
        return [verdicts.get(id(each), Verdict.LATE) for each in batch]

    Settler._write = looked


@bug("M19 no tombstones")
def _m19(garden: Garden) -> None:
    def settled(self: Loader, id: Any) -> None:
        if any(self._lines):
            self._nudged.set()

    garden.put(Loader, "settled", settled)


@bug("M20 no reservation before the accept")
def _m20(garden: Garden) -> None:
    garden.put(Lane, "reserve", lambda self, id: None)

    def hand_over(self: Handover, lane: Lane, delivery: Loaded, *, at: float) -> None:
        if not lane.is_held:
            self.wakes.add(delivery.endpoint_id)
            return
        lane.add(delivery)
        self._offer(lane)

    garden.put(Handover, "hand_over", hand_over)


@bug("M21 handed over on a stale pulse")
def _m21(garden: Garden) -> None:
    """The gate before the first byte believes it too: without that, nothing that was handed over would be sent."""
    garden.put(Heartbeat, "is_fresh", lambda self: self._good > LONG_AGO)


@bug("M22 no sweep after a death")
def _m22(garden: Garden) -> None:
    async def nothing(store: Any, clock: Any) -> None:
        """No sweep after a worker died between a commit and its wake."""

    garden.put(hookline.pipeline.membership.burial, "sweep", nothing)


@bug("M23 buried by a timestamp")
def _m23(garden: Garden) -> None:
    right = garden.put(Heartbeat, "look", None)

    async def look(self: Heartbeat) -> None:
        await right(self)
        now = self._clock.wall()
        dead = [
            DeadWorker(peer.id, peer.beat, By.LEASE)
            for peer in self.peers
            if now - peer.seen_at > self._lease
        ]
        if dead:
            await self.on_dead(dead)

    Heartbeat.look = look


@bug("M24 no reconcile")
def _m24(garden: Garden) -> None:
    async def nothing(self: Ownership) -> None:
        self._is_in_doubt = False

    garden.put(Ownership, "reconcile", nothing)


@bug("M25 handed over to a strict lane")
def _m25(garden: Garden) -> None:
    right = garden.put(Handover, "reserve", None)

    def reserve(self: Handover, endpoint: Any, delivery: Any) -> Lane | None:
        lane = self._lanes.get(endpoint)
        if lane is None or not lane.is_strict:
            return right(self, endpoint, delivery)  # type: ignore[no-any-return]
        lane.takes_fresh = lane.is_held and not lane.is_suspect
        try:
            return right(self, endpoint, delivery)  # type: ignore[no-any-return]
        finally:
            lane._restate()

    Handover.reserve = reserve


@bug("M26 a lane that is let go is no longer suspect")
def _m26(garden: Garden) -> None:
    garden.replace(sql, "RELEASE", "suspect = u.suspect", "suspect = 0")


@bug("M27 a late answer to a dead owner ends the turn of the next one")
def _m27(garden: Garden) -> None:
    right = garden.put(LaneEvents, "settled", None)

    def settled(self: LaneEvents, lane: Lane, settlement: Settlement, verdict: Verdict) -> None:
        right(self, lane, settlement, verdict)
        if lane.is_lost and verdict is Verdict.LATE:
            self.recovery.settled(settlement.attempt.delivery_id)

    LaneEvents.settled = settled


@bug("M28 buried although its session lives")
def _m28(garden: Garden) -> None:
    """Bury a worker after a sixth of a lease without a heartbeat, even if its lock is held."""

    def look(watch: Watch, workers: Iterable[Seen], **more: Any) -> Any:
        return right(watch, [each._replace(is_gone=True) for each in workers], **more)

    right = garden.put(hookline.pipeline.membership.heartbeat, "look", look)


@bug("M29 buried after a restart of the database")
def _m29(garden: Garden) -> None:
    """The lock is looked at only when the beat has stood still for long enough, over whatever gap."""

    def look(watch: Watch, workers: Iterable[Seen], **more: Any) -> Any:
        still = {id: each._replace(gone_since=each.since) for id, each in watch.stillness.items()}
        unbroken = Watch(more["began"], more["session"], still)
        return right(unbroken, workers, **more)

    right = garden.put(hookline.pipeline.membership.heartbeat, "look", look)


@bug("M31 Retry-After to a probe is taken without a cap")
def _m31(garden: Garden) -> None:
    def obedient(circuit: Circuit, outcome: Outcome, **more: Any) -> Circuit:
        after: Circuit = right(circuit, outcome, **more)
        asked = more.get("asked")
        if outcome is not Outcome.THROTTLED or asked is None:
            return after
        return msgspec.structs.replace(after, probe_at=more["now"] + asked)

    right = garden.put(hookline.rules.circuit, "after_probe", obedient)


@bug("M32 a refused note stops every settle")
def _m32(garden: Garden) -> None:
    async def never(error: Exception, write: Any) -> bool:
        return False

    garden.put(hookline.pipeline.settle, "is_row_at_fault", never)


@bug("M33 an operator who closes a circuit ends the rest that the receiver asked for")
def _m33(garden: Garden) -> None:
    right = garden.put(FlowControl, "reset", None)

    def reset(self: FlowControl, applied: int) -> None:
        right(self, applied)
        self.hold_until = LONG_AGO
        self._settle_down()

    FlowControl.reset = reset


@bug("M30 a lane that is kept is offered by nobody")
def _m30(garden: Garden) -> None:
    garden.put(LaneEvents, "kept", lambda self, lane: self._loader.nudge(lane))


@bug("M34 a replay whose answer is lost wakes nobody")
def _m34(garden: Garden) -> None:
    garden.put(Changes, "making_due", lambda self, lane=None: nullcontext())


@bug("M35 deadlines are looked at once a second")
def _m35(garden: Garden) -> None:
    garden.put(hookline.pipeline.sending.client, "SWEEP_EVERY", 1.0)


@bug("M36 our own shortage of descriptors is charged to the endpoint")
def _m36(garden: Garden) -> None:
    garden.put(hookline.pipeline.sending.dial, "is_shortage", lambda error: False)


@bug("M37 large payloads of all classes share one budget")
def _m37(garden: Garden) -> None:
    def fits(size: int, health: Any, *, held: Sequence[int], of_lane: int, budget: int) -> bool:
        return not held[health] or sum(held) + size <= budget

    garden.put(hookline.pipeline.lanes.payload_memory, "fits", fits)


@bug("M38 a lane may hold all bytes of its class")
def _m38(garden: Garden) -> None:
    right = garden.put(hookline.pipeline.lanes.payload_memory, "fits", None)

    def fits(size: int, health: Any, **more: Any) -> bool:
        return bool(right(size, health, **{**more, "of_lane": 0}))

    garden.put(hookline.pipeline.lanes.payload_memory, "fits", fits)


@bug("M39 notes of a lane are written at the same time")
def _m39(garden: Garden) -> None:
    async def at_once(self: LaneNotes, lanes: Any) -> None:
        """Nobody waits."""

    garden.put(LaneNotes, "wait", at_once)
    garden.put(LaneNotes, "are_free", lambda self, lanes: True)
    garden.put(LaneNotes, "writing", lambda self, lanes: nullcontext())


@bug("M40 a lock that was taken again is not followed by a beat")
def _m40(garden: Garden) -> None:
    """Who was dead to others at two looks, and alive in between, is buried too soon after its last sign of life."""
    right = garden.put(Sessions, "served", None)

    def served(self: Sessions, call: Any, result: Any) -> Any:
        result = right(self, call, result)
        return msgspec.structs.replace(result, was_absent=False) if isinstance(result, Pulse) else result

    Sessions.served = served
    garden.put(Sessions, "answered", answered_by_any)


def answered_by_any(self: Sessions, process: Any, name: str) -> None:
    """Without the beat, any answer lets the worker go on."""
    for worker, holder in self._holders.items():
        if holder is process:
            self._freed_at.pop(worker, None)


@bug("M41 a replay whose change cannot be read wakes nobody")
def _m41(garden: Garden) -> None:
    async def tell(self: Changes, *lanes: Any) -> None:
        await self._catalogue.include_own()
        for lane in lanes:
            self._handover.announce(lane)

    garden.put(Changes, "tell", tell)


@bug("M42 a lane that a reconcile found counts as just taken")
def _m42(garden: Garden) -> None:
    right = garden.put(Ownership, "_adopt", None)

    async def adopt(self: Ownership, taken: Sequence[Taken], worker: WorkerId) -> list[Taken]:
        await right(self, taken, worker)
        return [each for each in taken if each.endpoint_id in self.lanes]

    Ownership._adopt = adopt


@bug("M43 a copy is handed over to a lane that another had meanwhile")
def _m43(garden: Garden) -> None:
    right = garden.put(Ownership, "take_these", None)

    async def take_these(
        self: Ownership, waiting: Mapping[EndpointId, Sequence[Loaded]]
    ) -> dict[EndpointId, Taken]:
        taken = await right(self, waiting)
        return {id: msgspec.structs.replace(each, copies=len(waiting[id])) for id, each in taken.items()}

    Ownership.take_these = take_these


@bug("M44 a probe that is not sent after all is asked for by nobody")
def _m44(garden: Garden) -> None:
    """As found: a clock that was read twice said "now" to the dispatcher, and "not yet" when the probe was to be sent."""

    def twice(self: FlowControl) -> bool:
        if self.breaker.is_closed or self.breaker.is_granted:
            return False
        return self.now() >= self.looks_again_at()

    garden.put(FlowControl, "wants_probe", twice)

    def only_to_probe(self: LaneEvents, lane: Lane) -> None:
        if lane.flow.is_probing:
            self._dispatcher.offer(lane)

    garden.put(LaneEvents, "_task_ended", only_to_probe)


@bug("B3 attempts are counted before the answer to their settle")
def _b3(garden: Garden) -> None:
    """What was late, or was written again after the answer was lost, is in the cells then too."""
    right = garden.put(LatencyMeter, "measure", None)

    def measure(self: LatencyMeter, settlements: Sequence[Settlement]) -> MeasuredBatch:
        batch: MeasuredBatch = right(self, settlements)
        counted(self, batch, [Verdict.APPLIED] * len(settlements), worker=self._worker())
        return batch

    LatencyMeter.measure = measure
    counted = garden.put(LatencyMeter, "settled", lambda self, batch, verdicts, *, worker: None)


@bug("O1 a cursor instead of the head of the outbox")
def _o1(garden: Garden) -> None:
    garden.put(RowMover, "above", lambda self, *, now: self._top)


@bug("O2 rows are dropped before they are accepted")
def _o2(garden: Garden) -> None:
    right = garden.put(RowAcceptor, "accept", None)

    async def accept(self: RowAcceptor, checked: CheckedRows, *, source: str) -> Accepted:
        await self._store.drop_from_outbox([RowPlace(row.seq, row.id) for row in checked.rows])
        accepted: Accepted = await right(self, checked, source=source)
        return accepted

    RowAcceptor.accept = accept


@bug("O4 the next batch begins after the one that is being accepted")
def _o4(garden: Garden) -> None:
    right = garden.put(RowMover, "_look", None)
    above = garden.put(RowMover, "above", None)
    tops: dict[RowMover, int] = {}

    def begins_after(self: RowMover, *, now: float) -> int:
        return tops.get(self) or int(above(self, now=now))

    async def look(self: RowMover, batch: Sequence[WaitingRow]) -> TimedHead:
        tops[self] = max([row.seq for row in batch], default=0)
        looked: TimedHead = await right(self, batch)
        return looked

    RowMover._look = look
    RowMover.above = begins_after


@bug("O8 pruning does not wait for the outbox")
def _o8(garden: Garden) -> None:
    garden.replace(
        retention,
        "PRUNE_LOOK",
        "AND e.created_at < (SELECT coalesce(min(clear_at), 9e999) FROM outbox_sources)",
        "",
    )


# Bugs that ordinary worlds rarely show, each with the scene (scenes.py) that makes its situation likely.
SCENE_OF: dict[str, str] = {
    "M5 a bucket for each worker": "lanes that move",
    "M10 Retry-After replaces the policy's wait": "throttled",
    "M18 the fence is looked at in an earlier snapshot": "late settlements",
    "M19 no tombstones": "slow loads",
    "M22 no sweep after a death": "death before the wake",
    "M26 a lane that is let go is no longer suspect": "poison",
    "M27 a late answer to a dead owner ends the turn of the next one": "taken for dead",
    "M28 buried although its session lives": "late settlements",
    "M29 buried after a restart of the database": "database restarts",
    "M31 Retry-After to a probe is taken without a cap": "asks for ever",
    "M32 a refused note stops every settle": "refused notes",
    "M33 an operator who closes a circuit ends the rest that the receiver asked for": "believed to be back",
    "M30 a lane that is kept is offered by nobody": "shared out",
    "M34 a replay whose answer is lost wakes nobody": "replayed in doubt",
    "M41 a replay whose change cannot be read wakes nobody": "replayed and not read back",
    "M36 our own shortage of descriptors is charged to the endpoint": "short of files",
    "M37 large payloads of all classes share one budget": "large payloads",
    "M38 a lane may hold all bytes of its class": "large payloads",
    "M39 notes of a lane are written at the same time": "slow notes",
    "M42 a lane that a reconcile found counts as just taken": "slow takes",
    "M43 a copy is handed over to a lane that another had meanwhile": "very slow takes",
    "M44 a probe that is not sent after all is asked for by nobody": "clocks that tick",
    "O4 the next batch begins after the one that is being accepted": "slow outbox",
    "O8 pruning does not wait for the outbox": "slow outbox",
}
# The seed that last detected each bug: where the search begins.
SEEN_AT: dict[str, int] = {name: 0 for name in BUGS} | {
    "M1 settle without token": 8,
    "M2 a crash under a delivery is not counted": 10,
    "M3 due by the wall clock": 10,
    "M4 a circuit's probe is sent before it is written down": 3,
    "M6 the lanes of the dead are not freed": 2,
    "M9 jitter is fixed": 4,
    "M11 taking over resets the attempts": 13,
    "M12 a settlement is refused to a worker that is late with its beat, and not buried": 15,
    "M15 the probe of a dead worker is waited for": 88,
    "M16 no recheck after a release": 3,
    "M17 woken before the commit, not after it": 24,
    "M19 no tombstones": 4,
    "M20 no reservation before the accept": 11,
    "M21 handed over on a stale pulse": 2,
    "M22 no sweep after a death": 2,
    "M24 no reconcile": 36,
    "M25 handed over to a strict lane": 6,
    "M26 a lane that is let go is no longer suspect": 12,
    "M27 a late answer to a dead owner ends the turn of the next one": 4,
    "M30 a lane that is kept is offered by nobody": 6,
    "M35 deadlines are looked at once a second": 4,
    "M38 a lane may hold all bytes of its class": 1,
    "M40 a lock that was taken again is not followed by a beat": 33,
    "M42 a lane that a reconcile found counts as just taken": 10,
    "M43 a copy is handed over to a lane that another had meanwhile": 16,
    "B3 attempts are counted before the answer to their settle": 9,
    "O1 a cursor instead of the head of the outbox": 5,
    "O2 rows are dropped before they are accepted": 5,
    "O8 pruning does not wait for the outbox": 1,
}
