"""Bulk replays and discards are carried out, whatever happens in the middle."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from factories import NOW, a_publication, a_settlement, an_attempt, ids
from hookline.app import store_for
from hookline.errors import RowRefused, StorageFull, StoreReadOnly, StoreRefused, StoreUnavailable
from hookline.ids import delivery_of, read
from hookline.model import DeliveryId, EndpointId, JobId, Outcome, Reason, State
from hookline.pipeline.maintenance.bulk_jobs import (
    TRIES,
    Jobs,
)
from hookline.pipeline.maintenance.supervisor import Supervisor
from hookline.store.contract import DeliveryFilter, Job, JobKind, JobState, JobStep, Store, Verdict
from hookline.testing.clock import ManualClock
from scenes import a_lane_in, a_worker_in, accepted, owned_by, wakes_at
from tests.receiver import Answer

pytestmark = pytest.mark.anyio

DEAD = DeliveryFilter(state=State.DEAD)


async def dead_letters(store: Store, number: int) -> tuple[EndpointId, list[DeliveryId]]:
    lane_id = await a_lane_in(store)
    worker = await a_worker_in(store)
    publications = [a_publication(lane_id) for _ in range(number)]
    await accepted(store, *publications)
    lane = await owned_by(store, worker, lane_id)
    deliveries = [delivery_of(each.event.id, 0) for each in publications]
    verdicts = await store.settle(
        worker,
        [
            a_settlement(
                id,
                lane_id,
                epoch=lane.epoch,
                attempt=an_attempt(id, outcome=Outcome.REJECTED, status=404),
                state=State.DEAD,
                reason=Reason.REJECTED,
            )
            for id in deliveries
        ],
        now=NOW,
    )
    assert set(verdicts) == {Verdict.APPLIED}
    return lane_id, deliveries


async def a_job_in(store: Store, kind: JobKind = JobKind.REPLAY) -> JobId:
    job = Job(id=ids.job(), kind=kind, filter=DEAD, created_at=NOW + 10)
    return (await store.create_job(job, now=NOW + 10)).id


async def is_done(store: Store, id: JobId) -> bool:
    job = await store.job(id)
    return job is not None and job.state is JobState.DONE


async def is_resting(clock: ManualClock) -> bool:
    return bool(clock._sleepers)


async def until(condition: Callable[[], Awaitable[bool]], *, clock: ManualClock | None = None) -> None:
    """Wait until the condition holds; time passes only on the given clock."""
    async with asyncio.timeout(60):
        while True:
            if await condition():
                return
            if clock is not None:
                clock.advance(0.1)
            await asyncio.sleep(0.001)


@asynccontextmanager
async def running(jobs: Jobs) -> AsyncIterator[None]:
    task = asyncio.create_task(jobs.run())
    yield
    assert not task.done(), task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def working(jobs: Jobs, clock: ManualClock, condition: Callable[[], Awaitable[bool]]) -> None:
    """Let the jobs run, time passing, until the condition holds."""
    async with running(jobs):
        await until(condition, clock=clock)
        await jobs.close()


async def states_of(store: Store, deliveries: list[DeliveryId]) -> set[tuple[State, int]]:
    found = [await store.delivery(id) for id in deliveries]
    return {(each.state, each.replays) for each in found if each is not None}


async def test_a_job_is_carried_out_step_by_step_and_its_lanes_are_announced(store):
    lane, deliveries = await dead_letters(store, 10)
    job = await a_job_in(store)
    announced: list[EndpointId] = []
    clock = ManualClock(NOW + 20)
    await working(Jobs(store, clock, announced.append, step=4), clock, lambda: is_done(store, job))
    assert await states_of(store, deliveries) == {(State.PENDING, 1)}
    assert set(announced) == {lane}
    assert len(announced) == 3


async def test_a_process_that_stops_announces_the_lanes_of_its_last_step_and_begins_no_other(store):
    lane, _ = await dead_letters(store, 10)
    job = await a_job_in(store)
    clock = ManualClock(NOW + 20)
    committed, answered = asyncio.Event(), asyncio.Event()

    class Late:
        """Answers long after the commit."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def advance_job(self, id: JobId, *, limit: int, now: float) -> JobStep | None:
            step = await store.advance_job(id, limit=limit, now=now)
            committed.set()
            await answered.wait()
            return step

    announced: list[EndpointId] = []
    jobs = Jobs(Late(), clock, announced.append, step=4)  # type: ignore[arg-type]
    async with running(jobs), asyncio.timeout(60):
        await committed.wait()
        closing = asyncio.create_task(jobs.close())
        await asyncio.sleep(0)
        assert not closing.done()
        answered.set()
        await closing
        assert announced == [lane]
        await until(lambda: is_resting(clock))
    found = await store.job(job)
    assert found is not None
    assert (found.state, found.done) == (JobState.RUNNING, 4)


async def test_a_discard_makes_nothing_due(store):
    _, deliveries = await dead_letters(store, 6)
    job = await a_job_in(store, JobKind.DISCARD)
    announced: list[EndpointId] = []
    clock = ManualClock(NOW + 20)
    await working(Jobs(store, clock, announced.append, step=4), clock, lambda: is_done(store, job))
    assert await states_of(store, deliveries) == {(State.CANCELLED, 0)}
    assert announced == []


async def test_a_job_begins_at_once_when_it_is_announced_and_soon_when_it_is_not(store):
    await dead_letters(store, 1)
    clock = ManualClock(NOW + 20)
    carrier = Jobs(store, clock, lambda _: None)

    async with running(carrier):
        await until(lambda: is_resting(clock))  # it has looked
        first = await a_job_in(store)
        carrier.nudge()
        await until(lambda: is_done(store, first))  # time stands still: only the nudge can have started it
        second = await a_job_in(store)
        await until(lambda: is_done(store, second), clock=clock)


async def test_a_job_that_was_left_in_the_middle_is_finished_by_the_next_process(store, second_store):
    _, deliveries = await dead_letters(store, 10)
    job = await a_job_in(store)
    clock = ManualClock(NOW + 20)

    async def is_begun() -> bool:
        found = await store.job(job)
        return found is not None and 0 < found.done < 10

    class Interrupted:
        """Stops for ever after the first step, like a process that is killed."""

        def __init__(self) -> None:
            self.steps = 0

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def advance_job(self, id: JobId, *, limit: int, now: float) -> JobStep | None:
            self.steps += 1
            if self.steps > 1:
                await asyncio.Event().wait()
            return await store.advance_job(id, limit=limit, now=now)

    async with running(Jobs(Interrupted(), clock, lambda _: None, step=4)):  # type: ignore[arg-type]
        await until(is_begun, clock=clock)
    await working(Jobs(second_store, clock, lambda _: None, step=4), clock, lambda: is_done(store, job))
    found = await store.job(job)
    assert found is not None
    assert (found.matched, found.done, found.failed) == (10, 10, 0)
    assert await states_of(store, deliveries) == {(State.PENDING, 1)}


async def test_two_processes_at_one_job_do_everything_once(store, second_store):
    _, deliveries = await dead_letters(store, 30)
    job = await a_job_in(store)
    clock = ManualClock(NOW + 20)
    async with running(Jobs(second_store, clock, lambda _: None, step=4)):
        await working(Jobs(store, clock, lambda _: None, step=4), clock, lambda: is_done(store, job))
    assert await states_of(store, deliveries) == {(State.PENDING, 1)}


async def test_a_step_whose_commit_is_in_doubt_leaves_no_lane_asleep(store):
    lane, deliveries = await dead_letters(store, 8)
    job = await a_job_in(store)
    clock = ManualClock(NOW + 20)
    swept: list[EndpointId | None] = []

    class Doubtful:
        """Loses the answer to the first step, and then to the first sweep."""

        def __init__(self) -> None:
            self.losses = 2

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def advance_job(self, id: JobId, *, limit: int, now: float) -> JobStep | None:
            step = await store.advance_job(id, limit=limit, now=now)
            if self.losses == 2:
                self.losses = 1
                raise StoreUnavailable("the answer got lost")
            return step

        async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
            if self.losses == 1:
                self.losses = 0
                raise StoreUnavailable("not yet")
            swept.append(after)
            return await store.sweep(after=after, now=now)

    announced: list[EndpointId] = []
    await working(Jobs(Doubtful(), clock, announced.append, step=4), clock, lambda: is_done(store, job))  # type: ignore[arg-type]
    assert await states_of(store, deliveries) == {(State.PENDING, 1)}
    assert swept == [None]
    assert set(announced) <= {lane}


async def test_a_replay_that_commits_while_its_process_stops_leaves_no_lane_asleep(world, receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(404)]
    event = await hooks.publish("order.paid", {})
    await world.until_state(hooks, event.id, State.DEAD)
    await world.until(lambda: not hooks.worker.ownership.lanes)
    store, committed, answered = hooks.store, asyncio.Event(), asyncio.Event()
    advance = store.advance_job

    async def late(id: JobId, *, limit: int, now: float) -> JobStep | None:
        step = await advance(id, limit=limit, now=now)
        committed.set()
        await answered.wait()
        return step

    store.advance_job = late
    job = Job(id=ids.job(), kind=JobKind.REPLAY, filter=DEAD, created_at=world.clock.now())
    await world.pass_until(store.create_job(job, now=world.clock.now()))
    await world.until(committed.is_set)
    stopping = asyncio.ensure_future(world.stop(hooks))
    for _ in range(20):
        await world.tick()
    answered.set()
    assert await stopping is True
    look = store_for(world.database)
    await look.open()
    try:
        lane = EndpointId(read("endpoint", endpoint.id))
        assert await wakes_at(look, lane) <= world.clock.now()
    finally:
        await look.close()


@pytest.mark.parametrize("error", [RowRefused("a row that the store refuses"), RuntimeError("a bug")])
async def test_a_job_that_cannot_go_on_has_failed_in_the_end_and_holds_up_nobody(store, error):
    _, deliveries = await dead_letters(store, 10)
    bad, good = await a_job_in(store), await a_job_in(store)
    clock = ManualClock(NOW + 20)
    tried: list[JobId] = []

    class Refusing:
        """Cannot carry out the first job."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def advance_job(self, id: JobId, *, limit: int, now: float) -> JobStep | None:
            tried.append(id)
            if id == bad:
                raise error
            return await store.advance_job(id, limit=limit, now=now)

    async def has_failed() -> bool:
        found = await store.job(bad)
        return found is not None and found.state is JobState.FAILED

    jobs = Jobs(Refusing(), clock, lambda lane: None, step=4)  # type: ignore[arg-type]
    await working(jobs, clock, has_failed)
    assert tried.count(bad) == TRIES
    assert await is_done(store, good)
    assert await states_of(store, deliveries) == {(State.PENDING, 1)}
    found = await store.job(bad)
    assert found is not None
    assert (found.reason, found.done) == (str(error), 0)
    assert await store.running_jobs() == []


class Fresh:
    """A heart that saw the database recently."""

    def is_fresh(self) -> bool:
        return True


@pytest.mark.parametrize(
    "error",
    [
        StoreRefused("no rights"),
        StorageFull("a full disk"),
        StoreReadOnly("a standby"),
        StoreUnavailable("no answer"),
    ],
)
async def test_a_job_waits_for_a_database_that_takes_no_writes_however_long(store, error):
    _, deliveries = await dead_letters(store, 10)
    job = await a_job_in(store)
    clock = ManualClock(NOW + 20)
    tries = 0

    class Refusing:
        """Refuses more often than a job may fail by itself."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def advance_job(self, id: JobId, *, limit: int, now: float) -> JobStep | None:
            nonlocal tries
            tries += 1
            if tries <= 4 * TRIES:
                raise error
            return await store.advance_job(id, limit=limit, now=now)

    jobs = Jobs(Refusing(), clock, lambda lane: None, step=4)  # type: ignore[arg-type]
    loops = Supervisor(Fresh(), clock)  # type: ignore[arg-type]
    loops.start([jobs.run])
    await until(lambda: is_done(store, job), clock=clock)
    await jobs.close()
    for task in loops.tasks:
        task.cancel()
    await asyncio.gather(*loops.tasks, return_exceptions=True)
    assert tries > 4 * TRIES
    assert await states_of(store, deliveries) == {(State.PENDING, 1)}
