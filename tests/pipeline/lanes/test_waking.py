"""A lane that has just been given work is woken or taken.

Time stands still in these tests: whatever waits for time waits for ever.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from hookline.model import EndpointId
from hookline.pipeline.lanes.wake import Waiting, Wakes
from hookline.testing.clock import ManualClock

pytestmark = pytest.mark.anyio

A, B, C, D = (EndpointId(letter * 16) for letter in (b"a", b"b", b"c", b"d"))


class Rounds:
    """Records what each round of taking asks for; a round ends when the test lets it."""

    def __init__(self) -> None:
        self.began: asyncio.Queue[list[EndpointId]] = asyncio.Queue()
        self.may_end = asyncio.Semaphore(0)

    async def take(self, waiting: Waiting) -> Sequence[EndpointId]:
        self.began.put_nowait(list(waiting))
        await self.may_end.acquire()
        return []

    async def next(self) -> list[EndpointId]:
        async with asyncio.timeout(120):
            return await self.began.get()


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


@pytest.fixture
async def wakes(rounds: Rounds) -> AsyncIterator[Wakes]:
    store: Any = None  # all of them are taken
    wakes = Wakes(store, ManualClock(), take=rounds.take, on_woken=lambda _: None)
    task = asyncio.create_task(wakes.run())
    yield wakes
    task.cancel()


async def test_the_next_lane_does_not_wait_for_time_to_pass(wakes: Wakes, rounds: Rounds):
    for lane in (A, B):
        wakes.add(lane)
        assert await rounds.next() == [lane]
        rounds.may_end.release()
        await wakes.flush()


async def test_lanes_gather_while_others_are_taken(wakes: Wakes, rounds: Rounds):
    wakes.add(A)
    assert await rounds.next() == [A]
    for lane in (B, C, D):
        wakes.add(lane)
    rounds.may_end.release()
    assert await rounds.next() == [B, C, D]
