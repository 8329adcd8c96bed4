"""A process looks sooner than its next poll when another one sends a hint.

The test's clock hardly moves: what happens within a fraction of the poll was not found by polling.
"""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from structlog.testing import capture_logs

from hookline.app import Hookline
from hookline.store.postgres.driver.notify import CHANNEL
from tests.deaf_proxy import deaf
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

POLL = 60.0
QUIET = 3.0  # after which a lane is polled no more often than that; it is released after 15
SOON = 2.0  # long before the poll
A_MOMENT = 0.1  # less than half of the time between two takes or pulses
# The test's time per poll, of which there are at most a thousand in a real second: the database works in real time.
SLOWLY = 0.0002
VERY_SLOWLY = 0.00002


async def advance(world: World, seconds: float) -> None:
    end = world.clock.now() + seconds
    await world.until(lambda: world.clock.now() >= end)


async def hears(url: str, count: int = 1) -> bool:
    """Do so many processes listen?"""
    connection = await asyncpg.connect(url)
    try:
        found = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hookline listen' "
            "AND datname = current_database() AND state = 'idle' AND query LIKE 'LISTEN%'"
        )
    finally:
        await connection.close()
    return bool(found == count)


async def owner_and_publisher(
    world: World, receiver: Receiver, *, notify: bool = True
) -> tuple[Hookline, Hookline]:
    """A worker that owns a quiet lane, and a process that only publishes."""
    owner = await world.start(poll_s=POLL, notify=notify)
    publisher = await world.start(deliver=False, notify=notify)
    await world.pass_until(owner.create_endpoint(url=receiver.url(), events=["*"]))
    await world.pass_until(owner.publish("a", "first"))
    await world.until(lambda: owner.worker.settler.delivered == 1)
    if notify:
        await world.until(lambda: hears(world.database))
    await advance(world, QUIET)
    assert len(owner.worker.ownership.lanes) == 1
    return owner, publisher


async def seconds_until_received(world: World, receiver: Receiver, count: int) -> float:
    began = world.clock.now()
    await world.until(lambda: len(receiver.requests) >= count)
    return world.clock.now() - began


async def test_the_owner_of_a_lane_is_told_what_another_process_accepted(
    shared_world: World, receiver: Receiver
):
    _, publisher = await owner_and_publisher(shared_world, receiver)
    shared_world.step = SLOWLY
    await shared_world.pass_until(publisher.publish("a", "second"))
    assert await seconds_until_received(shared_world, receiver, 2) < SOON


async def test_without_hints_it_is_found_by_polling(shared_world: World, receiver: Receiver):
    _, publisher = await owner_and_publisher(shared_world, receiver, notify=False)
    await shared_world.pass_until(publisher.publish("a", "second"))
    assert await seconds_until_received(shared_world, receiver, 2) > SOON
    assert receiver.bodies() == [b'"first"', b'"second"']


async def test_a_free_lane_is_taken_when_another_process_wakes_it(shared_world: World, receiver: Receiver):
    worker = await shared_world.start()
    publisher = await shared_world.start(deliver=False)
    times = range(1, 4)  # one could be found in time by accident
    for n in times:
        await shared_world.pass_until(publisher.create_endpoint(url=receiver.url(), events=[f"t{n}"]))
    await shared_world.until(lambda: hears(shared_world.database))
    await advance(shared_world, 1.0)
    for n in times:
        assert len(worker.worker.ownership.lanes) == n - 1
        shared_world.step = VERY_SLOWLY
        await shared_world.pass_until(publisher.publish(f"t{n}", n))
        assert await seconds_until_received(shared_world, receiver, n) < A_MOMENT
        shared_world.step = 0.05
        await advance(shared_world, 1.0)


async def test_a_hint_that_is_lost_costs_a_poll_and_nothing_else(shared_world: World, receiver: Receiver):
    _, publisher = await owner_and_publisher(shared_world, receiver)
    stranger = await asyncpg.connect(shared_world.database)
    await stranger.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hookline listen' "
        "AND datname = current_database()"
    )
    await stranger.close()
    shared_world.step = 0.0  # nobody listens again before time moves
    await shared_world.until(lambda: hears(shared_world.database, 0))
    await shared_world.pass_until(publisher.publish("a", "second"))
    await shared_world.until(lambda: not publisher.worker.handover.wakes._waiting)
    shared_world.step = 0.05
    assert await seconds_until_received(shared_world, receiver, 2) > 0.2
    assert receiver.bodies() == [b'"first"', b'"second"']
    # It listens again, and gets hints as before.
    await shared_world.until(lambda: hears(shared_world.database))
    await advance(shared_world, QUIET)
    shared_world.step = SLOWLY
    await shared_world.pass_until(publisher.publish("a", "third"))
    assert await seconds_until_received(shared_world, receiver, 3) < SOON


async def test_where_nothing_can_be_heard_it_is_said_once_and_polling_goes_on(
    postgres_url: str, receiver: Receiver
):
    async with deaf(postgres_url) as url:
        world = World(url)
        try:
            with capture_logs() as lines:
                worker = await world.start()
                worker.store.probe_timeout = 0.2  # type: ignore[attr-defined]
                publisher = await world.start(deliver=False)
                await world.pass_until(publisher.create_endpoint(url=receiver.url(), events=["*"]))
                await world.until(lambda: any(line["event"] == "hints.unheard" for line in lines))
                await advance(world, 70.0)
                await world.pass_until(publisher.publish("a", 1))
                await world.until(lambda: receiver.bodies() == [b"1"])
            said = [line for line in lines if line["event"].startswith("hints.")]
            assert [line["log_level"] for line in said] == ["warning"]
            assert "database URL" in said[0]["error"]
        finally:
            await world.close()


@pytest.fixture
async def notifications(postgres_url: str) -> AsyncIterator[list[str]]:
    """The texts of all notifications that are sent."""
    heard: list[str] = []
    connection = await asyncpg.connect(postgres_url)
    await connection.add_listener(CHANNEL, lambda *found: heard.append(found[3]))
    yield heard
    await connection.close()


async def test_a_storm_of_publishes_is_a_few_hints_a_second(
    shared_world: World, receiver: Receiver, notifications: list[str]
):
    _, publisher = await owner_and_publisher(shared_world, receiver)
    notifications.clear()
    shared_world.step = 0.002  # so that many publishes fall between two hints
    began = shared_world.clock.now()
    for n in range(150):
        await shared_world.pass_until(publisher.publish("a", n))
    await shared_world.until(lambda: len(receiver.requests) == 151)
    took = shared_world.clock.now() - began
    assert 1 <= len(notifications) <= took / 0.2 + 1


async def test_a_process_that_delivers_for_itself_sends_none(
    shared_world: World, receiver: Receiver, notifications: list[str]
):
    owner, _ = await owner_and_publisher(shared_world, receiver)
    await shared_world.start()
    notifications.clear()
    for n in range(20):
        await shared_world.pass_until(owner.publish("a", n))
    await shared_world.until(lambda: len(receiver.requests) == 21)
    await advance(shared_world, 1.0)
    assert [text for text in notifications if not text.startswith("probe ")] == []


async def test_nobody_is_told_where_nobody_else_delivers(
    shared_world: World, receiver: Receiver, notifications: list[str]
):
    publisher = await shared_world.start(deliver=False)
    await shared_world.pass_until(publisher.create_endpoint(url=receiver.url(), events=["*"]))
    await shared_world.pass_until(publisher.publish("a", 1))
    await advance(shared_world, 1.0)
    assert notifications == []


async def test_the_owner_is_told_of_a_change(shared_world: World, receiver: Receiver):
    owner, publisher = await owner_and_publisher(shared_world, receiver)
    for n in range(3):  # one could be found in time by accident
        await advance(shared_world, 1.0)
        seen = owner._catalogue.n
        shared_world.step = VERY_SLOWLY
        await shared_world.pass_until(publisher.create_endpoint(url=receiver.url(), events=[f"t{n}"]))
        began = shared_world.clock.now()
        await shared_world.until(lambda seen=seen: owner._catalogue.n > seen)
        assert shared_world.clock.now() - began < A_MOMENT
        shared_world.step = 0.05
