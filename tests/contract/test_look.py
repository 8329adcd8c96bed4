"""The stored counts are those of a plain count, after everything that can happen to deliveries."""

import asyncio
from collections import Counter
from random import Random

import pytest

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.errors import NotFound, WrongState
from hookline.ids import Ids, delivery_of
from hookline.model import Outcome, State
from hookline.store.contract.measuring.health import (
    FAILED_WITHIN_S,
    LOOK_EVERY,
    SAMPLES_KEPT_S,
    EndpointCounts,
    HealthSample,
)
from hookline.testing.clock import ManualClock
from scenes import a_death, a_lane_in, a_worker_in, accepted, owned_by, published

pytestmark = pytest.mark.anyio

KINDS = ("publish", "publish", "fail", "fail", "deliver", "die", "redrive", "cancel", "discard", "retry")
RARE = ("prune", "prune", "delete")
SUMS = ("pending", "awaiting_retry", "dead", "failed_last_hour")
# More than the longest rest after a look on a slow machine.
A_WHILE = 150.0


class History:
    """A store to which things happen, and a plain count of what it should hold."""

    def __init__(self, store, seed):
        self.store = store
        self.chance = Random(seed)
        self.clock = ManualClock(NOW)
        self.ids = Ids(self.clock, self.chance)
        self.deliveries = []
        self.paused = set()
        self.seen = Counter()

    async def begin(self):
        self.worker = await a_worker_in(self.store)
        self.lanes = {}
        for _ in range(4):
            lane = await a_lane_in(self.store, account=self.chance.choice(["default", "acme"]))
            self.lanes[lane] = await owned_by(self.store, self.worker, lane)

    async def step(self):
        self.clock.advance(self.chance.choice([1.0, 20.0, 300.0]))
        now, chance = self.clock.now(), self.chance
        kind = chance.choice(RARE) if chance.random() < 0.06 else chance.choice(KINDS)
        match kind:
            case "publish":
                await self.publish(now)
            case "prune":
                await self.store.prune(done_before=now - 900, dead_before=now - 1_800, limit=50)
            case "delete":
                await self.store.delete_endpoint(lane := chance.choice(sorted(self.lanes)), now=now)
                await self.store.cancel_deleted(limit=1_000, now=now)
                self.paused.add(lane)
            case _ if self.deliveries:
                await self.move(kind, chance.choice(self.deliveries[-40:]), now)

    async def publish(self, now):
        lanes = self.chance.sample(sorted(self.lanes), self.chance.randint(1, 3))
        later = now + self.chance.choice([30.0, 2_000.0])
        publication = a_publication(
            *lanes,
            id=self.ids.event(),
            created_at=now,
            deliver_at=self.chance.choice([None, None, None, later]),
        )
        await accepted(self.store, publication, now=now)
        self.deliveries += [delivery_of(publication.event.id, place) for place in range(len(lanes))]

    async def move(self, kind, delivery, now):
        found = await self.store.delivery(delivery)
        if found is None:
            return
        lane = self.lanes[found.endpoint_id]
        numbers = {"number": found.attempts + 1, "replays": found.replays}
        try:
            match kind:
                case "fail":
                    attempt = an_attempt(delivery, outcome=Outcome.TRANSIENT, status=500, **numbers)
                    again = {"state": State.PENDING, "due_at": now + self.chance.choice([5.0, 900.0])}
                    await self.settle(self.settlement(lane, attempt, **again), now)
                case "deliver":
                    attempt = an_attempt(delivery, **numbers)
                    await self.settle(self.settlement(lane, attempt), now)
                case "die":
                    await self.settle(a_death(lane, delivery, **numbers), now)
                case _:
                    await getattr(self.store, kind)(delivery, now=now)
        except (NotFound, WrongState):
            pass

    def settlement(self, lane, attempt, **verdict):
        return a_settlement(
            attempt.delivery_id, lane.endpoint_id, epoch=lane.epoch, attempt=attempt, **verdict
        )

    async def settle(self, settlement, now):
        await self.store.settle(self.worker, [settlement], now=now)

    async def look(self):
        self.clock.advance(A_WHILE)
        return await self.store.look(now=self.clock.now())

    async def expected(self):
        """What a plain count finds: every delivery is read and judged by itself."""
        now = self.clock.now()
        counts = {}
        for id in self.deliveries:
            found = await self.store.delivery(id)
            if found is None or found.state not in (State.PENDING, State.DEAD):
                continue
            of = counts.setdefault(found.endpoint_id, dict.fromkeys(SUMS, 0) | {"created": [], "due": []})
            has_failed = found.state is State.DEAD or found.attempts > 0
            of["failed_last_hour"] += has_failed and found.created_at >= now - FAILED_WITHIN_S
            if found.state is State.DEAD:
                of["dead"] += 1
                continue
            of["awaiting_retry" if found.attempts else "pending"] += 1
            of["created"].append(found.created_at)
            if found.due_at <= now and found.endpoint_id not in self.paused:
                of["due"].append(found.due_at)
        for of in counts.values():
            self.seen.update(name for name in SUMS if of[name])
            self.seen["due"] += bool(of["due"])
        return {
            id: EndpointCounts(
                endpoint_id=id,
                **{name: of[name] for name in SUMS},
                oldest_pending=min(of["created"], default=None),
                oldest_due=min(of["due"], default=None),
            )
            for id, of in counts.items()
        }


@pytest.mark.parametrize("seed", range(4))
async def test_a_look_finds_what_a_plain_count_finds(store, seed):
    history = History(store, seed)
    await history.begin()
    for _ in range(25):
        for _ in range(4):
            await history.step()
        sample = await history.look()
        expected = await history.expected()
        found = await store.all_counts(after=None, limit=100)
        assert found == sorted(expected.values(), key=lambda each: each.endpoint_id, reverse=True)
        assert sample == HealthSample(at=history.clock.now(), took=sample.took, **sums(expected.values()))
    assert all(history.seen[name] for name in (*SUMS, "due")), history.seen


def sums(counts):
    found = list(counts)
    oldest = {
        name: min((at for each in found if (at := getattr(each, name)) is not None), default=None)
        for name in ("oldest_pending", "oldest_due")
    }
    return {name: sum(getattr(each, name) for each in found) for name in SUMS} | oldest


async def test_the_counts_of_some_endpoints_and_of_an_account_are_read(store):
    mine, also_mine, other = [await a_lane_in(store, account=name) for name in ("acme", "acme", "default")]
    for lane, number in ((mine, 1), (also_mine, 2), (other, 4)):
        for _ in range(number):
            await published(store, lane)
    await store.look(now=NOW + 10)
    found = await store.endpoint_counts([also_mine, other])
    assert {each.endpoint_id: each.pending for each in found} == {also_mine: 2, other: 4}
    assert (await store.account_counts("acme")).pending == 3
    assert (await store.account_counts("nobody")).pending == 0
    assert await store.endpoint_counts([]) == []
    [first] = await store.all_counts(after=None, limit=1)
    [second] = await store.all_counts(after=first.endpoint_id, limit=1)
    assert first.endpoint_id > second.endpoint_id


async def test_what_its_owner_says_a_limit_holds_back_is_not_overdue(store):
    slow, other = await a_lane_in(store), await a_lane_in(store)
    await published(store, slow, now=NOW)
    await published(store, other, now=NOW + 5)
    sample = await store.look(now=NOW + 10, held=[slow])
    assert sample.oldest_due == NOW + 5
    sample = await store.look(now=NOW + A_WHILE)
    assert sample.oldest_due == NOW


async def test_of_many_looks_at_once_one_counts(store, second_store):
    looks = [each.look(now=NOW) for each in (store, second_store) * 4]
    assert sum(sample is not None for sample in await asyncio.gather(*looks)) == 1
    assert await second_store.look(now=NOW + LOOK_EVERY - 0.1) is None
    assert len(await store.health_samples(since=0)) == 1


async def test_one_sample_a_minute_is_kept_for_a_day_and_the_newest(store):
    # Times so far apart that no look has to be left out because the one before took long.
    begin = NOW - NOW % 60
    at = [begin + minute * 600 + second for minute in range(5) for second in (0, 20, 50)]
    kept = []
    for moment in at:
        if await store.look(now=moment) is None:
            continue
        newest = moment
        if not kept or int(kept[-1] // 60) != int(moment // 60):
            kept.append(moment)
    samples = [each.at for each in await store.health_samples(since=0)]
    assert samples == sorted({*kept, newest})
    assert len(kept) == 5
    await store.look(now=begin + SAMPLES_KEPT_S + 700)
    samples = [each.at for each in await store.health_samples(since=0)]
    assert samples[0] == begin + 1_200
