"""A job handles every dead letter that it is about once, whatever happens in between."""

import asyncio

import msgspec
import pytest

from factories import NOW, a_job, a_publication, a_settlement, an_attempt, ids
from hookline.ids import delivery_of
from hookline.model import Queue, Reason, State
from hookline.store.contract import UNREADABLE_JOB, Change, DeliveryFilter, JobKind, JobState, JobStep
from scenes import accepted, an_owned_lane, dead_letters, died, in_state, settled

pytestmark = pytest.mark.anyio

DONE_AT = NOW + 20


async def finished(store, job, *, limit=2):
    """Run the job's steps until it is done."""
    steps = []
    while job.state is JobState.RUNNING:
        steps.append(await store.advance_job(job.id, limit=limit, now=DONE_AT))
        job = steps[-1].job
    return steps


async def replays(store, deliveries):
    return [(await store.delivery(id)).replays for id in deliveries]


async def test_a_job_is_kept_as_it_was_asked_for(store):
    job = a_job(
        kind=JobKind.DISCARD,
        filter=DeliveryFilter(
            account="one",
            endpoint_id=ids.endpoint(),
            event_id=ids.event(),
            event_type="a",
            since=NOW,
            until=NOW + 1,
            reason=Reason.GONE,
            died_since=NOW + 0.123456,
            died_until=NOW + 2,
        ),
        idempotency_key="key",
        digest=b"\x00\xff",
    )
    assert await store.create_job(job, now=NOW) == job
    assert await store.job(job.id) == job
    assert await store.job(ids.job()) is None


async def test_a_step_does_as_many_as_it_may_and_says_how_far_the_job_is(store):
    _, lane, letters = await dead_letters(store, 5)
    job = await store.create_job(a_job(), now=NOW)
    assert (job.matched, job.done, job.state) == (5, 0, JobState.RUNNING)
    for number in (2, 4):
        step = await store.advance_job(job.id, limit=2, now=DONE_AT)
        job = msgspec.structs.replace(job, done=number)
        assert step == JobStep(job, (lane.endpoint_id,))
        assert await store.job(job.id) == job
        assert await replays(store, letters) == [1] * number + [0] * (5 - number)
    step = await store.advance_job(job.id, limit=2, now=DONE_AT)
    job = msgspec.structs.replace(job, done=5, state=JobState.DONE, finished_at=DONE_AT)
    assert step == JobStep(job, (lane.endpoint_id,))
    assert await store.advance_job(job.id, limit=2, now=DONE_AT) is None
    assert await replays(store, letters) == [1] * 5


async def test_a_replay_does_what_a_redrive_does(store):
    _, _, letters = await dead_letters(store, 2)
    await finished(store, await store.create_job(a_job(ids=letters[:1]), now=NOW))
    await store.redrive(letters[1], now=DONE_AT)
    by_job, by_hand = [await store.delivery(id) for id in letters]
    same = {name: getattr(by_hand, name) for name in ("id", "event_id", "seq")}
    assert msgspec.structs.replace(by_job, **same) == by_hand
    assert (by_job.state, by_job.queue, by_job.due_at) == (State.PENDING, Queue.TIMED, DONE_AT)


async def test_a_discard_discards_and_makes_nothing_due(store):
    _, _, letters = await dead_letters(store, 3)
    job = await store.create_job(a_job(kind=JobKind.DISCARD), now=NOW)
    steps = await finished(store, job)
    assert [step.lanes for step in steps] == [(), ()]
    assert steps[-1].job.done == 3
    for letter in letters:
        found = await store.delivery(letter)
        assert (found.state, found.reason, found.done_at) == (State.CANCELLED, Reason.DISCARDED, DONE_AT)


async def test_only_dead_letters_that_match_are_done(store):
    lanes = [await an_owned_lane(store) for _ in range(2)]
    publications = [
        a_publication(*(lane.endpoint_id for _, lane in lanes), account=account, type=type)
        for account in ("one", "two")
        for type in ("a", "b")
        for _ in range(3)
    ]
    await accepted(store, *publications)
    letters = []
    for publication in publications:
        for ordinal, (worker, lane) in enumerate(lanes):
            delivery = delivery_of(publication.event.id, ordinal)
            if ordinal == 1 and publication.event.type == "b":
                await settled(store, worker, lane, delivery)
            else:
                await died(store, worker, lane, delivery)
                letters.append(await store.delivery(delivery))
    filter = DeliveryFilter(account="two", endpoint_id=lanes[0][1].endpoint_id)
    expected = [one for one in letters if (one.account, one.endpoint_id) == ("two", filter.endpoint_id)]
    job = await store.create_job(a_job(filter=filter), now=NOW)
    steps = await finished(store, job, limit=4)
    assert (job.matched, steps[-1].job.done, len(expected)) == (6, 6, 6)
    again = [await store.delivery(letter.id) for letter in letters]
    assert [one.id for one in again if one.replays] == sorted(one.id for one in expected)


async def test_a_job_that_nothing_matches_is_done_at_its_first_step(store):
    await dead_letters(store, 3)
    job = await store.create_job(a_job(filter=DeliveryFilter(event_type="other")), now=NOW)
    [step] = await finished(store, job, limit=1)
    assert step == JobStep(msgspec.structs.replace(job, state=JobState.DONE, finished_at=DONE_AT))


async def test_each_touched_lane_gets_one_change_a_step(store):
    lanes = [(await dead_letters(store, 3))[1].endpoint_id for _ in range(3)]
    job = await store.create_job(a_job(), now=NOW)
    before = (await store.pulse(seen=0)).changes[-1].n
    await store.advance_job(job.id, limit=100, now=DONE_AT)
    changes = (await store.pulse(seen=before)).changes
    assert changes == tuple(Change(before + n, lane, "deliveries") for n, lane in enumerate(sorted(lanes), 1))
    assert not (await store.accept([], catalogue=before, now=NOW)).stale


async def test_letters_that_die_while_the_job_runs_are_not_done(store):
    worker, lane, letters = await dead_letters(store, 4)
    job = await store.create_job(a_job(), now=NOW)
    await store.advance_job(job.id, limit=1, now=NOW + 11)
    await died(store, worker, lane, letters[0], replays=1, now=NOW + 12)  # the one that was just replayed
    await store.redrive(letters[3], now=NOW + 11)  # one that the job has not reached
    await died(store, worker, lane, letters[3], replays=1, now=NOW + 12)
    publication = a_publication(lane.endpoint_id)
    await accepted(store, publication)
    await died(store, worker, lane, delivery_of(publication.event.id, 0), now=NOW + 12)
    steps = await finished(store, job, limit=1)
    assert steps[-1].job.done == 3
    assert await replays(store, letters) == [1, 1, 1, 1]
    assert (await store.delivery(letters[0])).state is State.DEAD


async def test_another_process_goes_on_where_the_first_one_died(store, second_store):
    _, _, letters = await dead_letters(store, 5)
    job = await store.create_job(a_job(), now=NOW)
    await store.advance_job(job.id, limit=2, now=DONE_AT)
    assert await second_store.running_jobs() == [job.id]
    steps = await finished(second_store, job, limit=2)
    assert [step.job.done for step in steps] == [4, 5]
    assert await replays(store, letters) == [1] * 5
    assert await second_store.running_jobs() == []


@pytest.mark.parametrize("by", ["filter", "ids"])
async def test_two_processes_at_the_same_job_do_each_letter_once(store, second_store, by):
    _, _, letters = await dead_letters(store, 60)
    job = await store.create_job(a_job(ids=tuple(letters) if by == "ids" else ()), now=NOW)

    async def work(through):
        while (await through.job(job.id)).state is JobState.RUNNING:
            await through.advance_job(job.id, limit=3, now=DONE_AT)

    await asyncio.gather(work(store), work(second_store), work(store))
    assert await replays(store, letters) == [1] * 60
    last = await store.job(job.id)
    assert (last.done, last.failed) == (60, 0)


async def test_ids_are_done_instead_of_the_filter_and_those_not_dead_are_counted(store):
    _, _, letters = await dead_letters(store, 5)
    others = [(await in_state(store, state))[2] for state in State if state is not State.DEAD]
    unknown = delivery_of(ids.event(), 0)
    wanted = (letters[3], unknown, letters[1], *others, letters[3])
    job = await store.create_job(a_job(ids=wanted, filter=DeliveryFilter(event_type="other")), now=NOW)
    assert (job.matched, job.ids) == (6, tuple(sorted(set(wanted))))
    steps = await finished(store, job, limit=4)
    last = steps[-1].job
    assert (len(steps), last.done, last.failed, last.state) == (2, 2, 4, JobState.DONE)
    assert await replays(store, letters) == [0, 1, 0, 1, 0]
    assert await replays(store, others) == [0, 0, 0]


async def test_an_id_that_dies_again_during_the_job_is_done_once(store):
    worker, lane, letters = await dead_letters(store, 3)
    job = await store.create_job(a_job(ids=letters), now=NOW)
    await store.advance_job(job.id, limit=1, now=DONE_AT)
    await died(store, worker, lane, letters[0], replays=1, now=NOW + 5)
    steps = await finished(store, job, limit=1)
    assert [step.job.done for step in steps] == [2, 3]
    assert await replays(store, letters) == [1, 1, 1]


async def test_a_repeated_key_gives_the_first_job_back(store):
    await dead_letters(store, 2)
    first = await store.create_job(a_job(idempotency_key="k", digest=b"1"), now=NOW)
    await store.advance_job(first.id, limit=1, now=DONE_AT)
    repeat = a_job(idempotency_key="k", digest=b"2", filter=DeliveryFilter(account="other"))
    assert await store.create_job(repeat, now=NOW) == await store.job(first.id)
    assert await store.job(repeat.id) is None
    other_kind = a_job(kind=JobKind.DISCARD, idempotency_key="k")
    assert (await store.create_job(other_kind, now=NOW)).id == other_kind.id
    without = [await store.create_job(a_job(), now=NOW) for _ in range(2)]
    assert await store.running_jobs() == [first.id, other_kind.id, *(job.id for job in without)]


async def test_a_creation_whose_answer_got_lost_creates_nothing_twice(store):
    await dead_letters(store, 2)
    job = await store.create_job(a_job(), now=NOW)
    await finished(store, job)
    assert await store.create_job(a_job(id=job.id), now=NOW) == await store.job(job.id)
    assert len(await store.list_jobs(JobKind.REPLAY, after=None, limit=9)) == 1


async def test_of_many_who_use_one_key_at_once_one_creates_the_job(store, second_store):
    await dead_letters(store, 2)
    jobs = [a_job(idempotency_key="k") for _ in range(8)]
    found = await asyncio.gather(
        *((store, second_store)[n % 2].create_job(job, now=NOW) for n, job in enumerate(jobs))
    )
    assert len({job.id for job in found}) == 1
    assert len(await store.running_jobs()) == 1


async def test_jobs_are_listed_by_kind_newest_first_page_by_page(store):
    jobs = [
        await store.create_job(a_job(kind=kind), now=NOW) for kind in [*JobKind, JobKind.REPLAY, *JobKind]
    ]
    for kind in JobKind:
        expected = [job for job in jobs[::-1] if job.kind is kind]
        pages, after = [], None
        while page := await store.list_jobs(kind, after=after, limit=2):
            pages += page
            after = page[-1].id
        assert pages == expected


async def test_a_look_that_finds_nothing_does_not_end_the_job(store):
    """A step reads a limited number of letters: a filter that matches few must not make it long."""
    worker, lane, letters = await dead_letters(store, 5_003)
    publication = a_publication(lane.endpoint_id, type="rare")
    await accepted(store, publication)
    rare = delivery_of(publication.event.id, 0)
    await died(store, worker, lane, rare)
    job = await store.create_job(a_job(filter=DeliveryFilter(event_type="rare")), now=NOW)
    steps = await finished(store, job, limit=3)
    assert [step.job.done for step in steps] == [0, 1]
    assert await replays(store, [letters[0], letters[-1], rare]) == [0, 0, 1]


async def test_a_step_beside_settles_of_the_same_lane_waits_for_nobody_forever(store):
    worker, lane, letters = await dead_letters(store, 40)
    publications = [a_publication(lane.endpoint_id) for _ in range(40)]
    await accepted(store, *publications)
    job = await store.create_job(a_job(), now=NOW)

    async def settle():
        for publication in publications:
            delivery = delivery_of(publication.event.id, 0)
            settlement = a_settlement(
                delivery, lane.endpoint_id, epoch=lane.epoch, attempt=an_attempt(delivery)
            )
            await store.settle(worker, [settlement], now=NOW)

    await asyncio.gather(settle(), finished(store, job, limit=3))
    assert await replays(store, letters) == [1] * 40


async def test_a_job_that_is_failed_says_why_and_is_not_carried_out_any_more(store):
    await dead_letters(store, 3)
    job = await store.create_job(a_job(), now=NOW + 10)
    assert await store.fail_job(job.id, reason="it cannot go on", now=DONE_AT)
    failed = msgspec.structs.replace(
        job, state=JobState.FAILED, reason="it cannot go on", finished_at=DONE_AT
    )
    assert await store.job(job.id) == failed
    assert not await store.fail_job(job.id, reason="twice", now=DONE_AT + 1)
    assert await store.advance_job(job.id, limit=2, now=DONE_AT) is None
    assert await store.running_jobs() == []
    assert await store.job(job.id) == failed


@pytest.mark.parametrize("written", ["no JSON", '{"state": "asleep"}', "[]"])
async def test_a_job_whose_filter_cannot_be_read_fails_alone(bare, written):
    store, execute = bare.new_store(), bare.execute
    await store.migrate()
    await store.open()
    _, _, deliveries = await dead_letters(store, 3)
    bad = await store.create_job(a_job(), now=NOW + 10)
    good = await store.create_job(a_job(), now=NOW + 10)
    execute(f"UPDATE jobs SET filter = '{written}' WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1)")
    assert {each.id for each in await store.list_jobs(bad.kind, after=None, limit=9)} == {bad.id, good.id}
    step = await store.advance_job(bad.id, limit=2, now=DONE_AT)
    assert (step.job.state, step.job.reason, step.lanes) == (JobState.FAILED, UNREADABLE_JOB, ())
    assert await store.running_jobs() == [good.id]
    assert await replays(store, deliveries) == [0, 0, 0]
    await finished(store, good)
    assert await replays(store, deliveries) == [1, 1, 1]
    await store.close()
