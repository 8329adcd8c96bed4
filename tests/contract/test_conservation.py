"""What was accepted adds up after everything that can happen to it.

accepted = pending + delivered + dead + cancelled + pruned, per account, after every step, against the test's own count.
"""

import asyncio
from collections import Counter
from itertools import count
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.errors import NotFound, WrongState
from hookline.ids import Ids, delivery_of
from hookline.model import State
from hookline.store.contract import Conservation
from hookline.testing.clock import ManualClock
from scenes import a_death, a_lane_in, a_worker_in, accepted, owned_by

ACCOUNTS = ("default", "acme")
PLACES = st.integers(0, 60)
STEPS = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(ACCOUNTS), st.integers(0, 4)),
    st.tuples(st.sampled_from(["deliver", "bury", "cancel", "redrive", "discard"]), PLACES, st.none()),
    st.tuples(st.just("delete"), st.integers(0, 1), st.none()),
    st.tuples(st.just("prune"), st.integers(1, 5), st.sampled_from([1.0, 50.0])),
)


class Traffic:
    """A store under traffic, and what was put into it."""

    def __init__(self, store, example):
        self.store = store
        self.clock = ManualClock(NOW + example)
        self.ids = Ids(self.clock, Random(example))
        self.accepted = Counter()
        self.deliveries = []

    async def begin(self):
        self.worker = await a_worker_in(self.store)
        self.lanes = []
        for _ in range(2):
            lane = await a_lane_in(self.store)
            self.lanes.append(await owned_by(self.store, self.worker, lane))

    async def step(self, kind, which, how):
        self.clock.advance(10.0)
        now = self.clock.now()
        match kind:
            case "publish":
                lanes = [self.lanes[place % 2].endpoint_id for place in range(how)]
                publication = a_publication(*lanes, id=self.ids.event(), account=which, created_at=now)
                await accepted(self.store, publication, now=now)
                self.accepted[which] += how
                self.deliveries += [
                    (delivery_of(publication.event.id, place), self.lanes[place % 2]) for place in range(how)
                ]
            case "delete":
                await self.store.delete_endpoint(self.lanes[which].endpoint_id, now=now)
                await self.store.cancel_deleted(limit=3, now=now)
            case "prune":
                before = now - how
                await self.store.prune(done_before=before, dead_before=before - 20.0, limit=which)
            case _ if self.deliveries:
                await self._move(kind, *self.deliveries[which % len(self.deliveries)], now=now)

    async def _move(self, kind, delivery, lane, *, now):
        found = await self.store.delivery(delivery)
        if found is None:
            return
        numbers = {"number": found.attempts + 1, "replays": found.replays}
        try:
            match kind:
                case "deliver":
                    attempt = an_attempt(delivery, **numbers)
                    settlement = a_settlement(delivery, lane.endpoint_id, epoch=lane.epoch, attempt=attempt)
                    await self.store.settle(self.worker, [settlement], now=now)
                case "bury":
                    await self.store.settle(self.worker, [a_death(lane, delivery, **numbers)], now=now)
                case _:
                    await getattr(self.store, kind)(delivery, now=now)
        except (NotFound, WrongState):
            pass

    async def check(self):
        total = Conservation()
        for account in ACCOUNTS:
            found = await self.store.conservation(account=account)
            assert found.accepted == self.accepted[account]
            total = Conservation(
                **{name: getattr(total, name) + getattr(found, name) for name in total.__struct_fields__}
            )
        assert await self.store.conservation() == total
        counts = await self.store.counts()
        assert {state: getattr(total, state.value) for state in State} == counts
        return total


def test_it_adds_up_after_every_step(new_store):
    seen = Counter()
    examples = count()

    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(st.lists(STEPS, min_size=15, max_size=30))
    def run(steps):
        asyncio.run(scenario(steps))

    async def scenario(steps):
        store = new_store()
        await store.open()
        try:
            traffic = Traffic(store, next(examples))
            # One database for all examples: what earlier ones left is counted first.
            for account in ACCOUNTS:
                traffic.accepted[account] = (await store.conservation(account=account)).accepted
            await traffic.begin()
            for step in steps:
                await traffic.step(*step)
                found = await traffic.check()
                seen.update(name for name in found.__struct_fields__ if getattr(found, name))
        finally:
            await store.close()

    run()
    assert all(seen[name] for name in Conservation.__struct_fields__), seen
