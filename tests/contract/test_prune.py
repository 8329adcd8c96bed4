"""What pruning deletes, and what it never deletes."""

import asyncio
from random import Random

import pytest

from factories import NOW, a_publication, a_settlement, an_attempt
from hookline.errors import NotFound
from hookline.ids import Ids, delivery_of, event_of
from hookline.model import State
from hookline.store.contract.figures import Conservation
from hookline.store.contract.retention import BEFORE_ALL, Pruned
from hookline.testing.clock import ManualClock
from scenes import a_lane_in, a_worker_in, accepted, died, in_state, owned_by, settled

pytestmark = pytest.mark.anyio

DAY = 86_400.0
LATER = NOW + 31 * DAY
OLD = {"done_before": NOW + DAY, "dead_before": NOW + DAY}


@pytest.fixture
def ids():
    """Ids made at the time of the events."""
    clock = ManualClock()
    clock.advance(NOW - clock.wall())
    return Ids(clock, Random(0))


class Scene:
    """One lane with an owner, and old events."""

    def __init__(self, store, ids, worker, lane):
        self.store, self.ids, self.worker, self.lane = store, ids, worker, lane

    async def event(self, *states, **fields):
        """An event with a delivery in each of the states, all finished at NOW."""
        publication = a_publication(*[self.lane.endpoint_id] * len(states), id=self.ids.event(), **fields)
        await accepted(self.store, publication)
        for place, state in enumerate(states):
            delivery = delivery_of(publication.event.id, place)
            match state:
                case State.DELIVERED:
                    await settled(self.store, self.worker, self.lane, delivery)
                case State.DEAD:
                    await died(self.store, self.worker, self.lane, delivery)
                case State.CANCELLED:
                    await self.store.cancel(delivery, now=NOW)
        return publication.event.id

    async def is_there(self, event):
        return await self.store.event(event) is not None


@pytest.fixture
async def scene(store, ids):
    worker = await a_worker_in(store)
    return Scene(store, ids, worker, await owned_by(store, worker, await a_lane_in(store)))


async def prune_all(store, *, limit=100, **before):
    """From the first step to the last; returns what was pruned in all of them, and the number of steps."""
    events = deliveries = steps = 0
    pruned = Pruned(is_last=False)
    while not pruned.is_last:
        pruned = await store.prune(**(OLD | before), after=pruned.after, limit=limit)
        events, deliveries, steps = events + pruned.events, deliveries + pruned.deliveries, steps + 1
        assert steps < 1_000
    return events, deliveries, steps


@pytest.mark.parametrize("state", [State.DELIVERED, State.DEAD, State.CANCELLED])
async def test_an_event_that_is_over_and_old_goes_with_all_that_belongs_to_it(store, scene, state):
    event = await scene.event(state, state)
    assert await prune_all(store) == (1, 2, 1)
    assert not await scene.is_there(event)
    for place in (0, 1):
        assert await store.delivery(delivery_of(event, place)) is None
        assert await store.attempts(delivery_of(event, place)) == []
        with pytest.raises(NotFound):
            await store.redrive(delivery_of(event, place), now=LATER)


async def test_an_event_with_a_pending_delivery_is_never_touched(store, scene):
    event = await scene.event(State.DELIVERED, State.PENDING, State.DEAD)
    assert await prune_all(store, done_before=NOW + 1_000 * DAY, dead_before=NOW + 1_000 * DAY) == (0, 0, 1)
    assert await scene.is_there(event)
    assert await store.conservation() == Conservation(pending=1, delivered=1, dead=1)


async def test_an_event_that_is_not_old_in_all_its_parts_stays_whole(store, scene):
    event = await scene.event(State.DELIVERED, State.DEAD)
    assert await prune_all(store, dead_before=NOW) == (0, 0, 1)
    assert await prune_all(store, done_before=NOW) == (0, 0, 1)
    assert await store.conservation() == Conservation(delivered=1, dead=1)
    assert await prune_all(store) == (1, 2, 1)
    assert not await scene.is_there(event)


async def test_what_finished_at_the_very_moment_is_not_before_it(store, scene):
    await scene.event(State.DELIVERED)
    assert await prune_all(store, done_before=NOW) == (0, 0, 1)
    assert await prune_all(store, done_before=NOW + 0.01) == (1, 1, 1)


async def test_what_is_kept_for_ever_stays(store, scene):
    await scene.event(State.DELIVERED)
    await scene.event(State.DEAD)
    never = float("-inf")
    assert await prune_all(store, done_before=never, dead_before=never) == (0, 0, 1)
    assert await prune_all(store, done_before=never) == (1, 1, 1)
    assert await store.conservation() == Conservation(delivered=1, pruned=1)
    assert await prune_all(store, dead_before=never) == (1, 1, 1)


async def test_an_event_without_deliveries_goes_by_its_own_age(store, scene):
    event = await scene.event()
    assert await prune_all(store, done_before=NOW) == (0, 0, 1)
    assert await scene.is_there(event)
    assert await prune_all(store) == (1, 0, 1)
    assert not await scene.is_there(event)


async def test_an_idempotency_key_is_good_for_as_long_as_its_event_is_kept(store, scene, ids):
    first = await scene.event(State.DELIVERED, idempotency_key="k", account="acme")
    await prune_all(store)
    again = a_publication(id=ids.event(), idempotency_key="k", account="acme")
    acceptance = await accepted(store, again, now=LATER)
    assert acceptance.priors == {}
    assert not await scene.is_there(first)
    third = a_publication(id=ids.event(), idempotency_key="k", account="acme")
    acceptance = await accepted(store, third, now=LATER)
    assert [prior.event_id for prior in acceptance.priors.values()] == [again.event.id]


async def test_a_step_deletes_no_more_deliveries_than_it_may_and_the_steps_delete_all(store, scene):
    events = [await scene.event(*[State.DELIVERED] * number) for number in (2, 3, 1, 0, 4, 7, 1)]
    pruned = await store.prune(**OLD, after=BEFORE_ALL, limit=3)
    assert (pruned.events, pruned.deliveries, pruned.is_last) == (1, 2, False)
    gone, deliveries, steps = await prune_all(store, limit=3)
    assert (gone, deliveries) == (6, 16)
    assert steps >= 6
    assert [await scene.is_there(event) for event in events] == [False] * 7
    assert await store.conservation() == Conservation(pruned=18)


async def test_an_event_that_loses_its_deliveries_in_steps_is_there_until_the_last(store, scene):
    event = await scene.event(*[State.DEAD] * 7)
    pruned = await store.prune(**OLD, after=BEFORE_ALL, limit=3)
    assert pruned == Pruned(0, 3, BEFORE_ALL, is_last=False)
    assert await scene.is_there(event)
    assert await store.conservation() == Conservation(dead=4, pruned=3)
    assert await prune_all(store, limit=3, done_before=float("-inf")) == (1, 4, 2)
    assert not await scene.is_there(event)


async def test_a_walk_goes_past_what_stays(store, scene):
    kept = [await scene.event(State.PENDING) for _ in range(5)]
    await scene.event(State.DELIVERED)
    assert (await prune_all(store, limit=2))[:2] == (1, 1)
    assert all([await scene.is_there(event) for event in kept])


async def test_a_dry_run_counts_the_same_and_changes_nothing(store, scene):
    for number in (1, 5, 2):
        await scene.event(*[State.DELIVERED] * number)
    await scene.event(State.PENDING)
    before = await store.conservation()
    events = deliveries = 0
    pruned = Pruned(is_last=False)
    while not pruned.is_last:
        pruned = await store.prune(**OLD, after=pruned.after, limit=3, is_dry=True)
        events, deliveries = events + pruned.events, deliveries + pruned.deliveries
    assert (events, deliveries) == (3, 8)
    assert await store.conservation() == before
    assert (await prune_all(store))[:2] == (3, 8)


async def test_what_is_redriven_is_kept_and_ages_anew(store, scene):
    event = await scene.event(State.DEAD)
    delivery = delivery_of(event, 0)
    await store.redrive(delivery, now=LATER)
    assert await prune_all(store) == (0, 0, 1)
    await store.cancel(delivery, now=LATER)
    assert await prune_all(store) == (0, 0, 1)
    assert (await prune_all(store, done_before=LATER + 1))[:2] == (1, 1)


async def test_all_attempts_go_also_those_that_came_late(store, scene):
    event = await scene.event(State.DELIVERED)
    delivery = delivery_of(event, 0)
    late = a_settlement(
        delivery, scene.lane.endpoint_id, epoch=scene.lane.epoch, attempt=an_attempt(delivery, number=2)
    )
    await store.settle(scene.worker, [late], now=NOW)
    assert len(await store.attempts(delivery)) == 2
    await prune_all(store)
    assert await store.attempts(delivery) == []


async def test_accounts_are_counted_apart(store, scene):
    await scene.event(State.DELIVERED, State.DELIVERED, account="acme")
    await scene.event(State.DEAD, account="acme")
    await scene.event(State.DELIVERED, account="other")
    await scene.event(State.PENDING, account="acme")
    await prune_all(store, dead_before=NOW)
    assert await store.conservation(account="acme") == Conservation(pending=1, dead=1, pruned=2)
    assert await store.conservation(account="other") == Conservation(pruned=1)
    assert await store.conservation(account="nobody") == Conservation()
    assert await store.conservation() == Conservation(pending=1, dead=1, pruned=3)
    assert (await store.conservation()).accepted == 5


async def test_events_of_another_lane_and_time_are_left_alone(store, scene):
    _, _, young = await in_state(store, State.DELIVERED)  # its id is of today
    await prune_all(store)
    assert await store.event(event_of(young)) is not None


async def test_two_who_prune_at_once_count_everything_once(store, second_store, scene):
    for _ in range(40):
        await scene.event(State.DELIVERED, State.DEAD)
    results = await asyncio.gather(prune_all(store, limit=5), prune_all(second_store, limit=5))
    assert sum(events for events, _, _ in results) == 40
    assert sum(deliveries for _, deliveries, _ in results) == 80
    assert await store.conservation() == Conservation(pruned=80)


async def test_a_redrive_beside_a_prune_either_saves_its_delivery_or_finds_none(store, second_store, scene):
    events = [await scene.event(State.DEAD) for _ in range(40)]

    async def redrive_all():
        saved = 0
        for event in reversed(events):
            try:
                await second_store.redrive(delivery_of(event, 0), now=LATER)
                saved += 1
            except NotFound:
                pass
        return saved

    (pruned, _, _), saved = await asyncio.gather(prune_all(store, limit=3), redrive_all())
    assert pruned + saved == 40
    assert await store.conservation() == Conservation(pending=saved, pruned=pruned)
    assert [await scene.is_there(event) for event in events].count(True) == saved


async def test_a_turn_is_given_to_one_and_comes_back_after_its_time(store, second_store):
    assert await store.take_prune_turn(every=60.0, now=NOW)
    assert not await second_store.take_prune_turn(every=60.0, now=NOW + 59)
    assert await second_store.take_prune_turn(every=60.0, now=NOW + 60)
    assert not await store.take_prune_turn(every=60.0, now=NOW + 60)
