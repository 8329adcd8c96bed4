"""Which records that are neither events nor deliveries are pruned, and when."""

import asyncio

import pytest

from factories import NOW, a_job, a_note, an_event_type
from hookline.model import State
from hookline.store.contract import JobKind, JobState
from scenes import a_lane_in, a_worker_in, an_owned_lane, dead_letters, let_go, owned_by, published

pytestmark = pytest.mark.anyio

DAY = 86_400.0
NEVER = float("-inf")
FAR = NOW + 10_000 * DAY  # ids are made by the machine's clock, which is ahead of NOW


async def prune(store, *, done_before=NEVER, told_before=NEVER, limit=100):
    return await store.prune_records(done_before=done_before, told_before=told_before, limit=limit)


async def changes(store):
    return [(change.n, change.kind) for change in (await store.pulse(seen=0)).changes]


async def finished_job(store, *, at, **fields):
    job = await store.create_job(a_job(**fields), now=at)
    step = await store.advance_job(job.id, limit=100, now=at)
    assert step.job.state is JobState.DONE
    return job


async def test_a_finished_job_goes_with_its_key_and_a_running_one_never(store):
    await dead_letters(store, 3)
    old = await finished_job(store, at=NOW + 20, idempotency_key="k")
    running = await store.create_job(a_job(), now=NOW + 20)
    assert await prune(store, done_before=NOW + 20) == 0
    assert await prune(store, done_before=FAR) == 1
    assert await store.job(old.id) is None
    assert (await store.job(running.id)).state is JobState.RUNNING
    again = a_job(idempotency_key="k")
    assert (await store.create_job(again, now=NOW + 30)).id == again.id


async def test_what_is_kept_for_ever_keeps_its_jobs(store):
    job = await finished_job(store, at=NOW + 20)
    assert await prune(store) == 0
    assert [each.id for each in await store.list_jobs(JobKind.REPLAY, after=None, limit=10)] == [job.id]


async def test_old_changes_go_but_for_the_last(store):
    for day in range(3):
        await store.put_event_type(an_event_type(name=f"a.b{day}"), now=NOW + day * DAY)
    before = await changes(store)
    assert len(before) == 3
    assert await prune(store, told_before=NOW) == 0
    assert await prune(store, told_before=NOW + DAY + 1) == 2
    assert await changes(store) == before[2:]
    assert await prune(store, told_before=FAR) == 0
    await store.put_event_type(an_event_type(name="a.c"), now=NOW + 3 * DAY)
    assert [n for n, _ in await changes(store)] == [before[2][0], before[2][0] + 1]


async def test_a_reset_waits_for_an_owner_to_carry_it_out(store):
    worker = await a_worker_in(store)
    lane = await a_lane_in(store)
    await store.reset_circuit(lane, now=NOW)
    await store.put_event_type(an_event_type(), now=NOW)
    assert await prune(store, told_before=FAR) == 1
    assert [kind for _, kind in await changes(store)] == ["reset", "event_type"]
    taken = await owned_by(store, worker, lane)
    assert taken.is_reset
    await store.note(worker, [a_note(taken, applied=2)], now=NOW)
    assert await prune(store, told_before=FAR) == 1
    assert [kind for _, kind in await changes(store)] == ["event_type"]


async def test_the_lane_of_a_deleted_endpoint_goes_with_the_last_that_names_it(store):
    worker, lane = await an_owned_lane(store)
    kept = await a_lane_in(store)
    delivery = await published(store, lane.endpoint_id)
    await store.delete_endpoint(lane.endpoint_id, now=NOW)
    assert await store.cancel_deleted(limit=10, now=NOW) == 1
    await store.put_event_type(an_event_type(), now=NOW)
    await prune(store, told_before=FAR)
    assert len(await store.lanes([lane.endpoint_id])) == 1  # it has an owner and a delivery
    await let_go(store, worker, lane)
    assert await prune(store, told_before=FAR) == 0  # a delivery
    assert (await store.delivery(delivery)).state is State.CANCELLED
    await store.prune(done_before=FAR, dead_before=FAR, limit=10)
    assert await prune(store) == 1
    assert await store.lanes([lane.endpoint_id]) == []
    assert len(await store.lanes([kept])) == 1


async def test_a_lane_whose_deletion_others_may_still_have_to_hear_of_stays(store):
    lane = await a_lane_in(store)
    await store.delete_endpoint(lane, now=NOW)
    assert await prune(store) == 0
    assert len(await store.lanes([lane])) == 1


async def test_no_more_than_so_many_of_a_kind_go_at_once(store):
    for number in range(6):
        await store.put_event_type(an_event_type(name=f"a.b{number}"), now=NOW)
    assert [await prune(store, told_before=FAR, limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_two_who_do_it_at_once_delete_everything_once(store, second_store):
    for number in range(41):
        await store.put_event_type(an_event_type(name=f"a.b{number}"), now=NOW)

    async def all_of(each):
        total = 0
        while gone := await prune(each, told_before=FAR, limit=5):
            total += gone
        return total

    assert sum(await asyncio.gather(all_of(store), all_of(second_store))) == 40
    assert len(await changes(store)) == 1
