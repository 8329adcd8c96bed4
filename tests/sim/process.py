"""A process of a simulated world.

A whole hookline, built as the product builds it, on the world's clock, random numbers, network and store. It can be
stopped, killed and drained. Requests reach it from outside, as over a socket; a caller is told when the process dies.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

from hookline.app import Hookline
from hookline.config import Settings
from hookline.errors import HooklineError
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.sending import Request, SendResult, client
from hookline.store.contract import Loaded, Settlement
from tests.sim.clock import ProcessClock
from tests.sim.loop import Owner
from tests.sim.net import SimNet
from tests.sim.store import Link

if TYPE_CHECKING:
    from tests.sim.world import World


# Reading the machine's authorities takes up to a fifth of a second, as long as hundreds of steps; nobody here speaks TLS.
client.default_context = cache(client.default_context)  # type: ignore[attr-defined]

SKEW_REMEMBERED = 8.0  # seconds: longer than any request, so that its beginning is remembered at its end


class Died(Exception):
    """The process died before it answered."""


class Process:
    """One hookline."""

    def __init__(self, world: "World", name: str, rng: Random, *, delivers: bool, settings: Settings) -> None:
        self._world = world
        self.name = name
        self.delivers = delivers
        self.owner = Owner(name)
        self.clock = ProcessClock(
            world.loop,
            wall_error=rng.choice((0.0, rng.uniform(-7200, 7200))),
            booted=rng.uniform(0, 1e5),
            ticks=world.clocks_tick,
        )
        self.link = Link(world.database, self)
        self.hooks: Hookline = self.owner.context.run(
            Hookline,
            settings=settings,
            kind="serve" if delivers else "api",
            deliver=delivers,
            clock=self.clock,
            rng=rng,
            net=SimNet(world, self),
            store=self.link,
        )
        self.is_started = False
        self.went_on_at = float("-inf")  # when it was last let go, after it had been stopped
        self.was_killed_by: bytes | None = None  # the event whose request killed it
        self.is_leaving = False
        self.leaving_since: float | None = None
        self.skew = 0.0  # seconds that its idea of the store's time was off, at worst, in the last while
        self._skews = (0.0, 0.0, 0.0)  # since when, in that stretch, in the one before
        self._calls: dict[asyncio.Future[Any], None] = {}
        self._watch()

    def _watch(self) -> None:
        """Tell the checks of every delivery that is given a slot, and of every answer."""
        dispatcher = self.hooks.worker.dispatcher
        send = dispatcher._send

        def admitted(lane: Lane, delivery: Loaded, is_probe: bool) -> None:
            self._world.checks.admitted(self, lane, delivery, is_probe=is_probe)
            send(lane, delivery, is_probe)

        dispatcher._send = admitted
        settler = self.hooks.worker.settler
        add = settler.add

        def landed(lane: Lane, settlement: Settlement) -> None:
            self._world.checks.landed(self, lane, settlement)
            add(lane, settlement)

        settler.add = landed  # type: ignore[method-assign]
        sender = self.hooks.worker._deliverer._sender
        begin = sender.send

        def watched(request: Request, done: Callable[[SendResult], None]) -> None:
            began = self.now

            def answered(result: SendResult) -> None:
                self._world.checks.answered(self, began, request.timeout)
                done(result)

            begin(request, answered)

        sender.send = watched  # type: ignore[method-assign]
        if self._world.memory_bytes is not None:
            dispatcher._memory._budget = self._world.memory_bytes

    def note_skew(self, store_now: float) -> None:
        """Compare its idea of the store's time with the store's."""
        off = abs(self.clock.now() - store_now)
        since, here, before = self._skews
        now = self._world.loop.time()
        if now - since > SKEW_REMEMBERED:
            since, here, before = now, 0.0, here
        self._skews = (since, max(here, off), before)
        self.skew = max(here, off, before)

    @property
    def now(self) -> float:
        """The world's time."""
        return self._world.loop.time()

    @property
    def worker_id(self) -> bytes:
        return self.hooks._heartbeat.id

    @property
    def is_up(self) -> bool:
        return self.is_started and not self.owner.is_dropped and not self.is_leaving

    def start(self) -> None:
        """Start, and try again while the database is away, as a supervisor would."""

        async def begin() -> None:
            while True:
                try:
                    await self.hooks.start()
                except HooklineError:
                    await asyncio.sleep(0.5)
                else:
                    break
            self.is_started = True
            self._world.log("up", self.name)

        self.run(begin())

    def run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something in the process."""
        task = self._world.loop.create_task(work, context=self.owner.context)
        self.owner.kept.append(task)
        if len(self.owner.kept) > 50:
            self.owner.kept = [
                each for each in self.owner.kept if not (isinstance(each, asyncio.Task) and each.done())
            ]
        return task

    def ask(self, work: Callable[[Hookline], Coroutine[Any, Any, Any]]) -> asyncio.Future[Any]:
        """The process's answer to a caller outside; raises `Died` if it dies first."""
        answer: asyncio.Future[Any] = self._world.loop.create_future()
        self._calls[answer] = None

        async def serve() -> None:
            try:
                result = await work(self.hooks)
            except HooklineError as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(result)
            finally:
                self._calls.pop(answer, None)

        self.run(serve())
        return answer

    def hang_up(self) -> None:
        """Tell all callers that the process is gone."""
        for answer in self._calls:
            if not answer.done():
                answer.set_exception(Died(self.name))
        self._calls.clear()
