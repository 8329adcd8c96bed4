"""What a process leaves behind is found by the next one."""

import asyncio

import asyncpg
import pytest
from structlog.testing import capture_logs

from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import StoreUnavailable
from hookline.model import State, WorkerId
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def test_what_was_pending_at_a_crash_is_delivered_after_the_start(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    await receiver.stop()
    event = await hooks.publish("order.paid", {"id": 1})

    async def has_failed() -> bool:
        return (await world.delivery(hooks, event.id)).attempts >= 1

    await world.until(has_failed)
    await world.crash(hooks)
    await receiver.start(receiver.port)
    hooks = await world.start()
    await world.until_state(hooks, event.id, State.DELIVERED)
    assert receiver.bodies() == [b'{"id":1}']


async def test_what_was_under_way_at_a_crash_is_sent_again(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(hold=asyncio.Event()), Answer(200)]
    event = await hooks.publish("order.paid", {"id": 1})
    await world.until(lambda: receiver.requests)
    await world.crash(hooks)
    hooks = await world.start()
    delivery = await world.until_state(hooks, event.id, State.DELIVERED)
    assert len(receiver.requests) == 2
    assert delivery.attempts == 1


async def test_a_drain_finishes_what_is_under_way_and_releases_every_lane(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    hold = asyncio.Event()
    receiver.answers["/"] = [Answer(hold=hold)]
    events = [await hooks.publish("order.paid", {"n": n}) for n in range(3)]
    await world.until(lambda: receiver.requests)
    under_way = len(receiver.requests)
    store = hooks.store
    stopping = asyncio.ensure_future(world.stop(hooks))
    await world.tick()
    hold.set()
    assert await stopping is True
    assert len(receiver.requests) == under_way, "nothing is admitted once the drain has begun"

    hooks = await world.start()
    assert await hooks.store.owned(hooks._heartbeat.id) == [] or store is not hooks.store
    receiver.answers["/"] = [Answer(200)]
    for event in events:
        await world.until_state(hooks, event.id, State.DELIVERED)
    assert sorted(receiver.bodies()) == [b'{"n":0}', b'{"n":1}', b'{"n":2}'], "and nothing is sent twice"


async def test_a_drain_that_takes_too_long_ends_and_says_so(world: World, receiver: Receiver):
    hooks = await world.start(drain_s=0.2)
    await hooks.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(hold=asyncio.Event())]
    await hooks.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    assert await world.stop(hooks) is False


async def test_publishing_processes_wake_those_that_deliver(shared_world: World, receiver: Receiver):
    world = shared_world
    api = await world.start(deliver=False)
    await api.create_endpoint(url=receiver.url(), events=["*"])
    event = await api.publish("order.paid", {"id": 1})
    await world.start()
    await world.until_state(api, event.id, State.DELIVERED)
    second = await api.publish("order.paid", {"id": 2})
    await world.until_state(api, second.id, State.DELIVERED)
    assert receiver.bodies() == [b'{"id":1}', b'{"id":2}']


async def test_two_workers_share_the_lanes_and_send_each_delivery_once(
    shared_world: World, receiver: Receiver
):
    world = shared_world
    api = await world.start(deliver=False)
    workers = [await world.start(), await world.start()]
    for n in range(20):
        await api.create_endpoint(url=receiver.url(f"/{n}"), events=["*"])
    events = [await world.pass_until(api.publish("order.paid", {"n": n})) for n in range(20)]
    await world.until(lambda: len(receiver.requests) >= 400)
    for event in events:
        for ordinal in range(20):
            await world.until_state(api, event.id, State.DELIVERED, ordinal=ordinal)
    assert len({(r.path, r.body) for r in receiver.requests}) == len(receiver.requests) == 400
    owned = [{lane.endpoint_id for lane in await w.store.owned(w._heartbeat.id)} for w in workers]
    assert not owned[0] & owned[1]


async def two_of_whom_one_hangs(world: World, receiver: Receiver) -> tuple[Hookline, Hookline, str]:
    """A worker whose first request is never answered, another one, and the event."""
    first = await world.start()
    await first.create_endpoint(url=receiver.url(), events=["*"])
    receiver.answers["/"] = [Answer(hold=asyncio.Event()), Answer(200)]
    event = await first.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    second = await world.start()
    await world.until(lambda: first._heartbeat.peers and second._heartbeat.peers)
    world.step = 0.005
    return first, second, event.id


async def seconds_until_taken_over(world: World, second: Hookline, event: str) -> float:
    died_at = world.clock.now()
    delivery = await world.until_state(second, event, State.DELIVERED)
    (attempt,) = await second.store.attempts(delivery.id)
    assert [w.id for w in (await second.store.pulse(seen=0)).workers] == [second._heartbeat.id]
    return attempt.at - died_at


async def test_a_dead_workers_lanes_are_taken_over(shared_world: World, receiver: Receiver):
    first, second, event = await two_of_whom_one_hangs(shared_world, receiver)
    with capture_logs() as lines:
        await shared_world.crash(first)
        took = await seconds_until_taken_over(shared_world, second, event)
    assert [line["by"] for line in lines if line["event"] == "worker.dead"] == ["session"]
    assert 10 / 6 <= took <= 10 / 6 + 1, "a sixth of the takeover time and at most a second more"


async def test_the_lanes_of_a_worker_that_stands_still_are_taken_over_after_its_lease(
    shared_world: World, receiver: Receiver
):
    first, second, event = await two_of_whom_one_hangs(shared_world, receiver)
    with capture_logs() as lines:
        for task in (stopped := first.worker._supervisor.tasks):
            task.cancel()
        await asyncio.gather(*stopped, return_exceptions=True)
        took = await seconds_until_taken_over(shared_world, second, event)
    assert [line["by"] for line in lines if line["event"] == "worker.dead"] == ["lease"]
    assert 8 <= took <= 10 + 2, "the takeover time since its last beat, and at most two seconds more"
    await shared_world.crash(first)


async def test_a_worker_that_reconnects_is_not_taken_for_dead(
    shared_world: World, receiver: Receiver, postgres_url: str
):
    """Nor are all of them after the database restarts: every session ends at once."""
    first, second, _ = await two_of_whom_one_hangs(shared_world, receiver)
    ids = {first._heartbeat.id, second._heartbeat.id}
    outsider = await asyncpg.connect(postgres_url)
    with capture_logs() as lines:
        for _ in range(5):
            await outsider.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'hookline pulse' AND datname = current_database()"
            )
            end = shared_world.clock.now() + 1.5
            await shared_world.until(lambda end=end: shared_world.clock.now() >= end)
    await outsider.close()
    assert not [line for line in lines if line["event"] in ("worker.dead", "worker.buried")]
    assert {first._heartbeat.id, second._heartbeat.id} == ids


async def test_a_worker_taken_for_dead_settles_nothing_and_goes_on_under_a_new_id(
    shared_world: World, receiver: Receiver
):
    world = shared_world
    first = await world.start()
    await first.create_endpoint(url=receiver.url(), events=["*"], timeout_ms=60_000)
    hold = asyncio.Event()
    receiver.answers["/"] = [Answer(500, hold=hold), Answer(200)]
    event = await first.publish("order.paid", {})
    await world.until(lambda: receiver.requests)
    second = await world.start()
    buried = first._heartbeat.id
    while True:  # it may beat between the check and the burial, and then it is not buried
        (row,) = [w for w in (await second.store.pulse(seen=0)).workers if w.id == buried]
        if await second.store.bury(buried, beat=row.beat, now=world.clock.now()):
            break
    delivery = await world.until_state(second, event.id, State.DELIVERED)
    assert delivery.attempts == 1
    hold.set()

    async def is_recorded() -> bool:
        return len(await second.store.attempts(delivery.id)) == 2

    await world.until(is_recorded)
    assert sorted((a.status, a.late) for a in await second.store.attempts(delivery.id)) == [
        (200, False),
        (500, True),
    ]
    assert first.worker.settler.late == 1
    assert first._heartbeat.id != buried
    assert (await world.delivery(second, event.id)).state is State.DELIVERED


async def test_a_start_that_failed_is_begun_again_as_another_worker(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
):
    world = shared_world
    hooks = Hookline(world.database, settings=Settings(dev=True), clock=world.clock)
    await world.pass_until(hooks.store.migrate())

    async def lost(**_: object) -> None:
        raise StoreUnavailable("The answer was lost.")

    with monkeypatch.context() as patch:
        patch.setattr(hooks.store, "sweep", lost)
        with pytest.raises(StoreUnavailable):
            await world.pass_until(hooks.start())
    first = hooks._heartbeat.id
    await world.pass_until(hooks.start())
    second = hooks._heartbeat.id
    assert await world.pass_until(hooks.stop())
    assert second != first, "the first may be buried by now, and others have watched its beat"


async def test_a_worker_that_looks_around_while_it_leaves_is_not_born_again(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
):
    world = shared_world
    hooks = await world.start()
    other = await world.start(deliver=False)
    retire = hooks.store.retire

    async def slow(worker: WorkerId) -> None:
        await retire(worker)
        await hooks._heartbeat.look()

    monkeypatch.setattr(hooks.store, "retire", slow)
    assert await world.stop(hooks) is True
    assert [w.id for w in (await other.store.pulse(seen=0)).workers] == [other._heartbeat.id]
