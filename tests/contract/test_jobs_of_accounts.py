"""A job that an account asked for stays within that account."""

import msgspec
import pytest

from factories import NOW, a_job
from hookline.store.contract import DeliveryFilter, JobKind, JobState
from scenes import dead_letters

pytestmark = pytest.mark.anyio

DONE_AT = NOW + 20


async def of_two_accounts(store):
    """Dead letters of two accounts, by account."""
    return {account: (await dead_letters(store, 3, account=account))[2] for account in ("one", "two")}


async def carried_out(store, job):
    job = await store.create_job(job, now=NOW)
    while job.state is JobState.RUNNING:
        job = (await store.advance_job(job.id, limit=2, now=DONE_AT)).job
    return job


async def replayed(store, deliveries):
    return [bool((await store.delivery(id)).replays) for id in deliveries]


@pytest.mark.parametrize("kind", list(JobKind))
async def test_ids_of_another_account_are_counted_like_unknown_ones(store, kind):
    letters = await of_two_accounts(store)
    wanted = (*letters["one"], *letters["two"])
    job = await carried_out(store, a_job(kind=kind, ids=wanted, account="one"))
    assert (job.matched, job.done, job.failed) == (6, 3, 3)
    states = [(await store.delivery(id)).state for id in letters["two"]]
    assert states == ["dead"] * 3


async def test_without_an_account_ids_of_all_are_done(store):
    letters = await of_two_accounts(store)
    job = await carried_out(store, a_job(ids=(*letters["one"], *letters["two"])))
    assert (job.done, job.failed) == (6, 0)


async def test_a_filter_goes_by_the_account_it_names(store):
    letters = await of_two_accounts(store)
    job = await carried_out(store, a_job(filter=DeliveryFilter(account="one"), account="one"))
    assert (job.done, await replayed(store, letters["two"])) == (3, [False] * 3)


async def test_each_account_has_idempotency_keys_of_its_own(store):
    jobs = [a_job(idempotency_key="k", account=account) for account in (None, "one", "two")]
    assert [await store.create_job(job, now=NOW) for job in jobs] == jobs
    for job in jobs:
        again = a_job(idempotency_key="k", account=job.account)
        assert await store.create_job(again, now=NOW) == job


async def test_an_account_is_shown_its_own_jobs(store):
    jobs = [
        await store.create_job(a_job(account=account), now=NOW) for account in (None, "one", "two", "one")
    ]
    listed = {
        account: await store.list_jobs(JobKind.REPLAY, account=account, after=None, limit=9)
        for account in (None, "one", "two", "three")
    }
    assert listed == {None: jobs[::-1], "one": [jobs[3], jobs[1]], "two": [jobs[2]], "three": []}
    after = await store.list_jobs(JobKind.REPLAY, account="one", after=jobs[3].id, limit=1)
    assert after == [jobs[1]]
    assert await store.list_jobs(JobKind.DISCARD, account="one", after=None, limit=9) == []
    assert await store.job(jobs[1].id) == msgspec.structs.replace(jobs[1], account="one")
