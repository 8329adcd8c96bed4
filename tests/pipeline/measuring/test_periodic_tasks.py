"""Each periodic task has its turn, whatever happens to the others."""

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import structlog

from hookline.errors import StorageFull, StoreRefused, StoreUnavailable
from hookline.pipeline.measuring.periodic_tasks import AFTER_A_FAILURE, TIMES_AS_LONG, PeriodicTasks
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio


class Scene:
    """Tasks on a clock that stands still, and what they did."""

    def __init__(self) -> None:
        self.clock = ManualClock(0.0)
        self.done: list[tuple[str, float]] = []
        self.refused: list[Exception] = []
        self.tasks = PeriodicTasks(self.clock, on_refused=self.refused.append)

    def add(self, name, every, *, wants=None, error=None, takes=0.0):
        async def work():
            self.done.append((name, self.clock.monotonic()))
            self.clock.advance(takes)
            if error is not None:
                raise error
            return wants

        self.tasks.add(name, every, work)

    @asynccontextmanager
    async def running(self):
        loop = asyncio.create_task(self.tasks.run())
        await settle()
        yield
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)

    async def seconds(self, count, *, step=1.0):
        for _ in range(count):
            self.clock.advance(step)
            await settle()

    def times(self, name):
        return [at for done, at in self.done if done == name]


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_task_runs_at_once_and_then_at_its_interval():
    scene = Scene()
    scene.add("look", 5.0)
    scene.add("roll", 3.0)
    async with scene.running():
        await scene.seconds(12)
    assert scene.times("look") == [0, 5, 10]
    assert scene.times("roll") == [0, 3, 6, 9, 12]


async def test_a_task_says_itself_when_it_is_wanted_again():
    scene = Scene()
    scene.add("look", 5.0, wants=2.0)
    async with scene.running():
        await scene.seconds(6)
    assert scene.times("look") == [0, 2, 4, 6]


async def test_a_task_that_always_has_more_to_do_keeps_no_other_from_its_turn():
    scene = Scene()
    scene.add("greedy", 5.0, wants=0.0)
    scene.add("modest", 1.0)
    async with scene.running():
        await scene.seconds(3)
    assert scene.times("modest") == [0, 1, 2, 3]
    assert len(scene.times("greedy")) > 4


@pytest.mark.parametrize(
    "error", [ValueError("unforeseen"), StoreRefused("no"), StorageFull("full"), StoreUnavailable("away")]
)
async def test_a_task_that_fails_is_tried_again_soon_and_delays_no_other(error):
    scene = Scene()
    scene.add("failing", 300.0, error=error)
    scene.add("other", 2.0)
    with structlog.testing.capture_logs() as logged:
        async with scene.running():
            await scene.seconds(4)
    assert scene.times("failing") == [AFTER_A_FAILURE * n for n in range(5)]
    assert scene.times("other") == [0, 2, 4]
    said = [line["event"] for line in logged if line["log_level"] != "debug"]
    assert said == (["task.failed"] if isinstance(error, ValueError) else [])
    assert scene.refused == ([error] * 5 if isinstance(error, StoreRefused | StorageFull) else [])


async def test_a_task_that_takes_long_to_fail_rests_ever_longer():
    """The first time a lock may have held it up, and be gone."""
    scene = Scene()
    scene.add("slow", 5.0, error=StoreUnavailable("it took too long"), takes=1.0)
    async with scene.running():
        await scene.seconds(100)
    rests = [later - earlier - 1 for earlier, later in pairwise(scene.times("slow"))]
    assert rests[:7] == [1, 2, 4, 8, 16, TIMES_AS_LONG, TIMES_AS_LONG]


async def test_a_task_that_works_again_and_then_fails_is_logged_again():
    scene = Scene()
    failures = [ValueError("first"), None, ValueError("second"), ValueError("third")]

    async def work():
        error = failures.pop(0) if failures else None
        if error is not None:
            raise error
        return 1.0

    scene.tasks.add("flickering", 1.0, work)
    with structlog.testing.capture_logs() as logged:
        async with scene.running():
            await scene.seconds(6)
    assert [line["event"] for line in logged] == ["task.failed", "task.failed"]
