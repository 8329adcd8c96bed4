"""Old data is deleted while everything else goes on."""

import asyncio
from random import Random

import pytest

from factories import a_publication, a_settlement
from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import StorageFull
from hookline.ids import Ids, delivery_of
from hookline.model import Actor, ActorKind, State, Via
from hookline.pipeline.maintenance.pruning import STEP, walk
from hookline.rules.retention import CutOffs
from hookline.store.contract import AuditFilter, Conservation, Verdict
from hookline.testing.clock import ManualClock
from scenes import a_lane_in, a_worker_in, accepted, owned_by

pytestmark = pytest.mark.anyio

DAY = 86_400.0
OLD = 5_000
BATCH = 500


async def pass_long(world, seconds):
    """A long time in a few steps; nothing in these tests is due in between."""
    for _ in range(20):
        await world.tick(seconds / 20)


async def until_pruned(world, hooks, number):
    """Wait until it is pruned, within two turns."""
    async with asyncio.timeout(60.0):
        while (await hooks.store.conservation()).pruned < number:
            await world.tick(600.0)


async def delivered_long_ago(hooks, number):
    """So many events with two deliveries each, written in batches."""
    store = hooks.store
    clock = ManualClock(hooks.clock.now() - 100 * DAY)
    ids = Ids(clock, Random(0))
    worker = await a_worker_in(store)
    lanes = [await owned_by(store, worker, await a_lane_in(store, events=("of.the.past",))) for _ in range(2)]
    to = [lane.endpoint_id for lane in lanes]
    for _ in range(number // BATCH):
        publications = [
            a_publication(
                *to, id=ids.event(), created_at=clock.now(), idempotency_key=f"k{ids.event().hex()}"
            )
            for _ in range(BATCH)
        ]
        await accepted(store, *publications, now=clock.now())
        settlements = [
            a_settlement(delivery_of(each.event.id, place), lane.endpoint_id, epoch=lane.epoch)
            for each in publications
            for place, lane in enumerate(lanes)
        ]
        assert set(await store.settle(worker, settlements, now=clock.now())) == {Verdict.APPLIED}


async def test_what_was_delivered_goes_after_its_time_and_not_before(world, receiver):
    hooks = await world.start(keep_delivered_days=3)
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    published = await world.pass_until(hooks.publish("a.b", 1))
    await world.until_state(hooks, published.id, State.DELIVERED)
    await pass_long(world, 2 * DAY)
    assert await hooks.store.conservation() == Conservation(delivered=1)
    await pass_long(world, DAY)
    await until_pruned(world, hooks, 1)


async def test_whoever_keeps_for_ever_prunes_nothing(world, receiver):
    hooks = await world.start(keep_delivered_days=0, keep_dead_days=0)
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    published = await world.pass_until(hooks.publish("a.b", 1))
    await world.until_state(hooks, published.id, State.DELIVERED)
    await pass_long(world, 400 * DAY)
    assert await hooks.store.conservation() == Conservation(delivered=1)


async def test_entries_of_the_audit_trail_go_after_their_time_and_not_before(world, receiver):
    hooks = await world.start(keep_delivered_days=0, keep_dead_days=0, keep_audit_days=3)
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await pass_long(world, 2 * DAY)
    [entry] = await entries(hooks)
    assert (entry.actor, entry.via) == (Actor(kind=ActorKind.PROGRAM), Via.LIBRARY)
    await pass_long(world, DAY)
    async with asyncio.timeout(60.0):
        while await entries(hooks):
            await world.tick(600.0)


async def test_whoever_keeps_the_audit_trail_for_ever_has_all_of_it(world, receiver):
    hooks = await world.start(keep_delivered_days=1, keep_dead_days=1, keep_audit_days=0)
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await pass_long(world, 400 * DAY)
    assert len(await entries(hooks)) == 1


async def entries(hooks):
    return await hooks.store.list_audit(AuditFilter(), after=None, limit=10)


async def test_beside_a_walk_everything_is_delivered_once_and_waits_for_one_step_at_most(database, receiver):
    """The next step begins when an event that was published beside the last one has come: more would be never.

    How long a step takes at most is judged by `benchmarks/pruning.py --enforce`.
    """
    async with Hookline(database, settings=Settings(dev=True)) as hooks:
        await delivered_long_ago(hooks, OLD)
        await hooks.create_endpoint(url=receiver.url(), events=["a.b"])
        now = hooks.clock.now()
        steps = []

        async def publish():
            await hooks.publish("a.b", len(steps))
            await receiver.wait_for_requests(len(steps) + 1)

        walking = walk(hooks.store, hooks.clock, CutOffs(now - 30 * DAY, now - 90 * DAY), most=STEP)
        async with asyncio.timeout(180.0):
            while True:
                delivered = asyncio.create_task(publish())
                step = await anext(walking, None)
                await delivered
                if step is None:
                    break
                steps.append(step[0].deliveries)

        assert sorted(map(int, receiver.bodies())) == list(range(len(steps) + 1))
        found = await hooks.store.conservation()
        assert (found.pruned, found.accepted) == (2 * OLD, 2 * OLD + len(steps) + 1)
        assert max(steps) <= STEP
        assert len(steps) >= 2 * OLD / STEP


async def test_where_there_is_room_for_small_steps_only_they_are_made_small(world):
    hooks = await world.start(keep_delivered_days=30)
    await delivered_long_ago(hooks, BATCH)
    now, prune, asked = world.clock.now(), hooks.store.prune, []

    async def prune_a_little(*, limit, **named):
        """As on a disk that is almost full."""
        asked.append(limit)
        if limit > 20:
            raise StorageFull("no room")
        return await prune(limit=limit, **named)

    hooks.store.prune = prune_a_little
    steps = [pruned async for pruned, _ in walk(hooks.store, world.clock, CutOffs(now, now), most=STEP)]
    assert sum(pruned.events for pruned in steps) == BATCH
    assert asked[:4] == [100, 50, 25, 12]
    assert max(asked[3:]) == 12


async def test_where_there_is_no_room_at_all_pruning_says_so(world):
    hooks = await world.start(keep_delivered_days=30)

    async def cannot(**named):
        raise StorageFull("no room")

    hooks.store.prune = cannot
    with pytest.raises(StorageFull):
        [_ async for _ in walk(hooks.store, world.clock, CutOffs(0.0, 0.0), most=STEP)]
