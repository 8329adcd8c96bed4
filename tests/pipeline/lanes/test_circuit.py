"""A circuit opens on failures, lets one probe through per cooldown, and lives with the lane."""

import asyncio
from itertools import count, pairwise

import pytest

from hookline.ids import read
from hookline.model import LONG_AGO, Circuit, CircuitState, EndpointId, RateLimit, State
from hookline.pipeline.intake.drafts import Draft
from hookline.pipeline.lanes.flow_control import FlowControl
from hookline.store.contract import Taken
from tests.factories import an_endpoint
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

QUICK = {"schedule": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "jitter": "none"}
CIRCUIT = {"cooldown_s": 60, "max_cooldown_s": 480}


async def circuit(hooks, endpoint):
    (lane,) = await hooks.store.lanes([EndpointId(read("endpoint", endpoint.id))])
    return lane.circuit


async def until_circuit(world: World, hooks, endpoint, state: CircuitState):
    async def is_there() -> bool:
        return (await circuit(hooks, endpoint)).state is state

    await world.until(is_there)
    return await circuit(hooks, endpoint)


def wait_for_probe(world: World, opened: Circuit) -> None:
    """Let most of the cooldown pass at once."""
    world.clock.advance(opened.probe_at - 1 - world.clock.now())


async def publish(hooks, number: int):
    return await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(number)])


async def test_five_failures_open_it_and_the_sixth_request_is_the_single_probe(
    world: World, receiver: Receiver
):
    world.step = 0.02
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT)
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})
    opened = await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    assert len(receiver.requests) == 5
    assert opened.reason == "5 failures in a row"
    assert opened.cooldown == 60
    for _ in range(100):
        await world.tick()
    assert len(receiver.requests) == 5, "no attempt is used up while it is open"
    receiver.answers["/"] = [Answer(200)]
    wait_for_probe(world, opened)
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    attempts = await hooks.store.attempts(delivery.id)
    assert len(receiver.requests) == len(attempts) == 6
    assert attempts[5].at >= opened.probe_at
    closed = await until_circuit(world, hooks, endpoint, CircuitState.CLOSED)
    assert closed.failures == 0


async def test_a_failed_probe_doubles_the_cooldown_and_the_backlog_waits(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT)
    receiver.answers["/"] = [Answer(500)]
    await publish(hooks, 40)
    await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    before = len(receiver.requests)
    cooldowns = []
    for probes in range(1, 4):
        wait_for_probe(world, await circuit(hooks, endpoint))
        assert len(receiver.requests) == before + probes - 1
        await world.until(lambda probes=probes: len(receiver.requests) == before + probes)

        async def is_reopened() -> bool:
            return (await circuit(hooks, endpoint)).cooldown not in (60, *cooldowns)

        await world.until(is_reopened)
        cooldowns.append((await circuit(hooks, endpoint)).cooldown)
    assert cooldowns == [120, 240, 480]
    assert len(receiver.requests) == before + 3, "one probe per cooldown"


async def test_a_cooldown_that_is_over_before_the_lane_was_let_go_ends_with_a_probe_too(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT)
    receiver.answers["/"] = [Answer(500)] * 5 + [Answer(200)]
    await publish(hooks, 40)
    opened = await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    (lane,) = hooks.worker.ownership.lanes.values()
    # All that it keeps in memory waits for the probe, so nothing is loaded either.
    await world.until(lambda: lane.room() == 0 or lane.is_lost)
    world.clock.advance(opened.probe_at + 1 - world.clock.now())
    await world.until(lambda: len(receiver.requests) == 45)
    await until_circuit(world, hooks, endpoint, CircuitState.CLOSED)


async def test_after_closing_the_backlog_is_let_out_step_by_step(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT, max_in_flight=8
    )
    receiver.answers["/"] = [Answer(500)]
    await publish(hooks, 40)
    await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    probe, second = asyncio.Event(), asyncio.Event()
    receiver.answers["/"] = [Answer(200, hold=probe), Answer(200, hold=second), Answer(200)]
    failed = len(receiver.requests)
    await world.until(lambda: len(receiver.requests) == failed + 1)
    for _ in range(20):
        await world.tick()
    assert receiver.open_requests == 1
    probe.set()
    await world.until(lambda: len(receiver.requests) == failed + 2)
    for _ in range(20):
        await world.tick()
    assert receiver.open_requests == 1, "one at a time after the probe, then two, four …"
    second.set()
    await world.until(lambda: len(receiver.requests) == failed + 40)


async def test_it_survives_a_restart(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT)
    receiver.answers["/"] = [Answer(500)]
    await publish(hooks, 10)
    opened = await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    await world.crash(hooks)
    sent = len(receiver.requests)
    hooks = await world.start()
    assert await circuit(hooks, endpoint) == opened
    for _ in range(100):
        await world.tick()
    assert len(receiver.requests) == sent


async def test_a_prober_that_dies_leaves_its_probe_to_the_next(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT)
    receiver.answers["/"] = [Answer(500)]
    await publish(hooks, 6)
    await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    sent = len(receiver.requests)
    receiver.answers["/"] = [Answer(200, hold=asyncio.Event()), Answer(200)]
    await world.until(lambda: len(receiver.requests) == sent + 1)
    probing = await circuit(hooks, endpoint)
    assert probing.state is CircuitState.HALF_OPEN
    await world.crash(hooks)
    hooks = await world.start()
    await world.until(lambda: len(receiver.requests) >= sent + 2)
    assert world.clock.now() >= probing.probe_at
    await until_circuit(world, hooks, endpoint, CircuitState.CLOSED)


async def test_a_reset_by_hand_lets_the_lane_send_at_once(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT)
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})
    opened = await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    receiver.answers["/"] = [Answer(200)]
    await world.pass_until(
        hooks.store.reset_circuit(EndpointId(read("endpoint", endpoint.id)), now=world.clock.now())
    )
    await world.until_state(hooks, event.id, State.DELIVERED)
    assert world.clock.now() < opened.probe_at
    assert (await until_circuit(world, hooks, endpoint, CircuitState.CLOSED)).failures == 0


async def test_every_second_answer_failing_trips_at_the_tenth(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT, max_in_flight=1
    )
    receiver.answers["/"] = [Answer(200), Answer(500)] * 5 + [Answer(200)]
    for n in range(8):
        await world.pass_until(hooks.publish("order.paid", {"n": n}))
    opened = await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    assert opened.reason == "5 of 10 attempts failed within 600 s"
    assert len(receiver.requests) == 10


async def test_no_circuit_never_opens(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=None)
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})
    await world.until_state(hooks, event.id, State.DEAD)
    assert len(receiver.requests) == 12
    assert (await circuit(hooks, endpoint)).state is CircuitState.CLOSED


async def test_four_workers_send_one_probe_per_cooldown(shared_world: World, receiver: Receiver):
    world = shared_world
    hooks = await world.start()
    for _ in range(3):
        await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"], retry=QUICK, circuit=CIRCUIT)
    receiver.answers["/"] = [Answer(500)]
    await publish(hooks, 50)
    await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    before = len(receiver.requests)
    opened = await circuit(hooks, endpoint)
    await world.until(lambda: len(receiver.requests) > before)
    assert world.clock.now() >= opened.probe_at
    for _ in range(40):
        await world.tick()
    assert len(receiver.requests) == before + 1


async def test_a_probe_keeps_to_the_rate_limit(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(
        url=receiver.url(),
        events=["*"],
        retry=QUICK,
        circuit={"consecutive_failures": 2, "cooldown_s": 2, "max_cooldown_s": 2},
        rate_limit={"per_second": 0.1, "burst": 1},
    )
    receiver.answers["/"] = [Answer(500), Answer(500), Answer(200)]
    event = await hooks.publish("order.paid", {})
    await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    begun = [attempt.at for attempt in await hooks.store.attempts(delivery.id)]
    assert len(begun) == 3
    assert all(later - earlier >= 10.0 for earlier, later in pairwise(begun))


async def test_a_probe_is_due_although_the_clock_moves_between_two_readings():
    """A rate limit that has a token says "now": that must not be compared with a "now" of before."""
    endpoint = an_endpoint(rate_limit=RateLimit(per_second=1, burst=1))
    circuit = Circuit(state=CircuitState.OPEN, probe_at=1_000.0)
    moving = count(1_001)
    taken = Taken(endpoint.id, 1, LONG_AGO, LONG_AGO, False, circuit=circuit)
    flow = FlowControl(taken, endpoint, now=lambda: float(next(moving)), very_slow=())
    assert flow.wants_probe()
