"""Readiness is found out by trying, once for all who ask, and follows what happens within two seconds."""

import asyncio

import pytest
from structlog.testing import capture_logs

from hookline.errors import StoreUnavailable
from hookline.pipeline.intake.readiness import Readiness
from hookline.rules.readiness import RECENT, Publishing
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio


class Trials:
    """A store whose trial commits end when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.error: StoreUnavailable | None = None
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def try_accept(self, *, now: float) -> None:
        self.begun += 1
        await self.goes_on.wait()
        if self.error is not None:
            raise self.error


class Scene:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = Trials()
        self.publishing = Publishing()
        self.is_alive = True
        self.readiness = Readiness(
            self.store,  # type: ignore[arg-type]  # the one verb that is used
            self.clock,
            publishing=lambda: self.publishing,
            is_alive=lambda: self.is_alive,
        )

    async def ask(self) -> str | None:
        return await self.clock.pass_until(self.readiness.fault())


async def test_a_good_trial_speaks_for_a_moment_and_is_shared_by_all_who_ask():
    scene = Scene()
    assert await asyncio.gather(*(scene.readiness.fault() for _ in range(20))) == [None] * 20
    assert scene.store.begun == 1
    scene.clock.advance(RECENT)
    assert await scene.ask() is None
    assert scene.store.begun == 2


async def test_nothing_is_tried_while_commits_tell():
    scene = Scene()
    scene.publishing = Publishing(committed_at=scene.clock.monotonic())
    assert await scene.ask() is None
    scene.publishing = Publishing(waiting_since=scene.clock.monotonic() - 5)
    assert "waiting" in (await scene.ask() or "")
    assert scene.store.begun == 0


async def test_a_trial_that_hangs_is_said_to_and_not_repeated_and_its_end_is_seen_at_once():
    scene = Scene()
    assert await scene.ask() is None
    scene.store.goes_on.clear()
    scene.clock.advance(RECENT)
    asked = asyncio.create_task(scene.readiness.fault())
    while scene.store.begun < 2:  # noqa: ASYNC110 - it is some steps of the loop away
        await asyncio.sleep(0)
    scene.clock.advance(2 - RECENT)  # in two seconds at the latest
    assert await asked == "a commit has been waiting for 1.5 s"
    for _ in range(10):
        assert await scene.readiness.fault() is not None  # at once
    assert scene.store.begun == 2
    scene.store.goes_on.set()
    while scene.readiness._trial is not None:  # noqa: ASYNC110 - it is one step of the loop away
        await asyncio.sleep(0)
    assert await scene.ask() is None
    await scene.readiness.close()


async def test_a_trial_that_is_refused_is_the_reason_and_is_tried_again():
    scene = Scene()
    scene.store.error = StoreUnavailable("the table is locked")
    assert await scene.readiness.fault() == "the table is locked"
    assert await scene.readiness.fault() == "the table is locked"
    assert scene.store.begun == 1
    scene.store.error = None
    scene.clock.advance(0.2)
    assert await scene.ask() is None


async def test_a_dead_heartbeat_is_not_tried():
    scene = Scene()
    scene.is_alive = False
    assert await scene.ask() is not None
    assert scene.store.begun == 0


async def test_the_log_has_each_change_once():
    scene = Scene()
    with capture_logs() as lines:
        for is_alive in (True, False, False, True, True):
            scene.is_alive = is_alive
            await scene.ask()
    assert [line["event"] for line in lines] == ["readiness.lost", "readiness.regained"]


async def test_a_trial_under_way_is_given_up_at_the_stop():
    scene = Scene()
    scene.store.goes_on.clear()
    assert await scene.ask() is not None
    await scene.readiness.close()
    assert scene.readiness._trial is None
