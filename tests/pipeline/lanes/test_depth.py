"""How much of one endpoint's work is in memory, where it allows few requests at once."""

import asyncio

import msgspec
import pytest

from hookline.app import Hookline
from hookline.model import State
from hookline.pipeline.intake.drafts import Draft
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

CAP = 5
MANY = 60


async def proven(world: World, hooks: Hookline, receiver: Receiver) -> None:
    """An endpoint that has answered as many at once as it allows."""
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], max_in_flight=CAP, retry={"schedule": [0, 1]}
    )
    for n in range(4):
        await publish(hooks, CAP)
        await world.until(lambda so_far=(n + 1) * CAP: hooks.worker.settler.delivered == so_far)


async def publish(hooks: Hookline, number: int) -> None:
    await hooks.accept([Draft("order.paid", msgspec.json.encode({"n": n})) for n in range(number)])


async def test_a_burst_for_one_endpoint_is_not_read_back_from_the_store(world: World, receiver: Receiver):
    hooks = await world.start()
    await proven(world, hooks, receiver)
    load, read = hooks.store.load, []

    async def counted(wants, **more):
        rows = await load(wants, **more)
        read.extend(rows)
        return rows

    hooks.store.load = counted  # called as before, and counted
    before = hooks.worker.settler.delivered
    await publish(hooks, MANY)
    await world.until(lambda: hooks.worker.settler.delivered == before + MANY)
    assert read == []


async def test_a_lane_that_begins_to_fail_leaves_what_it_cannot_send_soon(world: World, receiver: Receiver):
    hooks = await world.start()
    await proven(world, hooks, receiver)
    fail, go_on = asyncio.Event(), asyncio.Event()
    (lane,) = hooks.worker.ownership.lanes.values()
    before = len(receiver.requests)
    receiver.answers["/"] = [Answer(500, hold=fail), *[Answer(200, hold=go_on)] * (CAP - 1), Answer(200)]
    await publish(hooks, MANY)
    await world.until(lambda: receiver.open_requests == CAP)
    assert len(lane.ready) == MANY - CAP
    left = lane.generation
    fail.set()
    await world.until(lambda: lane.generation > left)
    assert len(lane.known) <= 2 * CAP + CAP, "twice the cap, beside what is under way"
    go_on.set()

    async def is_over() -> bool:
        return (await hooks.store.counts()).get(State.PENDING, 0) == 0

    await world.until(is_over)
    assert len(receiver.requests) == before + MANY + 1, "one of them twice: it was answered 500"
