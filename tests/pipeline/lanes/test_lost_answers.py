"""Lanes are woken although the answer to the call that made their rows due is lost.

A repeat finds nothing left to do, so it cannot wake them; and nobody has to repeat the call.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hookline.app import Hookline
from hookline.errors import StoreUnavailable
from hookline.ids import read, show
from hookline.model import EndpointId, EventId, WorkerId
from hookline.store.contract import Pulse
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

SOON_S = 60.0  # long before the next sweep, which finds forgotten lanes


def loses_its_answer(hooks: Hookline, verb: str) -> None:
    """The next call of the verb is carried out, and its answer is lost."""
    right: Callable[..., Awaitable[Any]] = getattr(hooks.store, verb)

    async def silent(*given: Any, **named: Any) -> Any:
        setattr(hooks.store, verb, right)
        await right(*given, **named)
        raise StoreUnavailable("The connection was lost.")

    setattr(hooks.store, verb, silent)


async def delivered_once(world: World, receiver: Receiver, hooks: Hookline) -> tuple[EndpointId, EventId]:
    """An endpoint that got an event, and whose lane has been released since."""
    endpoint = await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=["*"]))
    event = await world.pass_until(hooks.publish("order.paid", {}))
    await world.until(lambda: len(receiver.requests) == 1)
    await world.until(lambda: not hooks.worker.ownership.lanes)
    return EndpointId(read("endpoint", endpoint.id)), EventId(read("event", event.id))


@pytest.mark.parametrize("is_repeated", [False, True], ids=["once", "repeated"])
async def test_a_replay_is_sent(world: World, receiver: Receiver, is_repeated: bool):
    hooks = await world.start()
    _, event = await delivered_once(world, receiver, hooks)
    loses_its_answer(hooks, "redrive_event")
    at = world.clock.now()
    with pytest.raises(StoreUnavailable):
        await world.pass_until(hooks.deliveries.replay_event(event))
    if is_repeated:
        assert await world.pass_until(hooks.deliveries.replay_event(event)) == []
    await world.until(lambda: len(receiver.requests) == 2)
    assert world.clock.now() - at < SOON_S


async def test_what_waited_for_an_endpoint_that_is_resumed_is_sent(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint, event = await delivered_once(world, receiver, hooks)
    await world.pass_until(hooks.update_endpoint(show("endpoint", endpoint), paused=True))
    await world.pass_until(hooks.deliveries.replay_event(event))
    loses_its_answer(hooks, "update_endpoint")
    at = world.clock.now()
    with pytest.raises(StoreUnavailable):
        await world.pass_until(hooks.update_endpoint(show("endpoint", endpoint), paused=False))
    await world.until(lambda: len(receiver.requests) == 2)
    assert world.clock.now() - at < SOON_S


async def test_a_test_event_is_sent(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint, _ = await delivered_once(world, receiver, hooks)
    loses_its_answer(hooks, "accept")
    at = world.clock.now()
    with pytest.raises(StoreUnavailable):
        await world.pass_until(hooks.trial.send(endpoint))
    await world.until(lambda: len(receiver.requests) == 2)
    assert world.clock.now() - at < SOON_S


async def test_a_replay_is_sent_although_its_change_cannot_be_read(world: World, receiver: Receiver):
    hooks = await world.start()
    _, event = await delivered_once(world, receiver, hooks)
    right = hooks.store.pulse

    async def deaf(*, seen: int, worker: WorkerId | None = None) -> Pulse:
        if worker is None:  # not the worker's own pulse
            raise StoreUnavailable("The connection was lost.")
        return await right(seen=seen, worker=worker)

    hooks.store.pulse = deaf
    at = world.clock.now()
    with pytest.raises(StoreUnavailable):
        await world.pass_until(hooks.deliveries.replay_event(event))
    hooks.store.pulse = right
    await world.until(lambda: len(receiver.requests) == 2)
    assert world.clock.now() - at < SOON_S
