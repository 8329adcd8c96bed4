"""A hookline on a clock that the test moves, with everything else real."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from hookline import Hookline, Settings
from hookline.ids import delivery_of, read
from hookline.model import Delivery, EventId, State
from hookline.testing.clock import ManualClock

REAL_SECONDS = 30.0  # after which a test gives up
STEP = 0.05  # seconds of the test's time between two looks
T = TypeVar("T")


class World:
    """One database, one clock, any number of hooklines."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.step = STEP  # a test about durations takes smaller ones: the database's work takes real time
        self.clock = ManualClock()
        self._running: list[Hookline] = []

    async def start(self, *, deliver: bool = True, **settings: Any) -> Hookline:
        hooks = Hookline(
            self.database,
            settings=Settings(dev=True, **settings),
            clock=self.clock,
            rng=Random(len(self._running)),
            deliver=deliver,
        )
        await self.pass_until(hooks.store.migrate())
        await self.pass_until(hooks.start())
        self._running.append(hooks)
        return hooks

    async def stop(self, hooks: Hookline) -> bool:
        self._running.remove(hooks)
        return await self.pass_until(hooks.stop())

    async def crash(self, hooks: Hookline) -> None:
        """The process is gone: its tasks end where they are, nothing is settled, released or retired."""
        self._running.remove(hooks)
        tasks = [*hooks.worker._loops.tasks, *hooks.worker._errands.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await hooks._sender.close()
        await hooks.store.close()

    async def until(self, condition: Callable[[], object], *, seconds: float = REAL_SECONDS) -> None:
        """Let time pass until the condition (or what it awaits) holds; `seconds` are real ones."""
        async with asyncio.timeout(seconds):
            while True:
                result = condition()
                if inspect.iscoroutine(result):
                    result = await self.pass_until(result)
                if result:
                    return
                await self.tick()

    async def pass_until(self, work: Coroutine[Any, Any, T]) -> T:
        """Let time pass until the work is done."""
        task = asyncio.ensure_future(work)
        async with asyncio.timeout(REAL_SECONDS):
            while not task.done():
                await self.tick()
        return task.result()

    async def tick(self, seconds: float | None = None) -> None:
        """A moment of the test's time, with a moment of real time for sockets and the database."""
        self.clock.advance(self.step if seconds is None else seconds)
        await asyncio.sleep(0.001)

    async def delivery(self, hooks: Hookline, event: str, ordinal: int = 0) -> Delivery:
        found = await hooks.store.delivery(delivery_of(EventId(read("event", event)), ordinal))
        assert found is not None
        return found

    async def skip_wait(self, hooks: Hookline, event: str, ordinal: int = 0) -> None:
        """Move time on to when the event's delivery is due."""
        due = (await self.delivery(hooks, event, ordinal)).due_at
        self.clock.advance(max(0.0, due - self.clock.now()))

    async def until_state(self, hooks: Hookline, event: str, state: State, *, ordinal: int = 0) -> Delivery:
        """Let time pass until the event's delivery is in this state."""

        async def is_there() -> bool:
            return (await self.delivery(hooks, event, ordinal)).state is state

        await self.until(is_there)
        return await self.delivery(hooks, event, ordinal)

    async def close(self) -> None:
        for hooks in list(self._running):
            await self.stop(hooks)
