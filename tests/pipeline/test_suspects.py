"""A delivery that kills its worker ends as a dead letter; the rest of its lane is delivered."""

import asyncio

import pytest

from hookline.errors import StoreUnavailable
from hookline.model import Reason, State
from hookline.pipeline.drafts import Draft
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def test_a_delivery_under_which_five_workers_died_is_given_up(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=3, circuit=None)
    poison = asyncio.Event()  # never set: whoever sends the poison dies while it is under way

    def answers_for(body: bytes) -> Answer:
        return Answer(hold=poison) if body == b'"poison"' else Answer(200)

    receiver.answer = answers_for
    drafts = [Draft("order.paid", b"%d" % n) for n in range(30)]
    drafts.insert(4, Draft("order.paid", b'"poison"'))
    await hooks.accept(drafts)
    deaths = 0
    while True:
        running, died = hooks, deaths

        async def is_over(running=running) -> bool:
            counts = await running.store.counts()
            return counts.get(State.DEAD, 0) == 1 and counts.get(State.PENDING, 0) == 0

        async def is_poisoned_or_over(died=died, is_over=is_over) -> bool:
            return receiver.bodies().count(b'"poison"') > died or await is_over()

        await world.until(is_poisoned_or_over)
        if await is_over():
            break
        deaths += 1
        await world.crash(hooks)
        hooks = await world.start()
    assert deaths == 5
    counts = await hooks.store.counts()
    assert (counts[State.DELIVERED], counts[State.DEAD]) == (30, 1)
    (dead,) = [found for found in await _all(hooks) if found.state is State.DEAD]
    assert (dead.reason, dead.attempts) == (Reason.CRASH_LIMIT, 0)


async def test_it_is_also_given_up_when_there_is_no_room_to_read_all_suspects_at_once(
    world: World, receiver: Receiver
):
    hooks = await world.start(max_in_flight=8)
    for name in "abcd":
        await hooks.create_endpoint(
            url=receiver.url(f"/{name}"), events=[f"order.{name}"], max_in_flight=8, circuit=None
        )
    # A lane that answers is trusted step by step, until all eight may be under way at once.
    await hooks.accept([Draft(f"order.{name}", b'"first"') for name in "abcd" for _ in range(8)])
    await _until_none_is_pending(world, hooks)
    never = asyncio.Event()
    receiver.answer = lambda body: Answer(hold=never)
    await hooks.accept([Draft("order.a", b'"before"') for _ in range(7)] + [Draft("order.a", b'"poison"')])
    await receiver.wait_for(lambda: b'"poison"' in receiver.bodies())  # no time passes, so none is overdue
    await hooks.accept([Draft(f"order.{name}", b'"after"') for name in "bcd" for _ in range(8)])
    receiver.answer = lambda body: Answer(hold=never) if body == b'"poison"' else Answer(200)
    deaths = 0
    while not (await hooks.store.counts()).get(State.DEAD, 0):
        deaths += 1
        await world.crash(hooks)
        hooks = await world.start(max_in_flight=8)

        async def is_poisoned_or_over(running=hooks, died=deaths) -> bool:
            return (
                receiver.bodies().count(b'"poison"') > died
                or (await running.store.counts()).get(State.DEAD, 0) == 1
            )

        await world.until(is_poisoned_or_over)
    assert deaths == 5
    await _until_none_is_pending(world, hooks)


async def test_a_death_with_an_innocent_lane_costs_nothing_but_a_repeat(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=3)
    receiver.answers["/"] = [Answer(hold=asyncio.Event()), Answer(200)]
    await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(30)])
    await world.until(lambda: receiver.requests)
    await world.crash(hooks)
    hooks = await world.start()

    async def is_over() -> bool:
        return (await hooks.store.counts()).get(State.DELIVERED, 0) == 30

    await world.until(is_over)
    assert len(receiver.requests) <= 30 + 3


async def test_suspects_that_could_not_be_marked_are_read_again(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=3)
    receiver.answers["/"] = [Answer(hold=asyncio.Event()), Answer(200)]
    await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(30)])
    await world.until(lambda: receiver.requests)
    await world.crash(hooks)
    hooks = await world.start()
    mark, failures = hooks.store.mark, []

    async def fails_once(worker, suspects, *, now):
        if not failures:
            failures.append(suspects)
            raise StoreUnavailable("cut off before they were marked")
        return await mark(worker, suspects, now=now)

    hooks.store.mark = fails_once

    async def is_over() -> bool:
        return (await hooks.store.counts()).get(State.DELIVERED, 0) == 30

    await world.until(is_over)
    assert failures


async def _until_none_is_pending(world: World, hooks) -> None:
    async def is_over() -> bool:
        return not (await hooks.store.counts()).get(State.PENDING, 0)

    await world.until(is_over)


async def _all(hooks):
    from hookline.store.contract import DeliveryFilter

    return await hooks.store.list_deliveries(DeliveryFilter(), after=None, limit=200)
