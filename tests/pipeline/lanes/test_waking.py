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


class Sweeps:
    """A store whose sweep takes two steps; each ends when the test lets it."""

    def __init__(self) -> None:
        self.began: asyncio.Queue[EndpointId | None] = asyncio.Queue()
        self.may_end = asyncio.Semaphore(0)

    async def sweep(self, *, after: EndpointId | None, now: float) -> EndpointId | None:
        self.began.put_nowait(after)
        await self.may_end.acquire()
        return C if after is None else None


async def test_a_lane_that_is_known_waits_for_one_step_of_a_sweep(rounds: Rounds):
    store: Any = Sweeps()
    wakes = Wakes(store, ManualClock(), take=rounds.take, on_woken=lambda _: None)
    for _ in range(3):
        rounds.may_end.release()
    task = asyncio.create_task(wakes.run())
    wakes.add_unknown()
    async with asyncio.timeout(120):
        assert (await rounds.next(), await store.began.get()) == ([], None)
        wakes.add(A)
        store.may_end.release()
        assert (await rounds.next(), await store.began.get()) == ([A], C), "it goes on after the lane"
        wakes.add_unknown()
        store.may_end.release()
        assert (await rounds.next(), await store.began.get()) == ([], None), "a later lost answer begins anew"
    task.cancel()
