"""What a worker learns from a pulse."""

import msgspec
import pytest

from factories import NOW, a_worker
from hookline.model import FOREVER
from hookline.store.contract import Load
from scenes import a_lane_in, a_worker_in, published

pytestmark = pytest.mark.anyio


async def test_a_pulse_shows_all_workers_as_they_registered(store):
    workers = [a_worker(kind=kind, host="a host", pid=77, version="1.2.3") for kind in ("serve", "api")]
    for worker in workers:
        await store.register(worker)
        await store.register(worker)
    assert sorted((await store.pulse(seen=0)).workers, key=lambda w: w.id) == workers


async def test_a_beat_counts_up_and_tells_the_load(store):
    worker = a_worker()
    await store.register(worker)
    load = Load(lanes=1, in_flight=2, free_slots=3, waiting=4, draining=True, delivered_per_s=0.125)
    assert await store.beat(worker.id, Load(), now=NOW + 1)
    assert await store.beat(worker.id, load, now=NOW + 2)
    [seen] = (await store.pulse(seen=0)).workers
    assert seen == msgspec.structs.replace(worker, beat=2, seen_at=NOW + 2, load=load)


async def test_a_beat_of_nobody_is_not_counted(store):
    worker = a_worker()
    assert not await store.beat(worker.id, Load(), now=NOW)


async def test_the_stores_time_never_goes_back(store):
    await a_worker_in(store)
    times = [(await store.pulse(seen=0)).now for _ in range(5)]
    assert times == sorted(times)


async def test_what_another_process_writes_shows_as_foreign(store, second_store):
    await store.pulse(seen=0)
    await a_lane_in(second_store)
    pulse = await store.pulse(seen=0)
    assert pulse.foreign
    assert len(pulse.changes) == 1


async def test_a_pulse_tells_when_the_first_free_lane_wakes(store):
    worker = await a_worker_in(store)
    assert (await store.pulse(seen=0)).wakes_at == FOREVER
    lanes = [await a_lane_in(store) for _ in range(3)]
    assert (await store.pulse(seen=0)).wakes_at == FOREVER, "they sleep"
    for n, lane in enumerate(lanes):
        await published(store, lane, deliver_at=NOW + 10 - n)
        await store.wake([lane], now=NOW)
    assert (await store.pulse(seen=0)).wakes_at == NOW + 8
    await store.take(worker, limit=1, now=NOW + 8)
    assert (await store.pulse(seen=0)).wakes_at == NOW + 9, "one that is owned does not count"
