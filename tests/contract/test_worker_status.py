"""What a worker knows of its lanes is kept with its heartbeat, for everybody to read."""

import pytest

from factories import NOW
from hookline.store.contract import Load, WorkerStatusRow
from scenes import a_worker_in

pytestmark = pytest.mark.anyio


async def test_a_status_stays_until_another_is_given(store, second_store):
    worker = await a_worker_in(store)
    assert await store.beat(worker, Load(), now=NOW + 1, status=b"first")
    assert await second_store.worker_status() == [WorkerStatusRow(worker, NOW + 1, b"first")]
    assert await store.beat(worker, Load(), now=NOW + 2)
    assert await second_store.worker_status() == [WorkerStatusRow(worker, NOW + 2, b"first")]
    assert await store.beat(worker, Load(), now=NOW + 3, status=b"second")
    assert await second_store.worker_status() == [WorkerStatusRow(worker, NOW + 3, b"second")]
    assert await store.beat(worker, Load(), now=NOW + 4, status=b"")
    assert await second_store.worker_status() == [WorkerStatusRow(worker, NOW + 4, b"")]


async def test_a_worker_that_said_nothing_is_listed_all_the_same(store):
    worker = await a_worker_in(store)
    assert await store.beat(worker, Load(), now=NOW + 1)
    assert await store.worker_status() == [WorkerStatusRow(worker, NOW + 1, b"")]


async def test_the_buried_and_the_gone_say_nothing_more(store):
    dead, gone = await a_worker_in(store), await a_worker_in(store)
    for worker in (dead, gone):
        assert await store.beat(worker, Load(), now=NOW, status=b"something")
    await store.bury(dead, beat=1, now=NOW)
    assert not await store.beat(dead, Load(), now=NOW, status=b"from the grave")
    await store.retire(gone)
    assert not await store.beat(gone, Load(), now=NOW, status=b"from elsewhere")
    assert await store.worker_status() == []
    await store.retire(dead)
    assert await store.worker_status() == []
