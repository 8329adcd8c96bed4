"""An older note of a lane cannot overwrite a newer one."""

import asyncio

import pytest

from hookline.model import CircuitState, State
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

CIRCUIT = {"consecutive_failures": 1, "cooldown_s": 1, "max_cooldown_s": 1}


class Gatekeeper:
    """Lets calls of the store begin one by one, as the test says."""

    def __init__(self, call):
        self._call = call
        self._is_open = False
        self.waiting: list[asyncio.Event] = []

    async def __call__(self, *given, **named):
        turn = asyncio.Event()
        self.waiting.append(turn)
        if not self._is_open:
            await turn.wait()
        return await self._call(*given, **named)

    def open(self):
        """Let all begin that wait, and all that come: upkeep writes notes too, and others wait for its turn."""
        self._is_open = True
        for turn in self.waiting:
            turn.set()


async def only_lane(world: World, hooks):
    await world.until(lambda: hooks.worker.ownership.lanes)
    (lane,) = hooks.worker.ownership.lanes.values()
    return lane


async def test_a_second_note_of_a_lane_waits_for_the_first(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], circuit=CIRCUIT)
    event = await hooks.publish("order.paid", "takes the lane")
    await world.until_state(hooks, event.id, State.DELIVERED)
    lane = await only_lane(world, hooks)
    write_notes = hooks.worker.ownership.notes.write
    hooks.store.note = notes = Gatekeeper(hooks.store.note)
    lane.flow.wait_out(world.clock.now() + 1)
    lane.flow.changed()
    older = asyncio.create_task(write_notes([lane]))
    while not notes.waiting:  # noqa: ASYNC110 - it comes with the next steps of the loop
        await asyncio.sleep(0)
    lane.flow.begin_probe()
    newer = asyncio.create_task(write_notes([lane]))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(notes.waiting) == 1
    notes.waiting[0].set()
    while len(notes.waiting) < 2:  # noqa: ASYNC110 - time stands still: a lane that is held back would be released
        await asyncio.sleep(0)
    notes.open()
    assert await older == [lane.endpoint_id]
    await newer
    (stored,) = await hooks.store.owned(hooks.worker._heartbeat.id)
    assert stored.circuit.state is CircuitState.HALF_OPEN


async def test_a_settle_waits_for_the_note_of_its_lane(world: World, receiver: Receiver):
    hooks = await world.start()
    await hooks.create_endpoint(url=receiver.url(), events=["*"], circuit=CIRCUIT)
    event = await hooks.publish("order.paid", "takes the lane")
    await world.until_state(hooks, event.id, State.DELIVERED)
    lane = await only_lane(world, hooks)
    answer = asyncio.Event()
    receiver.answers["/"] = [Answer(status=500, hold=answer)]
    await hooks.publish("order.paid", "trips the circuit")
    await world.until(lambda: receiver.open_requests)
    hooks.store.note = notes = Gatekeeper(hooks.store.note)
    lane.flow.changed()
    noting = asyncio.create_task(hooks.worker.ownership.notes.write([lane]))
    while not notes.waiting:  # noqa: ASYNC110 - it comes with the next steps of the loop
        await asyncio.sleep(0)
    answer.set()
    await world.until(lambda: lane.unsettled)
    await world.tick(1.0)
    await world.tick(1.0)
    assert lane.unsettled == 1
    notes.open()
    await world.until(lambda: not lane.unsettled)
    await noting
    (stored,) = await hooks.store.owned(hooks.worker._heartbeat.id)
    assert stored.circuit.state is CircuitState.OPEN
