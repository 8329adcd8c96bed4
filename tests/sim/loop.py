"""An event loop without real time, on which the seed decides what runs next.

Its time stops while anything can run, and then jumps to the next timer. Every callback belongs to an owner (a simulated
process, or the world around them), which its context names. Callbacks of one owner run in order, as asyncio promises.
The seed chooses which owner runs next, and the order of timers that are due at the same moment. An owner can be held
(SIGSTOP) or dropped (SIGKILL). A dropped owner runs no further step, not even a `finally`.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from random import Random
from typing import Any

LIVELOCK = 200_000  # callbacks at one moment: time does not advance


class Owner:
    """The owner of callbacks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.context = copy_context()
        self.context.run(OWNER.set, self)
        self.queue: deque[asyncio.Handle] = deque()
        self.is_dropped = False
        self.is_held = False
        self.is_waiting = False  # is queued to run
        self.kept: list[object] = []  # kept after a drop, so that no destructor runs


OWNER: ContextVar[Owner] = ContextVar("owner")


class Livelock(Exception):
    """Time does not advance."""


class SimLoop(asyncio.AbstractEventLoop):
    """The loop."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._now = 0.0
        self._order = count()
        self._timers: list[tuple[float, float, int, asyncio.TimerHandle]] = []
        self._able: list[Owner] = []
        self._closed = False
        self._is_over = False
        self.steps = 0
        self._steps_here = 0
        self.on_trouble: Callable[[dict[str, Any]], None] = lambda _: None

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        return self._now

    # Callbacks have many signatures: their arguments are not type-checked.
    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if context is None:
            context = copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        self._enqueue(handle, context)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if context is None:
            context = copy_context()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self._closed:
            heapq.heappush(self._timers, (when, self._rng.random(), next(self._order), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._closed

    def is_closed(self) -> bool:
        return self._closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            self.on_trouble(context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are left out when their time comes."""

    # --- running ---

    def run(self, main: Coroutine[Any, Any, Any], owner: Owner) -> None:
        """Run until the coroutine is done or `stop` is called."""
        asyncio.events._set_running_loop(self)
        try:
            task = self.create_task(main, context=owner.context)
            while not self._is_over and not task.done():
                self._step()
            if task.done():
                task.result()
        finally:
            asyncio.events._set_running_loop(None)

    def stop(self) -> None:
        self._is_over = True

    def hold(self, owner: Owner) -> None:
        """Run none of its callbacks until `let_go`; its time continues."""
        owner.is_held = True

    def let_go(self, owner: Owner) -> None:
        owner.is_held = False
        self._admit(owner)

    def drop(self, owner: Owner) -> None:
        """Run none of its callbacks ever again."""
        owner.is_dropped = True
        owner.kept.append(list(owner.queue))
        owner.queue.clear()

    def close(self) -> None:
        """End everything that is still waiting, and ignore what it does while it ends."""
        self._closed = True
        asyncio.events._set_running_loop(self)
        try:
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                try:
                    task.get_coro().close()
                except BaseException:  # noqa: S112 - errors at the end of the run do not matter
                    continue
        finally:
            asyncio.events._set_running_loop(None)
        self._timers.clear()
        self._able.clear()

    def _enqueue(self, handle: asyncio.Handle, context: Context) -> None:
        if self._closed:
            return
        owner = context[OWNER]
        if owner.is_dropped:
            owner.kept.append(handle)
            return
        owner.queue.append(handle)
        self._admit(owner)

    def _admit(self, owner: Owner) -> None:
        if owner.queue and not (owner.is_waiting or owner.is_held):
            owner.is_waiting = True
            self._able.append(owner)

    def _step(self) -> None:
        able = self._able
        while not able:
            self._advance()
        place = int(self._rng.random() * len(able)) if len(able) > 1 else 0
        owner = able[place]
        if not owner.queue or owner.is_held:
            owner.is_waiting = False
            able[place] = able[-1]
            able.pop()
            return
        handle = owner.queue.popleft()
        if not owner.queue:
            owner.is_waiting = False
            able[place] = able[-1]
            able.pop()
        if not handle._cancelled:
            self.steps += 1
            self._steps_here += 1
            if self._steps_here > LIVELOCK:
                raise Livelock(f"{owner.name} does not let time advance: {handle}")
            handle._run()

    def _advance(self) -> None:
        timers = self._timers
        while timers and timers[0][3]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Livelock("nothing can run and nothing is waited for")
        if timers[0][0] > self._now:
            self._now = timers[0][0]
            self._steps_here = 0
        while timers and timers[0][0] <= self._now:
            handle = heapq.heappop(timers)[3]
            if not handle._cancelled:
                self._enqueue(handle, handle._context)  # type: ignore[attr-defined]
