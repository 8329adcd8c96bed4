"""What becomes of deliveries on a machine whose clock is wrong?"""

import pytest
from structlog.testing import capture_logs

from hookline.testing.clock import ManualClock
from tests.receiver import Receiver
from tests.world import World

pytestmark = pytest.mark.anyio

TWO_HOURS = 7_200.0


class WrongClock(ManualClock):
    """The machine's clock is off; the store's is not."""

    def __init__(self, ahead: float) -> None:
        super().__init__()
        self.ahead = ahead

    def wall(self) -> float:
        return super().wall() + self.ahead


@pytest.mark.parametrize("ahead", [TWO_HOURS, -TWO_HOURS], ids=["fast", "slow"])
async def test_it_is_said_once_and_only_receivers_notice(world: World, receiver: Receiver, ahead: float):
    clock = world.clock = WrongClock(ahead)
    with capture_logs() as lines:
        hooks = await world.start()
        await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=["*"]))
        await world.pass_until(hooks.publish("a", 1))
        await world.until(lambda: hooks.worker.settler.delivered == 1)
        began = clock.now()
        await world.until(lambda: clock.now() >= began + 5)  # many pulses
        clock.ahead = 1.0  # set right, as far as that goes
        await world.until(lambda: any(line["event"] == "clock.agrees" for line in lines))
    said = [line for line in lines if line["event"].startswith("clock.")]
    assert [line["event"] for line in said] == ["clock.skewed", "clock.agrees"]
    assert said[0]["ahead_s"] == ahead
    assert "NTP" in said[0]["note"]
    [request] = receiver.requests
    assert abs(int(request.headers["webhook-timestamp"]) - clock.now() - ahead) < 60


@pytest.mark.parametrize("ahead", [29.0, -29.0])
async def test_a_few_seconds_are_nothing_to_speak_of(world: World, ahead: float):
    world.clock = WrongClock(ahead)
    with capture_logs() as lines:
        await world.start()
        began = world.clock.now()
        await world.until(lambda: world.clock.now() >= began + 2)
    assert [line for line in lines if line["event"].startswith("clock.")] == []
