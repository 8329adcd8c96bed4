"""A simulated process's link to the database.

The database is the SQLite store itself, without a thread, one for all processes of the world. Each process has a link
to it. A verb travels, is executed at one moment, and its answer travels back. The world may lose the request (nothing
is done), lose the answer (it is done, and the caller cannot know), or delay either. A verb sent before its process was
stopped or killed is still executed, as a database does.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.errors import HooklineError, RowRefused, StoreUnavailable
from hookline.store.contract.figures import SessionUse
from hookline.store.contract.notify import Notification
from hookline.store.contract.slow_verbs import SlowVerbs
from hookline.store.sqlite.store import SqliteStore
from tests.sim.clock import ProcessClock
from tests.sim.loop import Owner
from tests.sim.sessions import CALLS, Sessions
from tests.sim.shadow import Change, Shadow

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World


class Call:
    """A verb that travels to the database."""

    __slots__ = ("ahead", "args", "began", "future", "keywords", "name", "process")

    def __init__(
        self,
        process: "Process",
        name: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        future: asyncio.Future[Any],
    ) -> None:
        self.process = process
        self.name = name
        self.args = args
        self.keywords = keywords
        self.future = future
        self.began = process.now
        self.ahead = 0.0  # seconds that the time it answers with is ahead of the database's machine


class Database:
    """The one database."""

    def __init__(self, world: "World", path: Path) -> None:
        self._world = world
        self.owner = Owner("database")
        self.shadow = Shadow()
        self.clock = ProcessClock(world.loop)
        self.store = SqliteStore(str(path), clock=self.clock, executor=self.shadow.executor)
        at_once(self.store.open(serve=False))
        self.verbs = 0
        self.sessions = Sessions(world)
        self._away_until = float("-inf")
        self.listeners: dict[Process, Callable[[Notification], None]] = {}

    def now(self) -> float:
        """The store's time."""
        return self.clock.wall()

    def submit(self, call: Call) -> None:
        """Send a verb."""
        world = self._world
        fault, there, back = world.faults.of_call(call)
        loop = world.loop
        if fault == "lost_request" or loop.time() < self._away_until:
            loop.call_later(
                there, self._answer, call, None, _gone("The request was lost."), context=self.owner.context
            )
            return
        loop.call_later(there, self._carry_out, call, fault, back, context=self.owner.context)

    def _carry_out(self, call: Call, fault: str | None, back: float) -> None:
        world, process = self._world, call.process
        if world.loop.time() < self._away_until:
            self._answer(call, None, _gone("The database started again."))
            return
        if process.owner.is_dropped and world.faults.coin(0.5):
            world.log("cut", process.name, call.name)
            return
        if fault == "crash_before":
            world.crash(process, at=call.name)
            return
        result, error = self.perform(call)
        if fault == "wake_twice":
            result, error = self.perform(call)
        if fault == "crash_after":
            world.crash(process, at=call.name)
        elif fault == "pause_after":
            world.pause(process)
        if fault == "lost_answer":
            result, error = None, _gone("The answer was lost.")
        world.loop.call_later(back, self._answer, call, result, error, context=self.owner.context)

    def perform(self, call: Call) -> tuple[Any, HooklineError | None]:
        """Carry out a verb in one commit, and check what it did."""
        world = self._world
        self.verbs += 1
        verb: Callable[..., Coroutine[Any, Any, Any]] = getattr(self.store, call.name)
        world.checks.before(call)
        result: Any = None
        error: HooklineError | None = None
        try:
            self._refuse_notes(call)
            result = at_once(verb(*call.args, **call.keywords))
        except HooklineError as refusal:
            error = refusal
        if call.name == "pulse" and result is not None:
            # A file keeps the latest time of any heartbeat: its time never goes back.
            call.ahead = result.now - self.now()
        if call.name in CALLS and error is None:
            result = self.sessions.served(call, result)
        changes = self.shadow.changed()
        world.log("verb", call.process.name, call.name, len(changes), type(error).__name__ if error else "")
        world.checks.after(call, result, changes)
        return result, error

    def _refuse_notes(self, call: Call) -> None:
        """Refuse notes, as a constraint of the database would."""
        notes = call.args[1] if call.name == "note" else call.keywords.get("notes", ())
        if any(note.endpoint_id in self._world.refused for note in notes):
            raise RowRefused("The note is refused.")

    def _answer(self, call: Call, result: Any, error: HooklineError | None) -> None:
        if call.future.done():
            return
        if error is not None:
            call.future.set_exception(error)
        else:
            call.future.set_result(result)

    def restart(self, *, away: float) -> None:
        """Restart it: it is away for so long, and every session ends."""
        self._world.log("restart", away)
        self._away_until = self._world.loop.time() + away
        self.sessions.end_all(up_at=self._away_until)

    def spread(self, notification: Notification) -> None:
        """Send a notification to the listeners."""
        faults, loop = self._world.faults, self._world.loop
        for process, hear in self.listeners.items():
            for _ in range(faults.times_heard()):
                loop.call_later(faults.travel(), hear, notification, context=process.owner.context)

    def close(self) -> None:
        at_once(self.store.close())


class Link:
    """A process's way to the database: the contract's verbs, by name."""

    exclusive = False  # many processes share this database

    def __init__(self, database: Database, process: "Process") -> None:
        self._database = database
        self._process = process
        self.slow_verbs = SlowVerbs()

    async def open(self, *, serve: bool = True) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def sessions(self) -> list[SessionUse]:
        """None."""
        return []

    async def notify(self, notification: Notification) -> None:
        """It goes to everybody who listens; some get lost, some come twice."""
        await asyncio.sleep(0.001)
        self._database.spread(notification)

    async def listen(
        self, hear: Callable[[Notification], None], *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Until cancelled."""
        self._database.listeners[self._process] = hear
        on_ready()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._database.listeners.pop(self._process, None)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        async def verb(*args: Any, **keywords: Any) -> Any:
            loop = asyncio.get_running_loop()
            call = Call(self._process, name, args, keywords, loop.create_future())
            began = loop.time()
            self._process.note_skew(self._database.now())
            self._database.submit(call)
            try:
                result = await call.future
            except StoreUnavailable:
                if name in CALLS:
                    self._database.sessions.end(self._process)  # its outcome is unknown: it is dropped
                raise
            if name in CALLS:
                self._database.sessions.answered(self._process, name)
            if name == "pulse":
                self._process.clock.answer(began, ahead=call.ahead)
            return result

        setattr(self, name, verb)
        return verb


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise AssertionError("the store in line waited for something")


def _gone(detail: str) -> StoreUnavailable:
    return StoreUnavailable(detail)


Changes = list[Change]
