"""A settlement that the store refuses costs nobody else anything, and is not sent again for it."""

import math

import pytest
import structlog

from hookline import ids
from hookline.errors import StoreRefused
from hookline.model import CircuitState, State
from hookline.pipeline.intake.drafts import Draft
from tests.receiver import Answer, Receiver
from tests.refusing import refuse, relent
from tests.world import World

pytestmark = pytest.mark.anyio

MANY = 60
ODD = b"7"  # the event with an answer unlike all others


async def publish(hooks, number: int = MANY):
    accepted = await hooks.accept([Draft("order.paid", b"%d" % n) for n in range(number)])
    return [ids.show("event", event.id) for event in accepted]


def are_delivered(hooks, number: int):
    async def are_they() -> bool:
        return (await hooks.store.counts())[State.DELIVERED] == number

    return are_they


async def let_pass(world: World, seconds: float) -> None:
    until = world.clock.now() + seconds
    await world.until(lambda: world.clock.now() >= until)


def lines(logged, event: str) -> int:
    return sum(line["event"] == event for line in logged)


@pytest.mark.parametrize("error", [ValueError, StoreRefused])
async def test_one_that_the_store_cannot_take_is_found_in_a_few_statements(
    world: World, receiver: Receiver, error: type[Exception]
):
    """Whatever it raises, and whether or not the error tells a bad row from a broken store."""
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=MANY)
    settle, refused = hooks.store.settle, []

    async def settle_but_one(worker, batch, **more):
        if any(each.attempt.status == 404 and each.attempt.request_url for each in batch):
            refused.append(len(batch))
            raise error("cannot be written")
        return await settle(worker, batch, **more)

    receiver.answer = lambda body: Answer(404 if body == ODD else 200)
    hooks.store.settle = settle_but_one
    events = await publish(hooks)
    await world.until(are_delivered(hooks, MANY - 1))
    dead = await world.until_state(hooks, events[int(ODD)], State.DEAD)
    assert dead.last_status == 404, "what became of it is kept, without what was refused"
    assert len(receiver.requests) == MANY
    assert hooks.worker.settler.set_aside == 1
    # The batch with its notes and without, then one half of each halving.
    assert len(refused) <= 2 + math.ceil(math.log2(max(refused)))
    assert hooks.worker.ownership.buffers.counts == [0, 0, 0, 0]


async def test_evidence_that_the_store_refuses_is_left_out_and_the_delivery_ends_as_it_did(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=MANY)
    await refuse(hooks.store, "attempts", "response_body IS NOT NULL")
    receiver.answer = lambda body: Answer(200, body=b"thanks" if body == ODD else b"")
    with structlog.testing.capture_logs() as logged:
        events = await publish(hooks)
        await world.until(are_delivered(hooks, MANY))
    odd = await world.delivery(hooks, events[int(ODD)])
    [attempt] = await hooks.store.attempts(odd.id)
    assert (attempt.status, attempt.response_body) == (200, b"")
    assert lines(logged, "settle.without_evidence") == hooks.worker.settler.set_aside == 1
    assert "thanks" not in str(logged)
    assert len(receiver.requests) == MANY


async def test_one_that_is_refused_whatever_it_says_waits_and_is_written_when_the_store_relents(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=MANY)
    await refuse(hooks.store, "deliveries", "last_status = 299")
    receiver.answer = lambda body: Answer(299 if body == ODD else 200)
    with structlog.testing.capture_logs() as logged:
        events = await publish(hooks)
        await world.until(are_delivered(hooks, MANY - 1))
        await let_pass(world, 100)
        later = await world.pass_until(publish(hooks, 1))
        await world.until_state(hooks, later[0], State.DELIVERED)
    assert lines(logged, "settle.set_aside") == hooks.worker.settler.set_aside == 1
    assert (await world.delivery(hooks, events[int(ODD)])).state is State.PENDING
    assert len(receiver.requests) == MANY + 1, "it is not sent again"
    await relent(hooks.store, "deliveries")
    await world.until_state(hooks, events[int(ODD)], State.DELIVERED)
    assert len(receiver.requests) == MANY + 1
    assert hooks.worker.ownership.buffers.counts == [0, 0, 0, 0]


async def test_a_drain_ends_with_one_that_is_refused(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await refuse(hooks.store, "deliveries", "last_status = 299")
    receiver.answer = lambda body: Answer(299 if body == ODD else 200)
    await publish(hooks, 10)
    await world.until(are_delivered(hooks, 9))
    await world.until(lambda: hooks.worker.settler.set_aside)
    assert await world.stop(hooks)


async def test_a_strict_lane_goes_on_past_one_that_is_refused(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], ordering="strict")
    await refuse(hooks.store, "deliveries", "last_status = 299")
    receiver.answer = lambda body: Answer(299 if body == ODD else 200)
    await publish(hooks, 10)
    await world.until(are_delivered(hooks, 9))
    assert receiver.bodies() == [b"%d" % n for n in range(10)]


async def test_a_note_that_the_store_refuses_stops_no_settlement_of_anybody(world: World, receiver: Receiver):
    hooks = await world.start()
    retry = {"schedule": [0, 1, 1, 1, 1, 1, 1], "jitter": "none"}
    await hooks.create_endpoint(url=receiver.url("/bad"), events=["*"], retry=retry)
    await hooks.create_endpoint(url=receiver.url("/good"), events=["*"])
    receiver.answers["/bad"] = [Answer(500)]
    await refuse(hooks.store, "lanes", "failures > 2")
    with structlog.testing.capture_logs() as logged:
        await publish(hooks, 10)
        await world.until(are_delivered(hooks, 10))

        async def is_open() -> bool:
            lanes = hooks.worker.ownership.lanes.values()
            return any(lane.flow.circuit.state is not CircuitState.CLOSED for lane in lanes)

        await world.until(is_open)
        await world.until(lambda: not any(lane.unsettled for lane in hooks.worker.ownership.lanes.values()))
    assert lines(logged, "lane.note_refused") == 1
    assert hooks.worker.ownership.set_aside == 1
    assert hooks.worker.settler.set_aside == 0
    assert await world.stop(hooks)


async def test_a_lane_that_cannot_be_released_keeps_no_other_and_no_drain(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(
        url=receiver.url("/1"), events=["*"], rate_limit={"per_second": 100, "burst": 100}
    )
    await hooks.create_endpoint(url=receiver.url("/2"), events=["*"])
    await publish(hooks, 3)
    await world.until(are_delivered(hooks, 6))
    await refuse(hooks.store, "lanes", "tokens IS NOT NULL")
    assert await world.stop(hooks)
    assert hooks.worker.ownership.set_aside == 1


async def test_a_store_that_refuses_everything_is_waited_for_and_nothing_is_set_aside(
    world: World, receiver: Receiver
):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=20)
    settle, refusals = hooks.store.settle, []

    async def refusing(worker, batch, **more):
        if len(refusals) < 20:
            refusals.append(len(batch))
            raise StoreRefused("rights were taken away")
        return await settle(worker, batch, **more)

    hooks.store.settle = refusing
    await publish(hooks, 20)
    await world.until(are_delivered(hooks, 20))
    assert len(receiver.requests) == 20
    assert hooks.worker.settler.set_aside == 0
