"""A wall clock that is wrong is said to be, and that is all it does."""

import pytest
import structlog

from hookline.testing.clock import ManualClock
from tests.world import World

pytestmark = pytest.mark.anyio


class WrongClock(ManualClock):
    ahead = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead


async def test_a_wall_clock_that_is_far_off_is_said_once_until_it_is_right_again(world: World):
    clock = world.clock = WrongClock()
    await world.start()
    with structlog.testing.capture_logs() as logs:

        def said() -> list[int]:
            return [line["ahead_s"] for line in logs if line["event"] == "clock.skewed"]

        clock.ahead = -20.0  # not worth a word
        for _ in range(20):
            await world.tick()
        assert said() == []
        clock.ahead = 3_600.0
        await world.until(said)
        for _ in range(20):
            await world.tick()
        assert said() == [3_600]
        clock.ahead = 0.0
        for _ in range(20):
            await world.tick()
        clock.ahead = -600.0
        await world.until(lambda: len(said()) > 1)
        assert said() == [3_600, -600]
