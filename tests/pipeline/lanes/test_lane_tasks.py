"""A background task that dies of an unexpected error leaves its lane able to go on."""

import asyncio

import pytest
import structlog

from hookline.model import State
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


def failing(store, verb: str, times: int):
    """Make the verb fail so many times; returns how often it did."""
    carry_out, failures = getattr(store, verb), []

    async def fail(*given, **named):
        if len(failures) < times:
            failures.append(verb)
            raise ValueError("nobody thought of it")
        return await carry_out(*given, **named)

    setattr(store, verb, fail)
    return failures


async def test_the_suspects_of_a_lane_are_sent_in_the_end(world: World, receiver: Receiver):
    hooks = await world.start(heartbeat_s=1)
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(200, hold=asyncio.Event()), Answer(200)]
    event = await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    await world.crash(hooks)
    hooks = await world.start(heartbeat_s=1)
    failures = failing(hooks.store, "mark", 3)
    with structlog.testing.capture_logs() as logged:
        await world.until_state(hooks, event.id, State.DELIVERED)
    assert sum(line["event"] == "lane_task.failed" for line in logged) == len(failures) == 3
    assert sum(line["event"] == "loop.failed" for line in logged) == 0
    assert not any(lane.is_careful for lane in hooks.worker.ownership.lanes.values())


async def test_a_strict_lane_that_looks_for_its_head_looks_again(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url(), events=["*"], ordering="strict", retry={"schedule": [0, 600], "jitter": "none"}
    )
    receiver.answers["/"] = [Answer(500), Answer(200)]
    first = await hooks.publish("order.paid", {"n": 1})
    second = await hooks.publish("order.paid", {"n": 2})
    await world.until(lambda: receiver.requests)
    await world.until(lambda: not any(lane.unsettled for lane in hooks.worker.ownership.lanes.values()))
    head = (await world.delivery(hooks, first.id)).id
    failures = failing(hooks.store, "delivery", 1)
    await hooks.store.retry(head, now=hooks.clock.now())
    await world.until(lambda: len(receiver.requests) == 3)
    assert failures
    await world.until_state(hooks, second.id, State.DELIVERED)
