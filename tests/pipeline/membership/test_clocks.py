"""A wrong wall clock causes a warning and nothing else."""

from datetime import UTC, datetime

import pytest
import structlog

from hookline.clock import carried
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

        clock.ahead = -20.0  # too small for a warning
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


class FollowingClock(ManualClock):
    """Follows the store's time as the real one does; the machine's clock is off by so much."""

    def __init__(self, *, error: float) -> None:
        super().__init__()
        self.error = error
        self.follow(self.wall(), at=self.monotonic())

    def wall(self) -> float:
        return super().wall() + self.error

    def now(self) -> float:
        return self._store_now + (self.monotonic() - self._at) * self._rate

    def follow(self, store_now: float, *, at: float, ahead: float = 0.0, rate: float = 1.0) -> None:
        self._store_now, self._at, self._ahead, self._rate = store_now, at, ahead, rate

    def due(self, moment: float) -> float:
        return carried(moment, now=self.now(), ahead=self._ahead, rate=self._rate)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("was_ahead", [600.0, 300 * 86_400.0])
async def test_a_run_with_a_clock_that_was_ahead_makes_nothing_due_in_the_next(world, receiver, was_ahead):
    clock = world.clock = FollowingClock(error=was_ahead)
    first = await world.start()
    for _ in range(60):  # a beat writes the time
        await world.tick()
    await world.stop(first)
    clock.error = 0.0  # set right between two runs
    with structlog.testing.capture_logs() as logs:
        hooks = await world.start()
        assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["store.ahead"]
    await world.pass_until(hooks.create_endpoint(url=receiver.url(), events=["*"]))
    deliver_at = datetime.fromtimestamp(clock.wall() + 60, UTC)
    await world.pass_until(hooks.publish("later", 1, deliver_at=deliver_at))
    await world.pass_until(hooks.publish("now", 2))
    await world.until(lambda: receiver.requests)
    while clock.wall() < deliver_at.timestamp() - 1:
        await world.tick()
    assert len(receiver.requests) == 1
    await world.until(lambda: len(receiver.requests) == 2)
    assert clock.wall() >= deliver_at.timestamp()
