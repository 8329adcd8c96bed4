"""An endpoint that fails raises one alert, which outlives a restart and is resolved when the endpoint recovers."""

import pytest

from hookline.ids import read
from hookline.model import OWN_ACCOUNT, AlertKind, CircuitState, EndpointId, State
from hookline.pipeline.measuring.alert_look import ALERTS_EVERY
from hookline.store.contract import AlertFilter
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

QUICK = {"schedule": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "jitter": "none"}
CIRCUIT = {"consecutive_failures": 2, "cooldown_s": 600, "max_cooldown_s": 600}


async def alerts(hooks):
    return await hooks.store.list_alerts(AlertFilter(), after=None, limit=100)


async def is_firing(hooks):
    return bool(await hooks.store.firing_alerts())


async def until_open(world: World, hooks, endpoint):
    async def is_open():
        (lane,) = await hooks.store.lanes([EndpointId(read("endpoint", endpoint.id))])
        return lane.circuit.state is CircuitState.OPEN

    await world.until(is_open)


async def an_open_circuit(world: World, hooks, receiver: Receiver, **fields):
    receiver.answers["/"] = [Answer(500)]
    endpoint = await world.pass_until(
        hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT, **fields)
    )
    event = await world.pass_until(hooks.publish("order.paid", {}, account=fields.get("account", "default")))
    await until_open(world, hooks, endpoint)
    return endpoint, event


async def looked(world: World, hooks, times: int):
    """Let so many looks pass."""
    for _ in range(times):
        world.clock.advance(ALERTS_EVERY)
        for _ in range(40):
            await world.tick()


async def test_an_open_circuit_fires_once_and_is_resolved_after_the_endpoint_recovers(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    endpoint, event = await an_open_circuit(world, hooks, receiver)
    await world.until(lambda: is_firing(hooks))
    [fired] = await alerts(hooks)
    assert (fired.kind, fired.account) == (AlertKind.CIRCUIT_OPEN, "default")
    assert fired.endpoint_id == read("endpoint", endpoint.id)
    await world.stop(hooks)
    hooks = await world.start()
    await looked(world, hooks, 3)
    assert await alerts(hooks) == [fired], "the same one, since the same time"
    receiver.answers["/"] = [Answer(200)]
    world.clock.advance(CIRCUIT["cooldown_s"])
    await world.until_state(hooks, event.id, State.DELIVERED)

    async def is_resolved():
        return not await is_firing(hooks)

    await world.until(is_resolved)
    [resolved] = await alerts(hooks)
    assert (resolved.id, resolved.since) == (fired.id, fired.since)
    assert resolved.resolved_at is not None


async def test_an_open_circuit_of_the_account_of_own_events_raises_nothing(world: World, receiver: Receiver):
    hooks = await world.start()
    await an_open_circuit(world, hooks, receiver, account=OWN_ACCOUNT)
    mine, _ = await an_open_circuit(world, hooks, receiver)
    await world.until(lambda: is_firing(hooks))
    assert [each.endpoint_id for each in await alerts(hooks)] == [read("endpoint", mine.id)]


async def test_another_process_takes_over(shared_world: World, receiver: Receiver):
    world = shared_world
    first = await world.start()
    second = await world.start()
    await an_open_circuit(world, first, receiver)
    await world.until(lambda: is_firing(second))
    [fired] = await alerts(second)
    receiver.answers["/"] = [Answer(200)]
    await world.crash(first)
    await world.pass_until(second.endpoints.delete(fired.endpoint_id))

    async def is_resolved():
        return not await is_firing(second)

    await world.until(is_resolved)
    assert [each.id for each in await alerts(second)] == [fired.id]
