"""The kit's hookline is a whole one, and waiting for it ends when it should."""

import asyncio
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hookline import HooklineClient, SyncHooklineClient
from hookline.client import NewEvent
from hookline.errors import HooklineError
from hookline.testing import Answer, ManualClock, WebhookReceiver, running_hookline, serving_hookline
from server_process import environment
from tests import receiver as receiving
from tests.receiver import Receiver

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str | None:
    """None: a file of its own."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["real clock", "manual clock"])
def clock(request: pytest.FixtureRequest) -> ManualClock | None:
    return ManualClock() if request.param == "manual clock" else None


@pytest.fixture
def receiver():
    with WebhookReceiver() as receiver:
        yield receiver


async def test_everything_is_settled_retries_and_deaths_included(database, clock, receiver):
    async with running_hookline(database, clock=clock) as hooks:
        await hooks.subscribe(receiver, "good.*", path="good")
        receiver.answer(500, Answer(hang_up=True), 503)
        retried = await hooks.publish("good.one", {"id": 1})
        await hooks.settled()
        assert await hooks.deliveries_of(retried.id) == {"delivered": 1}
        receiver.answer(400)
        rejected = await hooks.publish("good.two", {"id": 2})
        await hooks.settled()
        assert await hooks.deliveries_of(rejected.id) == {"dead": 1}
        assert [each.status for each in receiver.requests] == [500, None, 503, 200, 400]
        assert {each.path for each in receiver.requests} == {"/good"}


async def test_the_api_answers_in_process(receiver):
    async with running_hookline() as hooks, HooklineClient(hooks.url) as client:
        created = await client.create_endpoint(receiver.url, ["*"], signing="classic")
        receiver.trust(created.secret)
        await client.publish_many([NewEvent(type="a", payload=n) for n in range(50)])
        assert len(await receiver.arrived(50)) == 50
        await hooks.settled()
        assert {each.state async for each in client.deliveries()} == {"delivered"}
    assert sorted(each.json() for each in receiver.requests) == list(range(50))


async def test_what_is_scheduled_for_later_is_not_waited_for(receiver):
    clock = ManualClock()
    async with running_hookline(clock=clock) as hooks:
        await hooks.subscribe(receiver)
        tomorrow = datetime.fromtimestamp(clock.now(), UTC) + timedelta(days=1)
        await hooks.publish("a", 1, deliver_at=tomorrow)
        await hooks.settled()
        receiver.assert_nothing_received()
        clock.advance(86_400)
        await hooks.settled()
        receiver.assert_received("a", 1)


async def test_days_of_retries_pass_at_once_on_a_manual_clock(receiver):
    clock = ManualClock()
    async with running_hookline(clock=clock, retry="patient") as hooks:
        await hooks.subscribe(receiver, circuit=None)
        receiver.answer(*[500] * 7)
        event = await hooks.publish("a", 1)
        await hooks.settled()
        assert await hooks.deliveries_of(event.id) == {"dead": 1}
        assert len(receiver.requests) == 7


async def test_a_request_under_way_is_given_real_time_to_be_answered():
    answered = asyncio.Event()
    receiver = Receiver()
    receiver.answers["/"] = [receiving.Answer(hold=answered)]
    await receiver.start()

    class Looks(ManualClock):
        """Lets the receiver have its turn after so many looks, as a busy machine does."""

        looks = 0

        async def tick(self, *arguments):
            self.looks += bool(receiver.requests)
            if self.looks == 100:
                answered.set()
            await super().tick(*arguments)

    async with running_hookline(clock=Looks()) as hooks:
        await hooks.create_endpoint(url=receiver.url(), events=["*"])
        await hooks.publish("a", 1)
        await hooks.settled()
        assert len(receiver.requests) == 1
    await receiver.stop()


async def test_what_does_not_settle_is_named_with_what_it_waits_for(clock, receiver):
    async with running_hookline(clock=clock) as hooks:
        await hooks.subscribe(receiver, paused=True)
        event = await hooks.publish("order.paid", 1)
        with pytest.raises(AssertionError) as raised:
            await hooks.settled(within=0.1)
        assert f"order.paid {event.id}: 0 of 5 attempts" in str(raised.value)
        assert "waiting for paused" in str(raised.value)


async def test_two_hooklines_know_nothing_of_each_other(receiver):
    async with running_hookline() as one, running_hookline() as another:
        await one.subscribe(receiver)
        assert (await another.publish("a", 1)).deliveries == 0
        assert (await one.publish("a", 1)).deliveries == 1
        await one.settled()


async def test_settings_are_those_of_hookline():
    async with running_hookline(payload_limit_bytes=10) as hooks:
        with pytest.raises(HooklineError, match="10 bytes"):
            await hooks.publish("a", "more than ten")


def test_a_server_on_a_thread_is_called_without_an_event_loop(receiver):
    with serving_hookline() as server, SyncHooklineClient(server.url) as client:
        server.subscribe(receiver, "order.*")
        receiver.answer(503)
        event = client.publish("order.paid", {"id": 42})
        assert len(receiver.wait(2)) == 2
        server.settle()
        assert server.deliveries_of(event.id) == {"delivered": 1}


def test_a_server_that_cannot_start_says_why(tmp_path):
    with pytest.raises(HooklineError), serving_hookline(f"sqlite:///{tmp_path}/no/such/folder/hooks.db"):
        raise AssertionError("it must not start")


def test_a_failing_test_is_not_held_up_and_keeps_its_error():
    class TheirsError(Exception):
        pass

    with pytest.raises(TheirsError), serving_hookline():
        raise TheirsError
    with pytest.raises(TheirsError):
        asyncio.run(fail_inside(TheirsError))


async def fail_inside(kind: type[Exception]) -> None:
    async with running_hookline(clock=ManualClock()):
        raise kind


def test_the_example_of_an_application_s_tests_passes(tmp_path):
    copy = shutil.copy(ROOT / "examples/test_my_app.py", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", str(copy)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
