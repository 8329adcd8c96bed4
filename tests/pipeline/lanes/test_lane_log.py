"""The log tells of a circuit that opens or closes, and of an endpoint that is disabled, once for each change."""

import pytest
from structlog.testing import capture_logs

from hookline.ids import read
from hookline.model import CircuitState, EndpointId, State
from hookline.store.contract import GONE
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

QUICK = {"schedule": [0] + [1] * 20, "jitter": "none"}
CIRCUIT = {"cooldown_s": 60, "max_cooldown_s": 480}


def said(lines, noun):
    return [line for line in lines if line["event"].startswith(noun)]


async def circuit_of(hooks, endpoint):
    (lane,) = await hooks.store.lanes([EndpointId(read("endpoint", endpoint.id))])
    return lane.circuit


async def until_circuit(world, hooks, endpoint, state):
    async def is_there() -> bool:
        return (await circuit_of(hooks, endpoint)).state is state

    await world.until(is_there)
    return await circuit_of(hooks, endpoint)


async def an_open_circuit(world, receiver, hooks):
    world.step = 0.02
    endpoint = await hooks.create_endpoint(
        url=receiver.url(), events=["*"], account="acme", retry=QUICK, circuit=CIRCUIT
    )
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {}, account="acme")
    await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
    return endpoint, event


async def test_a_circuit_that_opens_and_closes_is_two_lines_however_many_probes_fail(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    with capture_logs() as lines:
        endpoint, event = await an_open_circuit(world, receiver, hooks)
        for failed in (1, 2):  # probes
            opened = await circuit_of(hooks, endpoint)
            world.clock.advance(opened.probe_at - 1 - world.clock.now())
            await world.until(lambda failed=failed: len(receiver.requests) == 5 + failed)
            await until_circuit(world, hooks, endpoint, CircuitState.OPEN)
        receiver.answers["/"] = [Answer(200)]
        opened = await circuit_of(hooks, endpoint)
        world.clock.advance(opened.probe_at - 1 - world.clock.now())
        await world.until_state(hooks, event.id, State.DELIVERED)
    first, second = said(lines, "circuit.")
    assert (first["event"], first["endpoint_id"], first["account"], first["reason"]) == (
        "circuit.opened",
        endpoint.id,
        "acme",
        "5 failures in a row",
    )
    assert first["next_probe_in_s"] == 60
    assert second == {
        "event": "circuit.closed",
        "log_level": "info",
        "endpoint_id": endpoint.id,
        "account": "acme",
        "reason": "the probe was accepted",
    }


async def test_a_circuit_that_an_operator_resets_is_closed_in_the_log(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint, event = await an_open_circuit(world, receiver, hooks)
    receiver.answers["/"] = [Answer(200)]
    with capture_logs() as lines:
        await world.pass_until(hooks.endpoints.reset_circuit(EndpointId(read("endpoint", endpoint.id))))
        await world.until_state(hooks, event.id, State.DELIVERED)
    assert [(line["event"], line["reason"]) for line in said(lines, "circuit.")] == [
        ("circuit.closed", "an operator closed it")
    ]


async def test_an_endpoint_that_is_gone_is_disabled_in_one_line(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(410)]
    with capture_logs() as lines:
        events = [await world.pass_until(hooks.publish("order.paid", n)) for n in range(5)]
        await world.until_state(hooks, events[0].id, State.DEAD)
        await world.until(lambda: said(lines, "endpoint.disabled"))
        for _ in range(50):
            await world.tick()
    [line] = said(lines, "endpoint.disabled")
    assert (line["endpoint_id"], line["reason"]) == (endpoint.id, GONE)


async def test_an_endpoint_that_an_operator_disables_is_one_line_and_other_changes_are_none(world: World):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url="http://127.0.0.1:9999/", events=["*"])
    with capture_logs() as lines:
        for fields in ({"enabled": False}, {"description": "x"}, {"enabled": True}):
            await world.pass_until(hooks.update_endpoint(endpoint.id, **fields))
    [line] = said(lines, "endpoint.")
    assert (line["event"], line["endpoint_id"], line["reason"]) == (
        "endpoint.disabled",
        endpoint.id,
        "an operator disabled it",
    )


async def test_deaths_are_counted_in_one_line_for_each_endpoint_and_minute(world: World, receiver: Receiver):
    hooks = await world.start()
    once = {"schedule": [0], "jitter": "none"}
    bad, worse = [
        await hooks.create_endpoint(
            url=receiver.url(path), events=[type], retry=once, circuit=None, max_in_flight=1
        )
        for path, type in (("/bad", "bad"), ("/worse", "worse"))
    ]
    receiver.answers["/bad"] = [Answer(422), Answer(500), Answer(500), Answer(500)]
    receiver.answers["/worse"] = [Answer(400)]
    world.step = 0.01
    with capture_logs() as lines:
        events = [await world.pass_until(hooks.publish("bad", n)) for n in range(3)]
        events += [await world.pass_until(hooks.publish("worse", n)) for n in range(2)]
        for event in events:
            await world.until_state(hooks, event.id, State.DEAD)
        assert said(lines, "deliver") == []
        await world.until(lambda: len(said(lines, "deliveries.died")) == 2)
        world.clock.advance(120)
        for _ in range(20):
            await world.tick()
    found = {line["endpoint_id"]: line for line in said(lines, "deliver")}
    assert len(said(lines, "deliver")) == 2
    assert [found[bad.id][name] for name in ("count", "error", "status", "reason")] == [
        3,
        "http_5xx",
        500,
        "exhausted",
    ]
    assert [found[worse.id][name] for name in ("count", "error", "status", "reason")] == [
        2,
        "http_4xx",
        400,
        "rejected",
    ]


async def test_deaths_of_the_last_minute_are_logged_at_the_stop(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(422)]
    event = await hooks.publish("order.paid", 1)
    await world.until_state(hooks, event.id, State.DEAD)
    with capture_logs() as lines:
        await world.stop(hooks)
    assert [line["count"] for line in said(lines, "deliveries.died")] == [1]
