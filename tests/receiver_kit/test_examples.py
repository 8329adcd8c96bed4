"""The examples receive from a real hookline, each run by the command that is printed in it."""

import asyncio
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from hookline.app import Hookline
from hookline.config import Settings
from hookline.ids import delivery_of, read
from hookline.model import Attempt, Delivery, EventId, Outcome, Reason, State
from receiver_kit.signed import secret_of, standard
from server_process import environment

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SECRET = secret_of("e")
CEILING_S = 60.0


class Example:
    """An example in a process of its own, on a port that it chose."""

    def __init__(self, name: str, folder: Path) -> None:
        self._database = folder / "orders.db"
        self._output = folder / "output"
        command = re.search(r"^    SECRET=whsec_… (.*)$", (EXAMPLES / name).read_text(), re.MULTILINE)
        assert command is not None
        program, *arguments = shlex.split(command[1].replace("9000", "0"))
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *(() if program == "python" else ("-m", program)), *arguments],
                cwd=EXAMPLES.parent,
                env=environment({"SECRET": SECRET, "DATABASE": str(self._database), "PYTHONUNBUFFERED": "1"}),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.url = self._wait_for_url()

    def _wait_for_url(self) -> str:
        deadline = time.monotonic() + CEILING_S
        while True:
            found = re.search(r"(http://127\.0\.0\.1:[1-9][0-9]*)[^0-9]", self._output.read_text())
            if found is not None:
                return found[1] + "/hooks"
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"no address in:\n{self._output.read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(CEILING_S)

    def rows(self, query: str) -> list[int]:
        with closing(sqlite3.connect(self._database)) as connection:
            return [row[0] for row in connection.execute(query)]

    @property
    def paid(self) -> list[int]:
        """The effect that events have: orders that are paid."""
        return self.rows("SELECT order_id FROM paid")


@pytest.fixture(
    scope="module",
    params=["receive_fastapi.py", "receive_flask.py", "receive_django.py"],
)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
    example = Example(request.param, tmp_path_factory.mktemp("example"))
    yield example
    example.stop()


@pytest.fixture
def example(running: Example) -> Example:
    """The example with nothing received yet: starting one takes longer than the tests do."""
    with closing(sqlite3.connect(running._database)) as connection, connection:
        connection.execute("DELETE FROM paid")
        connection.execute("DELETE FROM hookline_processed")
    return running


@pytest.fixture
async def hooks(tmp_path: Path) -> AsyncIterator[Hookline]:
    async with Hookline(f"sqlite:///{tmp_path}/hooks.db", settings=Settings(dev=True)) as hooks:
        yield hooks


async def after_attempts(hooks: Hookline, event: str, number: int) -> tuple[Delivery, list[Attempt]]:
    """The event's delivery and its attempts, once there are so many."""
    delivery_id = delivery_of(EventId(read("event", event)), 0)
    async with asyncio.timeout(CEILING_S):
        while len(attempts := await hooks.store.attempts(delivery_id)) < number:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
    delivery = await hooks.store.delivery(delivery_id)
    assert delivery is not None
    return delivery, list(attempts)


async def test_an_event_has_its_effect_once_although_it_is_replayed(
    example: Example, hooks: Hookline
) -> None:
    await hooks.create_endpoint(url=example.url, events=["order.*"], secret=SECRET)
    event = await hooks.publish("order.paid", {"id": 42})
    delivery, _ = await after_attempts(hooks, event.id, 1)
    assert (delivery.state, example.paid) == (State.DELIVERED, [42])
    await hooks.deliveries.replay_event(EventId(read("event", event.id)))
    delivery, attempts = await after_attempts(hooks, event.id, 2)
    assert (delivery.state, [attempt.status for attempt in attempts]) == (State.DELIVERED, [200, 200])
    assert example.paid == [42]
    bodies = [bytes(attempt.response_body).replace(b" ", b"").strip() for attempt in attempts]
    assert bodies == [b'{"new":true}', b'{"new":false}']


async def test_a_signature_made_with_another_secret_is_refused(example: Example, hooks: Hookline) -> None:
    await hooks.create_endpoint(url=example.url, events=["order.*"], secret=secret_of("x"))
    event = await hooks.publish("order.paid", {"id": 42})
    delivery, [attempt] = await after_attempts(hooks, event.id, 1)
    assert (attempt.status, delivery.state, delivery.reason) == (401, State.DEAD, Reason.REJECTED)
    assert b"wrong_signature" in bytes(attempt.response_body)
    assert example.paid == []


async def test_a_request_in_the_other_style_is_refused(example: Example, hooks: Hookline) -> None:
    await hooks.create_endpoint(url=example.url, events=["order.*"], secret=SECRET, signing="classic")
    event = await hooks.publish("order.paid", {"id": 42})
    _, [attempt] = await after_attempts(hooks, event.id, 1)
    assert (attempt.status, example.paid) == (401, [])


async def test_a_handler_that_fails_is_tried_again_and_leaves_no_mark(
    example: Example, hooks: Hookline
) -> None:
    retry = {"schedule": [0, 0], "jitter": "none"}
    await hooks.create_endpoint(url=example.url, events=["order.*"], secret=SECRET, retry=retry)
    event = await hooks.publish("order.paid", {"id": None})  # the column does not take it
    delivery, attempts = await after_attempts(hooks, event.id, 2)
    assert [attempt.outcome for attempt in attempts] == [Outcome.TRANSIENT] * 2
    assert (delivery.reason, example.paid) == (Reason.EXHAUSTED, [])
    assert example.rows("SELECT count(*) FROM hookline_processed") == [0]


async def test_of_deliveries_at_the_same_moment_one_has_an_effect(example: Example) -> None:
    headers = standard(SECRET, body=b'{"id": 7}', at=int(time.time()))
    async with httpx.AsyncClient(timeout=CEILING_S) as client:
        answers = await asyncio.gather(
            *(client.post(example.url, content=b'{"id": 7}', headers=headers) for _ in range(10))
        )
    assert [answer.status_code for answer in answers] == [200] * 10
    assert sorted(answer.json()["new"] for answer in answers) == [False] * 9 + [True]
    assert example.paid == [7]
