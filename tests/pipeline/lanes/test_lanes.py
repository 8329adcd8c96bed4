"""Lanes keep their promises however much there is to send."""

import asyncio

import msgspec
import pytest

from hookline.model import Reason, State
from hookline.pipeline.intake.drafts import Draft
from hookline.rules.slots import LaneHealth
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def publish_many(hooks, number: int, *, type: str = "order.paid"):
    drafts = [Draft(type, msgspec.json.encode({"n": n})) for n in range(number)]
    return await hooks.accept(drafts)


async def test_a_backlog_larger_than_every_buffer_is_sent_whole_and_once(world: World, receiver: Receiver):
    hooks = await world.start(max_in_flight=10)
    for n in range(3):
        await hooks.create_endpoint(url=receiver.url(f"/{n}"), events=["*"])
    for _ in range(4):
        await publish_many(hooks, 100)
    await world.until(lambda: len(receiver.requests) >= 1_200)

    async def is_settled() -> bool:
        return (await hooks.store.counts()).get(State.PENDING, 0) == 0

    await world.until(is_settled)
    assert (await hooks.store.counts())[State.DELIVERED] == 1_200
    assert len(receiver.requests) == 1_200
    assert hooks.worker.ownership.buffers.counts == [0, 0, 0, 0]
    assert hooks.worker.dispatcher.in_flight == 0


async def test_an_endpoint_has_no_more_requests_open_than_it_allows(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], max_in_flight=3)
    hold = asyncio.Event()
    receiver.answers["/"] = [Answer(200)] * 4 + [Answer(200, hold=hold)]
    await publish_many(hooks, 40)
    await world.until(lambda: receiver.open_requests == 3)
    for _ in range(20):
        await world.tick()
    assert receiver.open_requests == receiver.most_open_requests == 3
    hold.set()
    await world.until(lambda: len(receiver.requests) == 40)
    assert receiver.most_open_requests == 3


async def test_endpoints_that_hang_leave_slots_to_those_that_answer(world: World, receiver: Receiver):
    hooks = await world.start(max_in_flight=8)
    never = asyncio.Event()
    for n in range(30):
        receiver.answers[f"/hang/{n}"] = [Answer(hold=never)]
        await hooks.create_endpoint(url=receiver.url(f"/hang/{n}"), events=["hang"])
    await hooks.create_endpoint(url=receiver.url("/fine"), events=["fine"])
    await publish_many(hooks, 1, type="fine")
    await world.until(lambda: receiver.bodies("/fine"))
    await publish_many(hooks, 5, type="hang")
    await world.until(lambda: receiver.open_requests >= 4)
    await publish_many(hooks, 50, type="fine")
    await world.until(lambda: len(receiver.bodies("/fine")) == 51)
    assert receiver.open_requests <= 4, "untried lanes have half the slots"
    never.set()


async def test_a_quiet_lane_is_released_and_found_again(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    first = await hooks.publish("order.paid", {})
    await world.until_state(hooks, first.id, State.DELIVERED)
    assert hooks.worker.ownership.lanes
    await world.until(lambda: not hooks.worker.ownership.lanes)
    assert await hooks.store.owned(hooks._heartbeat.id) == []
    second = await world.pass_until(hooks.publish("order.paid", {}))
    await world.until_state(hooks, second.id, State.DELIVERED)


async def test_a_disabled_endpoints_deliveries_wait_until_it_is_enabled(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    await world.pass_until(hooks.update_endpoint(endpoint.id, enabled=False))
    await world.until(lambda: not hooks.worker.ownership.lanes)
    before = len(receiver.requests)
    for _ in range(50):
        await world.tick(10.0)
    assert len(receiver.requests) == before
    receiver.answers["/"] = [Answer(200)]
    await world.pass_until(hooks.update_endpoint(endpoint.id, enabled=True))
    await world.until_state(hooks, event.id, State.DELIVERED)


async def test_a_deleted_endpoints_deliveries_are_cancelled(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})

    async def has_failed() -> bool:
        return (await world.delivery(hooks, event.id)).attempts >= 1

    await world.until(has_failed)
    await world.pass_until(hooks.delete_endpoint(endpoint.id))
    delivery = await world.until_state(hooks, event.id, State.CANCELLED)
    assert delivery.reason is Reason.ENDPOINT_DELETED
    again = await hooks.publish("order.paid", {})
    assert again.deliveries == 0


async def test_a_changed_url_holds_for_the_next_attempt(world: World, receiver: Receiver):
    hooks = await world.start()
    endpoint = await hooks.create_endpoint(url=receiver.url("/old"), events=["*"])
    receiver.answers["/old"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    await world.pass_until(hooks.update_endpoint(endpoint.id, url=receiver.url("/new")))
    await world.until_state(hooks, event.id, State.DELIVERED)
    assert receiver.requests[-1].path == "/new"


async def test_a_change_by_another_process_reaches_the_owner(shared_world: World, receiver: Receiver):
    world = shared_world
    hooks, api = await world.start(), await world.start(deliver=False)
    endpoint = await hooks.create_endpoint(url=receiver.url("/old"), events=["*"])
    receiver.answers["/old"] = [Answer(500)]
    event = await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    await world.pass_until(api.update_endpoint(endpoint.id, url=receiver.url("/new")))
    await world.until_state(hooks, event.id, State.DELIVERED)
    assert receiver.requests[-1].path == "/new"


async def test_cancelled_and_redriven_deliveries_are_seen_by_the_owner(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(404)]
    event = await hooks.publish("order.paid", {"id": 1})
    dead = await world.until_state(hooks, event.id, State.DEAD)
    receiver.answers["/"] = [Answer(200)]
    await hooks.store.redrive(dead.id, now=world.clock.now())
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    assert (delivery.replays, delivery.attempts) == (1, 1)
    assert delivery.last_death is not None
    assert receiver.bodies() == [b'{"id":1}'] * 2


async def pass_slowly(world: World) -> None:
    for _ in range(15):
        await world.tick()


async def slowly(world: World, receiver: Receiver, hooks, path: str, type: str) -> None:
    """One event that is answered after more than half a second."""
    hold = asyncio.Event()
    receiver.answers[path] = [Answer(hold=hold)]
    sent = len(receiver.bodies(path))
    event = await hooks.publish(type, {})
    await world.until(lambda: len(receiver.bodies(path)) > sent)
    await pass_slowly(world)
    hold.set()
    await world.until_state(hooks, event.id, State.DELIVERED)


async def test_a_lane_that_answers_quickly_again_leaves_the_line_of_the_slow_ones(
    world: World, receiver: Receiver
):
    hooks = await world.start(max_in_flight=8)  # slow lanes may use four of them
    for name in ("hang", "a"):
        await hooks.create_endpoint(
            url=receiver.url(f"/{name}"), events=[name], max_in_flight=4, timeout_ms=60_000
        )
    for _ in range(3):
        await slowly(world, receiver, hooks, "/hang", "hang")
    receiver.answers["/hang"] = [Answer(hold=asyncio.Event())]
    await publish_many(hooks, 4, type="hang")
    for n in range(3):
        event = await hooks.publish("a", n)
        await world.until_state(hooks, event.id, State.DELIVERED)
    slow, quick = asyncio.Event(), asyncio.Event()
    receiver.answers["/a"] = [Answer(hold=slow)] * 3 + [Answer(hold=quick), Answer(200)]
    await publish_many(hooks, 3, type="a")
    await world.until(lambda: receiver.open_requests == 7)
    await pass_slowly(world)
    world.step = 0.002
    await hooks.publish("a", "the quick one")
    await world.until(lambda: receiver.open_requests == 8)
    slow.set()
    (lane,) = [
        lane for lane in hooks.worker.ownership.lanes.values() if lane.prepared.endpoint.url.endswith("/a")
    ]
    await world.until(lambda: lane.health is LaneHealth.SLOW and not lane.unsettled)
    await hooks.publish("a", "the last one")
    await world.until(lambda: lane in hooks.worker.dispatcher.waiting)
    quick.set()
    await world.until(lambda: len(receiver.bodies("/a")) == 8)
    assert hooks.worker.dispatcher._used[LaneHealth.SLOW] == 4, "it did not wait for those that hang"
