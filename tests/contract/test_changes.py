"""The owners of lanes learn what operators did."""

import asyncio

import pytest

from factories import NOW, an_endpoint
from hookline.store.contract import Change
from scenes import a_lane_in, an_endpoint_in, an_owned_lane, died, published

pytestmark = pytest.mark.anyio


async def test_every_operators_verb_writes_one_change(store):
    endpoint = await an_endpoint_in(store)
    await store.update_endpoint(endpoint, was=endpoint.updated_at, now=NOW)
    delivery = await published(store, endpoint.id)
    await store.retry(delivery, now=NOW)
    await store.cancel(delivery, now=NOW)
    await store.redrive(delivery, now=NOW)
    await store.delete_endpoint(endpoint.id, now=NOW)
    kinds = ["endpoint", "endpoint", "deliveries", "deliveries", "deliveries", "endpoint"]
    expected = tuple(Change(n, endpoint.id, kind) for n, kind in enumerate(kinds, 1))
    assert (await store.pulse(seen=0)).changes == expected
    assert (await store.pulse(seen=4)).changes == expected[4:]
    assert (await store.catalogue()).n == 6


async def test_a_discard_writes_a_change(store):
    worker, lane = await an_owned_lane(store)
    delivery = await published(store, lane.endpoint_id)
    await died(store, worker, lane, delivery)
    await store.discard(delivery, now=NOW)
    assert (await store.pulse(seen=1)).changes == (Change(2, lane.endpoint_id, "deliveries"),)


async def test_what_changes_nothing_writes_no_change(store):
    lane = await a_lane_in(store)
    await published(store, lane)
    gone = an_endpoint()
    assert not await store.update_endpoint(gone, was=gone.updated_at, now=NOW)
    assert not await store.delete_endpoint(gone.id, now=NOW)
    assert [change.n for change in (await store.pulse(seen=0)).changes] == [1]


async def test_a_pulse_brings_at_most_a_thousand_changes(store):
    endpoint = await an_endpoint_in(store)
    for _ in range(1_004):
        await store.update_endpoint(endpoint, was=endpoint.updated_at, now=NOW)
    first = (await store.pulse(seen=0)).changes
    assert [change.n for change in first] == list(range(1, 1_001))
    assert [change.n for change in (await store.pulse(seen=1_000)).changes] == list(range(1_001, 1_006))


async def test_numbers_are_seen_in_order_and_without_gaps_however_many_write(store, second_store):
    """A reader that has seen n never finds a smaller number afterwards."""
    seen: list[int] = []
    writing = asyncio.gather(
        *(a_lane_in(writer) for _ in range(40) for writer in (store, second_store)),
    )
    while not writing.done() or len(seen) < 80:
        last = seen[-1] if seen else 0
        seen += [change.n for change in (await store.pulse(seen=last)).changes]
    await writing
    assert seen == list(range(1, 81))
