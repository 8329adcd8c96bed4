"""Ids are found by their beginning, each noun's among its own."""

from random import Random

import pytest

from factories import NOW, a_job, a_key, a_publication, a_worker, an_endpoint
from hookline.ids import Ids, delivery_of, read_prefix, show
from hookline.store.contract import JobKind
from hookline.testing.clock import ManualClock
from scenes import accepted

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def made(clock):
    return Ids(clock, Random(0))


async def found(store, noun, id, *, length, limit=10, **own):
    """The ids of a noun that begin as this one does."""
    prefix = show(noun, id).partition("_")[0] + "_" + show(noun, id).partition("_")[2][:length]
    _, _, low, high = read_prefix(prefix)
    return await store.ids_between(noun, low, high, limit=limit, **own)


async def test_ids_of_the_same_second_share_a_prefix_and_longer_ones_tell_them_apart(store, clock, made):
    endpoints = []
    for _ in range(5):
        endpoints.append(an_endpoint(id=made.endpoint()))
        await store.create_endpoint(endpoints[-1], now=NOW)
        clock.advance(0.002)
    ids = [each.id for each in endpoints]
    assert await found(store, "endpoint", ids[0], length=8) == ids
    assert await found(store, "endpoint", ids[0], length=8, limit=2) == ids[:2]
    assert await found(store, "endpoint", ids[3], length=10) == [ids[3]]
    assert await found(store, "endpoint", ids[3], length=26) == [ids[3]]
    clock.advance(2)
    assert await found(store, "endpoint", made.endpoint(), length=8) == []


async def test_each_noun_is_found_among_its_own(store, made):
    endpoint, worker, key = an_endpoint(id=made.endpoint()), a_worker(id=made.worker()), a_key(id=made.key())
    replay, discard = a_job(id=made.job()), a_job(id=made.job(), kind=JobKind.DISCARD)
    await store.create_endpoint(endpoint, now=NOW)
    await store.register(worker)
    await store.create_key(key)
    for job in (replay, discard):
        await store.create_job(job, now=NOW)
    publication = a_publication(endpoint.id, endpoint.id, id=made.event())
    await accepted(store, publication)
    event = publication.event.id
    for noun, expected in {
        "endpoint": [endpoint.id],
        "worker": [worker.id],
        "key": [key.id],
        "replay": [replay.id],
        "discard": [discard.id],
        "event": [event],
        "delivery": [event, delivery_of(event, 1)],
    }.items():
        assert await found(store, noun, event, length=8) == expected, noun


async def test_an_account_finds_only_its_own(store, made):
    theirs, ours = (an_endpoint(id=made.endpoint(), account=account) for account in ("them", "us"))
    for endpoint in (theirs, ours):
        await store.create_endpoint(endpoint, now=NOW)
    jobs = [a_job(id=made.job(), account=account) for account in ("them", "us", None)]
    for job in jobs:
        await store.create_job(job, now=NOW)
    events = [a_publication(id=made.event(), account=account) for account in ("them", "us", "default")]
    await accepted(store, *events)
    some = ours.id
    assert await found(store, "endpoint", some, length=8, account="us") == [ours.id]
    assert await found(store, "replay", some, length=8, account="us") == [jobs[1].id]
    assert await found(store, "event", some, length=8, account="us") == [events[1].event.id]
    assert await found(store, "event", some, length=8, account="default") == [events[2].event.id]
    assert await found(store, "event", some, length=8) == [each.event.id for each in events]
