"""Every attempt that counts is counted once: in the log of its worker, or in a minute, never in both."""

import asyncio
from collections import Counter

import msgspec
import pytest

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.ids import delivery_of
from hookline.pipeline.measuring.latency_cells import LATENCY_COUNTS, cell_of
from hookline.pipeline.measuring.latency_meter import MeasuredBatch
from hookline.rules.latency_buckets import bucket_of, decode
from hookline.store.contract import EVERY_ENDPOINT, Verdict
from scenes import a_lane_in, a_worker_in, accepted, an_owned_lane, owned_by

pytestmark = pytest.mark.anyio

MINUTE = NOW // 60 * 60


async def settlements_of(store, lane, number, *, first=0):
    """Settlements of so many deliveries, each with a response time of its own: 1 s, 2 s, …"""
    publications = [a_publication(lane.endpoint_id) for _ in range(number)]
    await accepted(store, *publications)
    deliveries = [delivery_of(publication.event.id, 0) for publication in publications]
    return [
        a_settlement(
            delivery,
            lane.endpoint_id,
            epoch=lane.epoch,
            attempt=an_attempt(delivery, duration=float(first + n + 1)),
        )
        for n, delivery in enumerate(deliveries)
    ]


async def settle(store, worker, batch, *, n=1, minute=MINUTE):
    log = MeasuredBatch(batch, n=n, minute=minute).log
    return await store.settle(worker, batch, log=log, now=NOW)


async def die(store, worker):
    """Bury a worker, free its lanes and fold its log, as its survivors do."""
    assert await store.bury(worker, beat=0, now=NOW)
    await store.free(worker, now=NOW)
    while await store.fold_latencies(worker, math=LATENCY_COUNTS, now=NOW):
        pass
    await store.retire(worker)


async def flush(store, worker, cells, *, source, n, now=NOW):
    return await store.flush_latencies(worker, cells, source=source, n=n, math=LATENCY_COUNTS, now=now)


async def counted(store, endpoint):
    """The response times that are in minutes, as buckets."""
    found = Counter()
    parts = await store.latency_window([endpoint], since=MINUTE - 600, until=MINUTE + 600)
    for part in parts:
        found.update(decode(part.cell.response))
        assert part.cell.attempts == sum(decode(part.cell.response).values())
    return found


def buckets(*seconds):
    return Counter(map(bucket_of, seconds))


def a_cell(endpoint, *seconds, at=MINUTE):
    return cell_of(endpoint, at, buckets(*seconds))


async def test_what_a_dead_worker_settled_is_counted_by_whoever_buries_it(store):
    worker, lane = await an_owned_lane(store)
    batch = await settlements_of(store, lane, 3)
    assert await settle(store, worker, batch) == [Verdict.APPLIED] * 3
    assert await counted(store, lane.endpoint_id) == buckets()
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2, 3)
    assert await counted(store, EVERY_ENDPOINT) == buckets(1, 2, 3)


async def test_a_settle_without_a_log_counts_nothing(store):
    worker, lane = await an_owned_lane(store)
    await store.settle(worker, await settlements_of(store, lane, 1), now=NOW)
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets()


async def test_a_batch_that_is_sent_again_counts_once(store):
    worker, lane = await an_owned_lane(store)
    batch = await settlements_of(store, lane, 3)
    await settle(store, worker, batch)
    assert await settle(store, worker, batch) == [Verdict.REPEATED] * 3
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2, 3)


async def test_a_batch_that_is_sent_again_in_parts_counts_once(store):
    """A batch whose answer was lost may be refused the next time, and is then written in parts."""
    worker, lane = await an_owned_lane(store)
    batch = await settlements_of(store, lane, 4)
    await settle(store, worker, batch[:3], n=1)
    await settle(store, worker, batch[:2], n=2)
    assert await settle(store, worker, batch[2:], n=3) == [Verdict.REPEATED, Verdict.APPLIED]
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2, 3, 4)


async def test_late_attempts_do_not_count_wherever_they_are_in_the_batch(store):
    """The store may write a batch in an order of its own."""
    worker, lane = await an_owned_lane(store)
    batch = await settlements_of(store, lane, 7)
    late = {1, 2, 6}
    mixed = [msgspec.structs.replace(each, epoch=9) if n in late else each for n, each in enumerate(batch)]
    mixed = [mixed[n] for n in (3, 6, 0, 2, 5, 1, 4)]
    verdicts = await settle(store, worker, mixed)
    assert [verdict is Verdict.LATE for verdict in verdicts] == [False, True, False, True, False, True, False]
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 4, 5, 6)


async def test_a_buried_worker_logs_nothing(store):
    worker, lane = await an_owned_lane(store)
    batch = await settlements_of(store, lane, 2)
    await store.bury(worker, beat=0, now=NOW)
    assert await settle(store, worker, batch) == [Verdict.LATE] * 2
    assert not await store.fold_latencies(worker, math=LATENCY_COUNTS, now=NOW)


async def test_a_living_workers_log_is_not_folded(store):
    worker, lane = await an_owned_lane(store)
    await settle(store, worker, await settlements_of(store, lane, 2))
    assert not await store.fold_latencies(worker, math=LATENCY_COUNTS, now=NOW)
    assert await counted(store, lane.endpoint_id) == buckets()


async def test_what_was_flushed_is_not_folded(store):
    worker, lane = await an_owned_lane(store)
    await settle(store, worker, await settlements_of(store, lane, 2), n=1)
    source = await store.new_latency_source()
    assert await flush(store, worker, [a_cell(lane.endpoint_id, 1, 2)], source=source, n=1)
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2)


async def test_what_was_settled_after_a_flush_is_added_to_its_minute(store):
    worker, lane = await an_owned_lane(store)
    await settle(store, worker, await settlements_of(store, lane, 2), n=1)
    source = await store.new_latency_source()
    await flush(store, worker, [a_cell(lane.endpoint_id, 1, 2)], source=source, n=1)
    await settle(store, worker, await settlements_of(store, lane, 1, first=2), n=2)
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2, 3)


async def test_a_flush_replaces_what_the_one_before_wrote(store):
    worker, lane = await an_owned_lane(store)
    source = await store.new_latency_source()
    for seconds in ((1,), (1, 2), (1, 2), (1, 2, 3)):
        assert await flush(store, worker, [a_cell(lane.endpoint_id, *seconds)], source=source, n=1)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2, 3)


async def test_a_flush_that_ends_after_a_later_one_undoes_nothing(store):
    worker, lane = await an_owned_lane(store)
    source = await store.new_latency_source()
    await flush(store, worker, [a_cell(lane.endpoint_id, 1, 2, 3)], source=source, n=2)
    await flush(store, worker, [a_cell(lane.endpoint_id, 1, 2)], source=source, n=1)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2, 3)


async def test_a_flush_deletes_the_log_only_up_to_its_batch(store):
    worker, lane = await an_owned_lane(store)
    await settle(store, worker, await settlements_of(store, lane, 1), n=1)
    await settle(store, worker, await settlements_of(store, lane, 1, first=1), n=2)
    source = await store.new_latency_source()
    await flush(store, worker, [a_cell(lane.endpoint_id, 1)], source=source, n=1)
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2)


async def test_a_buried_worker_flushes_nothing(store):
    worker, lane = await an_owned_lane(store)
    await settle(store, worker, await settlements_of(store, lane, 2), n=1)
    source = await store.new_latency_source()
    await store.bury(worker, beat=0, now=NOW)
    assert not await flush(store, worker, [a_cell(lane.endpoint_id, 1, 2)], source=source, n=1)
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(1, 2)


async def test_workers_count_the_same_minute_beside_each_other(store):
    sources = [await store.new_latency_source() for _ in range(3)]
    assert len(set(sources)) == 3
    lane = await a_lane_in(store)
    for seconds, source in enumerate(sources, start=1):
        worker = await a_worker_in(store)
        await flush(store, worker, [a_cell(lane, seconds)], source=source, n=0)
    assert await counted(store, lane) == buckets(1, 2, 3)


async def test_many_batches_are_folded_in_steps(store):
    worker, lane = await an_owned_lane(store)
    batch = await settlements_of(store, lane, 25)
    for n, settlement in enumerate(batch):
        await settle(store, worker, [settlement], n=n + 1, minute=MINUTE + 60 * (n % 2))
    await die(store, worker)
    assert await counted(store, lane.endpoint_id) == buckets(*range(1, 26))
    assert not (await store.pulse(seen=0)).workers


async def test_a_worker_whose_log_is_not_folded_is_not_forgotten(store):
    worker, lane = await an_owned_lane(store)
    await settle(store, worker, await settlements_of(store, lane, 1))
    await store.bury(worker, beat=0, now=NOW)
    await store.free(worker, now=NOW)
    await store.retire(worker)
    assert [each.id for each in (await store.pulse(seen=0)).workers] == [worker]


async def test_two_who_bury_a_worker_while_it_settles_count_everything_once(store):
    """Burial waits for the settles under way; whoever folds second finds nothing more."""
    for _ in range(5):
        worker, lane = await an_owned_lane(store)
        batch = await settlements_of(store, lane, 12)
        settles = [settle(store, worker, [each], n=n) for n, each in enumerate(batch, start=1)]
        found = await asyncio.gather(
            *settles[:6], die(store, worker), die_quietly(store, worker), *settles[6:]
        )
        applied = [n + 1 for n, verdict in enumerate(found[:6] + found[8:]) if verdict == [Verdict.APPLIED]]
        assert await counted(store, lane.endpoint_id) == buckets(*applied)


async def die_quietly(store, worker):
    if await store.bury(worker, beat=0, now=NOW):
        while await store.fold_latencies(worker, math=LATENCY_COUNTS, now=NOW):
            pass


async def test_attempts_of_two_endpoints_in_one_batch_are_told_apart(store):
    worker, one = await an_owned_lane(store)
    two = await owned_by(store, worker, await a_lane_in(store))
    batch = [*await settlements_of(store, one, 2), *await settlements_of(store, two, 2, first=2)]
    await settle(store, worker, [batch[0], batch[2], batch[1], batch[3]])
    await die(store, worker)
    assert await counted(store, one.endpoint_id) == buckets(1, 2)
    assert await counted(store, two.endpoint_id) == buckets(3, 4)
    assert await counted(store, EVERY_ENDPOINT) == buckets(1, 2, 3, 4)
