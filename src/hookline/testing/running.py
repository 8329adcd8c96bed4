"""Runs a hookline for a test.

It is a whole hookline, with a store, a worker and the HTTP API, for the length of a `with`. `running_hookline` is for
tests on an event loop; `serving_hookline` runs the same on a thread, for tests and applications without one.
"""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar, Unpack

from hookline.api.app import Api
from hookline.api.server import ApiServer
from hookline.client.endpoint import Endpoint, EndpointFields
from hookline.clock import Clock
from hookline.config import Settings
from hookline.library.embedded import Hookline
from hookline.model import Delivery, State
from hookline.store.contract import DeliveryFilter
from hookline.testing.clock import STEP_S, ManualClock
from hookline.testing.receiver import WITHIN_S, WebhookReceiver

QUICK: dict[str, Any] = {"dev": True, "retry": "quick", "drain_s": 1.0, "poll_s": 0.05}

_LOOK_AGAIN_S = 0.01
# How far a manual clock moves at each look while a request is under way. The request is answered in real time, and
# on a busy machine its deadline must not pass before the receiver has had its turn.
_UNDER_WAY_S = 0.025
_PAGE = 1_000
T = TypeVar("T")


class RunningHookline(Hookline):
    """A hookline that tests can wait for; its API answers at `url`, without a key."""

    url = ""
    _kind = "testing"

    @property
    def clock(self) -> Clock:
        """The clock that it runs on."""
        return self.app.clock

    async def subscribe(
        self, receiver: WebhookReceiver, *events: str, path: str = "", **fields: Unpack[EndpointFields]
    ) -> Endpoint:
        """Create an endpoint for these events (all if none is named) whose secret the receiver trusts."""
        given: EndpointFields = {**fields, "secret": receiver.secret}
        return await self.create_endpoint(receiver.url + path, list(events) or ["*"], **given)

    async def settled(self, *, within: float = WITHIN_S) -> None:
        """Wait until everything is delivered or given up, except what is scheduled for later.

        A manual clock runs meanwhile, and is moved on to the next retry. The AssertionError after so many real seconds
        names what is still waiting, and for what.
        """
        try:
            async with asyncio.timeout(within):
                while waiting := await self._unsettled():
                    await self._let_time_pass(waiting)
        except TimeoutError:
            raise AssertionError(await self._complaint(within)) from None

    async def deliveries_of(self, event_id: str) -> dict[str, int]:
        """How many of an event's deliveries are in each state."""
        counts = (await self.event(event_id)).deliveries
        return {state: number for state, number in counts.items() if number}

    async def _unsettled(self) -> list[Delivery]:
        found: list[Delivery] = []
        after = None
        while True:
            page = await self.app.store.list_deliveries(
                DeliveryFilter(state=State.PENDING), after=after, limit=_PAGE
            )
            found += [each for each in page if each.attempts or each.due_at <= self.clock.now()]
            if len(page) < _PAGE:
                return found
            after = page[-1].id

    async def _let_time_pass(self, waiting: Sequence[Delivery]) -> None:
        if not isinstance(self.clock, ManualClock):
            await self.clock.sleep(_LOOK_AGAIN_S)
            return
        is_busy = any(self.app.is_under_way(each.id) for each in waiting)
        rest = min(each.due_at for each in waiting) - self.clock.now()
        if rest > 0 and not is_busy:
            self.clock.advance(rest)
        await self.clock.tick(_UNDER_WAY_S if is_busy else STEP_S)

    async def _complaint(self, within: float) -> str:
        shown = await self.app.reports.deliveries(await self._unsettled(), now=self.clock.now())
        lines = [
            f"\n  {each.event_type} {each.event_id}: {each.attempts} of {each.max_attempts} attempts, "
            f"last answer {each.last_status}, waiting for {each.waiting_for or 'its answer'}"
            for each in shown[:20]
        ]
        return f"{len(shown)} deliveries are not settled after {within:g} s:{''.join(lines)}"


@asynccontextmanager
async def running_hookline(
    database: str | None = None, *, clock: ManualClock | None = None, **settings: Any
) -> AsyncIterator[RunningHookline]:
    """A hookline on this event loop, in an SQLite file of its own unless a database is named.

    It has development mode on and retries within a second (`retry="quick"`); `settings` are those of `Settings`.
    """
    with tempfile.TemporaryDirectory(prefix="hookline-") as folder:
        hooks = RunningHookline(
            database or f"sqlite:///{folder}/hooks.db",
            settings=Settings(**{**QUICK, **settings}),
            clock=clock,
        )
        await _passing(hooks.clock, hooks.start())
        try:
            async with _api(hooks):
                yield hooks
        finally:
            await _passing(hooks.clock, hooks.stop())


async def _passing(clock: Clock, work: Coroutine[Any, Any, T]) -> T:
    """Move the clock while hookline starts or stops: both wait for it, and nobody else moves it then."""
    return await (clock.pass_until(work) if isinstance(clock, ManualClock) else work)


@asynccontextmanager
async def _api(hooks: RunningHookline) -> AsyncIterator[None]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = ApiServer(Api(hooks.app), hooks.clock)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await server.is_listening.wait()
            hooks.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            yield
        finally:
            server.leave()
            await serving


class HooklineServer:
    """A hookline on another thread."""

    def __init__(self, hooks: RunningHookline, loop: asyncio.AbstractEventLoop) -> None:
        self._hooks = hooks
        self._loop = loop
        self.url = hooks.url  # of its API; no key is needed

    def subscribe(self, receiver: WebhookReceiver, *events: str, path: str = "", **fields: Any) -> Endpoint:
        """Create an endpoint for these events (all if none is named) whose secret the receiver trusts."""
        return self._run(self._hooks.subscribe(receiver, *events, path=path, **fields))

    def settle(self, *, within: float = WITHIN_S) -> None:
        """Wait until everything is delivered or given up, except what is scheduled for later."""
        self._run(self._hooks.settled(within=within))

    def deliveries_of(self, event_id: str) -> dict[str, int]:
        """How many of an event's deliveries are in each state."""
        return self._run(self._hooks.deliveries_of(event_id))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


@contextmanager
def serving_hookline(database: str | None = None, **settings: Any) -> Iterator[HooklineServer]:
    """A hookline on a thread of its own, which answers HTTP at `url`."""
    started: Future[HooklineServer] = Future()
    stopping = asyncio.Event()

    async def serve() -> None:
        async with running_hookline(database, **settings) as hooks:
            started.set_result(HooklineServer(hooks, asyncio.get_running_loop()))
            await stopping.wait()

    with ThreadPoolExecutor(1, thread_name_prefix="hookline") as pool:
        life = pool.submit(lambda: asyncio.run(serve()))
        either: tuple[Future[Any], ...] = (started, life)
        wait(either, return_when=FIRST_COMPLETED)
        if life.done():
            life.result()  # raises the error that kept it from starting
        server = started.result()
        try:
            yield server
        finally:
            server._loop.call_soon_threadsafe(stopping.set)
            life.result()
