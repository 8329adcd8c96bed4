"""Which workers the list shows."""

import msgspec
import pytest

from factories import NOW, a_worker
from hookline.store.contract import Load

pytestmark = pytest.mark.anyio


async def test_workers_are_listed_newest_first_and_page_by_page(store):
    workers = [a_worker(kind=kind) for kind in ("serve", "worker", "api")]
    for worker in workers:
        await store.register(worker)
    newest = sorted(workers, key=lambda each: each.id, reverse=True)
    assert await store.list_workers(after=None, limit=2) == newest[:2]
    assert await store.list_workers(after=newest[1].id, limit=2) == newest[2:]
    assert await store.list_workers(after=newest[2].id, limit=2) == []


async def test_a_listed_worker_is_as_of_its_last_beat(store):
    worker = a_worker()
    await store.register(worker)
    load = Load(lanes=1, in_flight=2, free_slots=3, waiting=4, delivered_per_s=1_234.5)
    assert await store.beat(worker.id, load, now=NOW + 2)
    assert await store.list_workers(after=None, limit=1) == [
        msgspec.structs.replace(worker, beat=1, seen_at=NOW + 2, load=load)
    ]


async def test_a_buried_worker_is_listed_until_it_retires(store):
    worker = a_worker()
    await store.register(worker)
    assert await store.bury(worker.id, beat=0, now=NOW)
    [listed] = await store.list_workers(after=None, limit=9)
    assert listed.buried
    await store.retire(worker.id)
    assert await store.list_workers(after=None, limit=9) == []


async def test_a_list_takes_nothing_from_the_pulse(store, second_store):
    await store.pulse(seen=0)
    await second_store.register(a_worker())
    await store.list_workers(after=None, limit=9)
    assert (await store.pulse(seen=0)).foreign
