"""More lanes have work than a worker may hold."""

import asyncio

import pytest

from hookline.pipeline.lanes import ownership
from hookline.rules.slots import LaneHealth
from tests.receiver import Answer, Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

MANY = 12
FAILING = {"schedule": [0, *[5] * 40], "jitter": "none"}


@pytest.fixture(autouse=True)
def _few_lanes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "_MOST", 6)
    monkeypatch.setattr(ownership, "_FOR_PROVEN", 2)


async def test_a_crowd_of_hanging_endpoints_does_not_keep_a_proven_one_out(world: World, receiver: Receiver):
    hooks = await world.start()
    never = asyncio.Event()
    fine = await hooks.create_endpoint(url=receiver.url("/fine"), events=["fine"])
    await hooks.publish("fine", {})
    await world.until(lambda: receiver.bodies("/fine"))
    await world.until(lambda: not hooks.worker.ownership.lanes)
    for n in range(MANY):
        receiver.answers[f"/hang/{n}"] = [Answer(hold=never)]
        await hooks.create_endpoint(url=receiver.url(f"/hang/{n}"), events=["hang"], timeout_ms=60_000)
    for _ in range(2):
        await world.pass_until(hooks.publish("hang", {}))
    await world.until(lambda: receiver.open_requests >= 4)
    await world.pass_until(hooks.publish("fine", {}))
    before = world.clock.now()
    await world.until(lambda: len(receiver.bodies("/fine")) == 2)
    assert world.clock.now() - before < 5, f"{fine.id} waited for those that hang"
    healths = [lane.health for lane in hooks.worker.ownership.lanes.values()]
    assert len([health for health in healths if health is not LaneHealth.PROVEN]) <= 4
    never.set()


async def test_every_lane_of_a_crowd_has_its_turn(world: World, receiver: Receiver):
    hooks = await world.start()
    for n in range(MANY):
        receiver.answers[f"/{n}"] = [Answer(500)]
        await hooks.create_endpoint(url=receiver.url(f"/{n}"), events=["*"], retry=FAILING, circuit=None)
    await world.pass_until(hooks.publish("order.paid", {}))
    await world.until(lambda: all(len(receiver.bodies(f"/{n}")) >= 2 for n in range(MANY)))
    counts = [len(receiver.bodies(f"/{n}")) for n in range(MANY)]
    assert max(counts) <= 2 * min(counts) + 1, counts
