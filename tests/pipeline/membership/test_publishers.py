"""A process that only publishes takes nothing away from the one that delivers."""

import pytest

from hookline.model import State
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio


async def test_a_publisher_beside_a_worker_does_not_take_it_for_dead(world: World, receiver: Receiver):
    worker = await world.start()
    await worker.create_endpoint(url=receiver.url(), events=["*"])
    id = worker._heartbeat.id
    publisher = await world.start(deliver=False)
    event = await world.pass_until(publisher.publish("order.paid", {}))
    await world.until_state(worker, event.id, State.DELIVERED)
    listed = await world.pass_until(worker.store.list_workers(after=None, limit=10))
    assert {row.id for row in listed if not row.buried} == {id, publisher._heartbeat.id}
    assert worker._heartbeat.id == id
