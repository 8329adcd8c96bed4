"""A hookline on a clock that the test moves, with everything else real."""

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from hookline.app import Hookline
from hookline.config import Settings
from hookline.ids import delivery_of, read
from hookline.model import Delivery, EventId, State
from hookline.store.contract import Store
from hookline.testing.clock import ManualClock

REAL_SECONDS = 180.0  # after which a test gives up
STEP = 0.05  # seconds of the test's time between two looks
# Real seconds for which the test's time waits for a call of a store at most: one that waits for time has to get it.
LONGEST_CALL = 1.0
LONGEST_DIAL = 0.05  # likewise, in each tick, for connections that are being opened
ENDLESS = {"listen"}  # calls that end with the store
T = TypeVar("T")


class World:
    """One database, one clock, any number of hooklines.

    Databases work in real time, and a busy machine may keep them from it for any length of it: the test's time stands
    still meanwhile, or a moment of the machine would be minutes of the test.
    """

    def __init__(self, database: str) -> None:
        self.database = database
        self.step = STEP  # a test about durations takes smaller ones: the database's work takes real time
        self.clock = ManualClock()
        self._running: list[Hookline] = []
        self._calls = 0  # of stores, under way
        self._no_calls = asyncio.Event()

    async def start(self, *, deliver: bool = True, **settings: Any) -> Hookline:
        hooks = Hookline(
            self.database,
            settings=Settings(dev=True, **settings),
            clock=self.clock,
            rng=Random(len(self._running)),
            deliver=deliver,
        )
        self._watch(hooks.store)
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
        tasks = [*hooks.worker._supervisor.tasks, *hooks.worker.events.tasks.all]
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
        # Connections are opened in real time too: many ticks of a busy machine would be a connect timeout.
        if dialling := [task for hooks in self._running for task in hooks._sender._tasks]:
            await asyncio.wait(dialling, timeout=LONGEST_DIAL)
        if self._calls:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_CALL):
                    await self._no_calls.wait()

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

    def _watch(self, store: Store) -> None:
        """Know of every call of the store that is under way."""
        for name in dir(type(store)):
            call = getattr(store, name)
            if inspect.iscoroutinefunction(call) and not name.startswith("_") and name not in ENDLESS:
                setattr(store, name, self._watched(call))

    def _watched(self, call: Callable[..., Awaitable[T]]) -> Callable[..., Coroutine[Any, Any, T]]:
        async def watched(*given: Any, **named: Any) -> T:
            self._calls += 1
            self._no_calls.clear()
            try:
                return await call(*given, **named)
            finally:
                self._calls -= 1
                if not self._calls:
                    self._no_calls.set()

        return watched

    async def close(self) -> None:
        for hooks in list(self._running):
            await self.stop(hooks)
