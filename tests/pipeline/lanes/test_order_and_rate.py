"""Strict order, rate limits and pauses hold."""

import asyncio

import pytest

from hookline.errors import StoreUnavailable
from hookline.ids import delivery_of, event_of, show
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

QUICK = {"schedule": [0, 1, 1, 1], "jitter": "none"}


async def publish(hooks, number: int, first: int = 0):
    return await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(first, first + number)])


async def settled(hooks) -> bool:
    return (await hooks.store.counts()).get(State.PENDING, 0) == 0


async def test_a_strict_lane_sends_the_next_only_after_the_one_before_is_done(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], ordering="strict", retry=QUICK, circuit=None, max_in_flight=5
    )
    receiver.answers["/"] = [Answer(200), Answer(500), Answer(500), Answer(200), Answer(404), Answer(200)]
    await publish(hooks, 6)
    await world.until(lambda: settled(hooks))
    assert receiver.bodies() == [b"0", b"1", b"1", b"1", b"2", b"3", b"4", b"5"]
    assert receiver.most_open_requests == 1


async def test_order_holds_over_a_restart_with_a_waiting_head(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], ordering="strict", retry={"schedule": [0, 30], "jitter": "none"}
    )
    receiver.answers["/"] = [Answer(500), Answer(200)]
    await publish(hooks, 5)
    await world.until(lambda: receiver.requests)
    for _ in range(20):
        await world.tick()
    await world.crash(hooks)
    hooks = await world.start()
    await publish(hooks, 3, first=5)
    await world.until(lambda: settled(hooks))
    assert receiver.bodies() == [b"0", b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7"]


async def test_a_cancelled_head_lets_the_others_go(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], ordering="strict", retry={"schedule": [0, 600], "jitter": "none"}
    )
    receiver.answers["/"] = [Answer(500), Answer(200)]
    first, *_ = await publish(hooks, 3)
    await world.until(lambda: receiver.requests)
    event = show("event", first.id)

    async def has_failed() -> bool:
        return (await world.delivery(hooks, event)).attempts == 1

    await world.until(has_failed)
    delivery = await world.delivery(hooks, event)
    cancelled_at = world.clock.now()
    await hooks.store.cancel(delivery.id, now=cancelled_at)
    await world.until(lambda: settled(hooks))
    assert receiver.bodies() == [b"0", b"1", b"2"]
    assert world.clock.now() < cancelled_at + 60, "long before the head would have been due"
    assert event_of(delivery.id) == first.id


async def test_a_lane_whose_order_is_given_up_no_longer_waits_for_its_head(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(), events=["*"], ordering="strict", retry={"schedule": [0, 600], "jitter": "none"}
    )
    receiver.answers["/"] = [Answer(500), Answer(200)]
    await publish(hooks, 3)
    await world.until(lambda: receiver.requests)
    for _ in range(200):
        await world.tick()
    given_up_at = world.clock.now()
    await world.pass_until(hooks.update_endpoint(endpoint.id, ordering="parallel"))
    await world.until(lambda: len(receiver.requests) == 3)
    assert world.clock.now() < given_up_at + 60


async def a_head_waiting_behind_replays(world: World, receiver: Receiver, hooks) -> None:
    """A strict lane: five were delivered, the sixth failed and waits, the five are replayed and due before it."""
    await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        ordering="strict",
        circuit=None,
        retry={"schedule": [0, 20, 1], "jitter": "none"},
    )
    receiver.answers["/"] = [*[Answer(200)] * 5, Answer(500), Answer(200)]
    published = await publish(hooks, 6)
    event = show("event", published[5].id)

    async def has_failed() -> bool:
        return (await world.delivery(hooks, event)).attempts == 1

    await world.until(has_failed)
    for replayed in published[:5]:
        await world.pass_until(hooks.deliveries.replay_event(replayed.id))


async def test_replays_that_are_due_before_the_head_do_not_keep_it_waiting(world: World, receiver: Receiver):
    hooks = await world.start(max_in_flight=4)
    await a_head_waiting_behind_replays(world, receiver, hooks)
    await world.until(lambda: settled(hooks))
    assert receiver.bodies() == [b"%d" % n for n in (0, 1, 2, 3, 4, 5, 5, 0, 1, 2, 3, 4)]


async def test_the_next_owner_finds_the_head_behind_replays_as_well(world: World, receiver: Receiver):
    hooks = await world.start(max_in_flight=4)
    await a_head_waiting_behind_replays(world, receiver, hooks)
    await world.crash(hooks)
    hooks = await world.start(max_in_flight=4)
    await world.until(lambda: settled(hooks))
    assert receiver.bodies() == [b"%d" % n for n in (0, 1, 2, 3, 4, 5, 5, 0, 1, 2, 3, 4)]


async def test_a_head_that_fails_while_it_is_looked_up_is_found_where_it_waits_now(
    world: World, receiver: Receiver
):
    hooks = await world.start(max_in_flight=4)
    endpoint = await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        ordering="strict",
        circuit=None,
        retry={"schedule": [0, 5, 20], "jitter": "none"},
    )
    held, asked, read_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    receiver.answers["/"] = [Answer(500), Answer(500, hold=held), Answer(200)]
    (first,) = await publish(hooks, 1)
    read = hooks.store.delivery

    async def has_failed(times: int) -> bool:
        found = await read(delivery_of(first.id, 0))
        return found is not None and found.attempts == times

    async def slowly(id):
        found = await read(id)
        asked.set()
        await read_on.wait()
        return found

    await world.until(lambda: has_failed(1))
    hooks.store.delivery = slowly
    await world.pass_until(hooks.update_endpoint(endpoint.id, description="any change"))
    await world.until(asked.is_set)
    await world.until(lambda: len(receiver.requests) == 2)
    due_at = world.clock.now() + 1  # while the first is under way: after it was due, before it is due again
    await hooks.accept([Draft("order.paid", b"%d" % n, deliver_at=due_at) for n in range(1, 6)])
    await world.until(lambda: world.clock.now() > due_at)
    held.set()
    await world.until(lambda: has_failed(2))
    read_on.set()
    await world.until(lambda: settled(hooks))
    assert receiver.bodies()[:3] == [b"0", b"0", b"0"]
    assert sorted(receiver.bodies()[3:]) == [b"%d" % n for n in range(1, 6)]


async def test_a_head_that_is_cancelled_and_replayed_with_others_is_one_of_them(
    world: World, receiver: Receiver
):
    hooks = await world.start(max_in_flight=4)
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], ordering="strict", retry={"schedule": [0, 600], "jitter": "none"}
    )
    receiver.answers["/"] = [*[Answer(200)] * 3, Answer(500), Answer(200)]
    published = await publish(hooks, 4)
    deliveries = [delivery_of(each.id, 0) for each in published]

    async def has_failed() -> bool:
        return (await world.delivery(hooks, show("event", published[3].id))).attempts == 1

    await world.until(has_failed)
    now = world.clock.now()
    await hooks.store.cancel(deliveries[3], now=now)
    for id in deliveries:
        await hooks.store.redrive(id, now=now)
    await world.until(lambda: settled(hooks))
    assert sorted(receiver.bodies()[4:]) == [b"0", b"1", b"2", b"3"]
    assert world.clock.now() < now + 60


async def test_a_strict_lane_goes_on_when_the_first_it_sends_with_care_fails(
    world: World, receiver: Receiver
):
    world.step = 0.01  # it is about durations, and the database's work takes real time
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], ordering="strict", retry=QUICK, circuit=None, timeout_ms=1_000
    )
    receiver.answers["/"] = [Answer(hold=asyncio.Event()), Answer(500), Answer(200)]
    await publish(hooks, 4)
    await world.until(lambda: receiver.requests)
    await world.crash(hooks)
    hooks = await world.start()
    await world.until(lambda: len(receiver.requests) == 2)
    began = world.clock.now()
    await world.until(lambda: settled(hooks))
    assert receiver.bodies() == [b"0", b"0", b"0", b"1", b"2", b"3"]
    assert world.clock.now() < began + 12, "a retry after a second, not a lane that hangs"


async def test_a_rate_limit_holds_in_every_window(world: World, receiver: Receiver):
    world.step = 0.01
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], rate_limit={"per_second": 10, "burst": 5}, max_in_flight=50
    )
    await publish(hooks, 40)
    await world.until(lambda: settled(hooks))
    starts = sorted(
        [
            attempt.at
            for found in await hooks.store.list_deliveries(_everything(), after=None, limit=100)
            for attempt in await hooks.store.attempts(found.id)
        ]
    )
    assert len(starts) == 40
    for n, start in enumerate(starts):
        assert sum(start <= other < start + 1 for other in starts[n:]) <= 15
    assert starts[-1] - starts[0] >= (40 - 5) / 10 - 0.1


async def test_a_rate_limits_burst_is_not_refilled_by_a_restart(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], rate_limit={"per_second": 0.001, "burst": 3}, max_in_flight=50
    )
    await publish(hooks, 10)
    await world.until(lambda: len(receiver.requests) == 3)
    for _ in range(20):
        await world.tick()
    await world.stop(hooks)
    hooks = await world.start()
    for _ in range(100):
        await world.tick()
    assert len(receiver.requests) == 3
    await world.crash(hooks)
    await world.start()
    for _ in range(100):
        await world.tick()
    assert len(receiver.requests) == 3


async def test_a_paused_endpoint_waits_and_a_resumed_one_goes_on(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await world.pass_until(hooks.update_endpoint(endpoint.id, paused=True))
    await publish(hooks, 3)
    for _ in range(50):
        await world.tick()
    assert receiver.requests == []
    await world.pass_until(hooks.update_endpoint(endpoint.id, paused=False))
    await world.until(lambda: settled(hooks))
    assert len(receiver.requests) == 3


async def test_retries_get_one_send_in_five_while_fresh_deliveries_wait(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        max_in_flight=4,
        circuit=None,
        retry={"schedule": [0, 600, 600], "jitter": "none"},
    )
    receiver.answers["/"] = [Answer(500)] * 10 + [Answer(200)]
    await publish(hooks, 10)
    await world.until(lambda: len(receiver.requests) == 10)
    await world.pass_until(hooks.update_endpoint(endpoint.id, paused=True))
    await publish(hooks, 60, first=10)
    world.clock.advance(700)
    await world.pass_until(hooks.update_endpoint(endpoint.id, paused=False))
    await world.until(lambda: settled(hooks))
    # Of the first window all may be retries: they are loaded by a statement of their own, which may be the first.
    first = [int(body) for body in receiver.bodies()[14:44]]
    retries = sum(n < 10 for n in first)
    assert 4 <= retries <= 8, f"a fifth of 30 is 6, these were {retries}"


def _everything():
    from hookline.store.contract import DeliveryFilter

    return DeliveryFilter()


async def test_a_lane_whose_release_is_in_doubt_is_woken_all_the_same(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], retry={"schedule": [0], "jitter": "none"}, max_in_flight=1
    )
    receiver.answers["/"] = [Answer(429, {"retry-after": "20"}), Answer(200)]
    wake, failures = hooks.store.wake, []

    async def fails_once(lanes, *, now):
        if not failures and not hooks.worker.ownership.lanes[lanes[0]].is_held:
            failures.append(lanes)
            raise StoreUnavailable("cut off between the release and the look at the rows")
        await wake(lanes, now=now)

    hooks.store.wake = fails_once
    began = world.clock.now()
    await publish(hooks, 2)
    await world.until(lambda: settled(hooks))
    assert failures, "the lane was released while it rested"
    assert world.clock.now() < began + 60, "long before the next sweep"
