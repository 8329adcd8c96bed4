"""Hours and days follow the minutes, whichever process sees to it."""

from collections import Counter

import pytest

from hookline.model import EndpointId
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.pipeline.measuring.latency_tasks import DAYS_CHUNK, DAYS_EVERY, LatencyTasks
from hookline.rules.latency_buckets import bucket_of
from tests.factories import a_worker
from tests.world import World

pytestmark = pytest.mark.anyio

FAST, SLOW, VERY_SLOW = (EndpointId(bytes([n]) * 16) for n in (1, 2, 3))


async def measured(world: World, store, **seconds: float) -> None:
    """A hundred attempts of each endpoint in this minute."""
    worker = a_worker()
    await store.register(worker)
    minute = world.clock.now() // 60 * 60
    named = {"fast": FAST, "slow": SLOW, "very_slow": VERY_SLOW}
    cells = [cell_of(named[name], minute, Counter({bucket_of(each): 100})) for name, each in seconds.items()]
    source = await store.new_latency_source()
    await store.flush_latencies(
        worker.id, cells, source=source, n=0, math=LATENCY_COUNTS, now=world.clock.now()
    )


async def all_steps(tasks: LatencyTasks) -> None:
    while await tasks.step() < 1:
        pass


async def test_a_day_is_reckoned_from_the_minutes(world: World):
    hooks = await world.start(deliver=False)
    store = hooks.store
    await measured(world, store, fast=0.1, slow=3.0, very_slow=6.0)
    tasks = LatencyTasks(store, world.clock)
    await all_steps(tasks)
    days = {day.endpoint_id: day for day in await store.latency_days([FAST, SLOW, VERY_SLOW])}
    assert {id: (day.attempts, round(day.p95, 1)) for id, day in days.items()} == {
        FAST: (100, 0.1),
        SLOW: (100, 3.0),
        VERY_SLOW: (100, 6.0),
    }


async def test_what_is_new_is_reckoned_after_five_minutes_and_forgotten_after_a_day(world: World):
    hooks = await world.start(deliver=False)
    store = hooks.store
    await measured(world, store, slow=3.0)
    tasks = LatencyTasks(store, world.clock)
    await all_steps(tasks)
    world.clock.advance(DAYS_EVERY)
    await measured(world, store, slow=0.1)
    await all_steps(tasks)
    [day] = await store.latency_days([SLOW])
    assert day.attempts == 200
    world.clock.advance(86_400 + 120)
    await all_steps(tasks)
    assert await store.latency_days([SLOW]) == []


async def test_many_endpoints_are_done_in_steps_and_hours_are_added_up(world: World):
    hooks = await world.start(deliver=False)
    store = hooks.store
    worker = a_worker()
    await store.register(worker)
    minute = world.clock.now() // 3_600 * 3_600
    ids = [EndpointId(b"%016d" % n) for n in range(3 * DAYS_CHUNK + 1)]
    cells = [cell_of(id, minute, Counter({5: 1})) for id in ids]
    await store.flush_latencies(worker.id, cells, source=9, n=0, math=LATENCY_COUNTS, now=minute)
    world.clock.advance(minute + 3_600 + 121 - world.clock.now())
    tasks = LatencyTasks(store, world.clock)
    await all_steps(tasks)
    assert len(await store.latency_days(ids)) == len(ids)
    parts = await store.latency_window(ids, since=minute, until=minute + 3_600)
    assert [part.is_hour for part in parts] == [True] * len(ids)
