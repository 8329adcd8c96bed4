"""The circuit of an endpoint that is very slow trips at half its threshold, by the stored percentiles of its day."""

import pytest

from hookline.errors import StoreUnavailable
from hookline.ids import read
from hookline.model import CircuitState, EndpointId
from hookline.pipeline.measuring.very_slow import VerySlowEndpoints
from hookline.rules.slowness import ENOUGH, VERY_SLOW
from hookline.store.contract import LatencyDay
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

QUICK = {"schedule": [0, *[1] * 11], "jitter": "none"}
FIFTEEN_MINUTES = 900.0


async def day(
    store, world: World, endpoint: EndpointId, *, p95: float | None, attempts: int = ENOUGH
) -> None:
    await store.write_latency_days(
        [
            LatencyDay(
                endpoint_id=endpoint,
                as_of=world.clock.now(),
                attempts=attempts,
                accepted=attempts,
                p50=p95,
                p95=p95,
                p99=p95,
            )
        ]
    )


async def created(hooks, receiver: Receiver, **fields) -> EndpointId:
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, **fields)
    return EndpointId(read("endpoint", endpoint.id))


async def reason(world: World, hooks, endpoint: EndpointId) -> str:
    """Publish to a receiver that fails; why the circuit opened."""
    await hooks.publish("order.paid", {})

    async def is_open() -> bool:
        [lane] = await hooks.store.lanes([endpoint])
        return lane.circuit.state is CircuitState.OPEN

    await world.until(is_open)
    [lane] = await hooks.store.lanes([endpoint])
    return lane.circuit.reason


async def test_every_process_halves_the_threshold_however_fast_its_own_attempts_were(
    world: World, receiver: Receiver
):
    """The owner is new: it has seen none of the slow answers."""
    receiver.answers["/"] = [Answer(500)]
    first = await world.start()
    endpoint = await created(first, receiver)
    await day(first.store, world, endpoint, p95=VERY_SLOW + 0.1)
    await world.crash(first)
    second = await world.start()
    assert await reason(world, second, endpoint) == "3 failures in a row"


async def test_one_that_is_not_very_slow_keeps_its_threshold(world: World, receiver: Receiver):
    receiver.answers["/"] = [Answer(500)]
    hooks = await world.start(deliver=False)
    endpoint = await created(hooks, receiver)
    await day(hooks.store, world, endpoint, p95=VERY_SLOW)
    second = await world.start()
    assert await reason(world, second, endpoint) == "5 failures in a row"


async def test_one_with_few_attempts_keeps_its_threshold(world: World, receiver: Receiver):
    receiver.answers["/"] = [Answer(500)]
    hooks = await world.start(deliver=False)
    endpoint = await created(hooks, receiver)
    await day(hooks.store, world, endpoint, p95=60.0, attempts=ENOUGH - 1)
    second = await world.start()
    assert await reason(world, second, endpoint) == "5 failures in a row"


async def test_a_process_that_runs_looks_again_within_fifteen_minutes(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await created(hooks, receiver)
    very_slow = hooks.worker.very_slow
    assert endpoint not in very_slow
    await day(hooks.store, world, endpoint, p95=9.0)
    began = world.clock.now()
    await world.until(lambda: world.clock.advance(10.0) or endpoint in very_slow)
    await day(hooks.store, world, endpoint, p95=0.1)
    await world.until(lambda: world.clock.advance(10.0) or endpoint not in very_slow)
    assert world.clock.now() - began < 2 * FIFTEEN_MINUTES
    receiver.answers["/"] = [Answer(500)]
    assert await reason(world, hooks, endpoint) == "5 failures in a row"


async def test_all_of_them_are_known_however_many(world: World):
    hooks = await world.start(deliver=False)
    ids = [EndpointId(bytes([n % 256, n // 256]) * 8) for n in range(1, 1_302)]
    for n, id in enumerate(ids):
        await day(hooks.store, world, id, p95=5.5 + n % 7)
    found = VerySlowEndpoints(hooks.store, world.clock)
    await found.look()
    assert all(id in found for id in ids)


async def test_what_was_known_stays_while_the_store_does_not_answer(world: World):
    hooks = await world.start(deliver=False)
    slow = EndpointId(b"s" * 16)
    await day(hooks.store, world, slow, p95=9.0)
    found = VerySlowEndpoints(hooks.store, world.clock)
    await found.look()

    async def away(**_: object) -> list[LatencyDay]:
        raise StoreUnavailable("The database is away.")

    hooks.store.slowest = away
    await found.look()
    assert slow in found
