"""One operator's change is kept when another changes the same endpoint."""

import asyncio

import msgspec
import pytest

from factories import NOW
from scenes import a_worker_in, an_endpoint_in, published

pytestmark = pytest.mark.anyio


def changed(endpoint, *, at, **fields):
    return msgspec.structs.replace(endpoint, updated_at=at, **fields)


async def test_of_two_who_read_the_same_endpoint_only_the_first_changes_it(store):
    endpoint = await an_endpoint_in(store)
    first = changed(endpoint, at=NOW + 1, url="https://first.example")
    second = changed(endpoint, at=NOW + 2, description="second")
    assert await store.update_endpoint(first, was=endpoint.updated_at, now=NOW + 1)
    assert not await store.update_endpoint(second, was=endpoint.updated_at, now=NOW + 2)
    assert await store.endpoints_by_id([endpoint.id]) == [first]
    assert (await store.catalogue()).n == 2


async def test_a_refused_change_leaves_the_lane_as_it_was(store):
    endpoint = await an_endpoint_in(store)
    await published(store, endpoint.id)
    await store.wake([endpoint.id], now=NOW)
    stale = changed(endpoint, at=NOW + 2, paused=True)
    assert not await store.update_endpoint(stale, was=NOW - 1, now=NOW)
    assert len(await store.take(await a_worker_in(store), limit=1, now=NOW)) == 1


async def test_times_are_told_apart_to_the_microsecond(store):
    endpoint = await an_endpoint_in(store, updated_at=NOW + 0.123456)
    new = changed(endpoint, at=NOW + 1)
    assert not await store.update_endpoint(new, was=round(NOW + 0.123457, 6), now=NOW)
    assert not await store.update_endpoint(new, was=round(NOW + 0.123455, 6), now=NOW)
    [read] = await store.endpoints_by_id([endpoint.id])
    assert await store.update_endpoint(new, was=read.updated_at, now=NOW)


async def test_nothing_is_lost_however_many_change_it_at_once(store, second_store):
    endpoint = await an_endpoint_in(store, metadata={})

    async def add(name, through):
        while True:
            [read] = await through.endpoints_by_id([endpoint.id])
            new = changed(read, at=round(read.updated_at + 1e-6, 6), metadata=read.metadata | {name: True})
            if await through.update_endpoint(new, was=read.updated_at, now=NOW):
                return

    names = [f"n{n}" for n in range(12)]
    await asyncio.gather(*(add(name, (store, second_store)[n % 2]) for n, name in enumerate(names)))
    [read] = await store.endpoints_by_id([endpoint.id])
    assert sorted(read.metadata) == sorted(names)
