"""Runs one simulated world.

The seed decides the world: accounts, endpoints, processes, faults. Clients publish, operators change things, the
nemesis causes faults. Then the faults end, all endpoints answer with success, and every accepted delivery must finish.
A broken promise ends the run and prints the latest events.
"""

import asyncio
import gc
import hashlib
import logging
import shutil
import tempfile
from collections import Counter, deque
from collections.abc import MutableMapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import structlog

from hookline import Settings
from hookline.errors import HooklineError
from hookline.outbox import nudging
from hookline.pipeline.outbox import mover
from hookline.rules import outbox_clear
from hookline.store.sqlite.store import SqliteStore
from tests.sim.applications import SHARE, Applications
from tests.sim.checks import Checks
from tests.sim.clients import Clients
from tests.sim.faults import Faults
from tests.sim.loop import Livelock, Owner, SimLoop
from tests.sim.operators import Operators
from tests.sim.process import Died, Process
from tests.sim.receivers import Receivers
from tests.sim.scenes import Scene
from tests.sim.shadow import uncounted
from tests.sim.store import Database, at_once

TAIL = 80  # lines of the log that are shown with a violation
LONGEST_DRAIN = 150.0  # seconds until everything has finished, without faults


class Result(msgspec.Struct, frozen=True):
    """The result of a run."""

    seed: int
    digest: str  # of the whole log: equal for equal runs
    steps: int
    verbs: int  # of the store
    requests: int
    seconds: float  # simulated
    violation: str | None
    tail: tuple[str, ...]
    transitions: dict[str, int]
    matrix: frozenset[tuple[str, str]]  # fault, transition
    faults: dict[str, int]
    draws: tuple[float, ...]  # of full jitter, as parts of the wait
    fullest: float  # the buffer of a lane that is being released, as a share of its capacity

    def __str__(self) -> str:
        lines = "\n".join(self.tail)
        return (
            f"seed {self.seed}, step {self.steps}, second {self.seconds:.3f}: {self.violation}\n"
            f"replay: pytest tests/sim --sim-seed={self.seed}\nthe last of the log:\n{lines}"
        )


class World:
    """One run."""

    def __init__(self, seed: int, folder: Path, template: Path, scene: Scene | None = None) -> None:
        self.seed = seed
        rng = Random(seed)
        self.rng = rng
        # The parts of a loop for streams, signals and subprocesses are missing.
        self.loop = SimLoop(Random(rng.getrandbits(64)))  # type: ignore[abstract]
        self.loop.on_trouble = self._trouble
        self.owner = Owner("world")
        self._lines: deque[tuple[Any, ...]] = deque(maxlen=TAIL)
        self._hash = hashlib.sha256()
        self.violation: str | None = None
        self.transitions: Counter[str] = Counter()
        self.matrix: set[tuple[str, str]] = set()
        path = folder / f"{seed}.db"
        shutil.copy(template, path)
        self.database = Database(self, path)
        self.faults = Faults(self, Random(rng.getrandbits(64)))
        self.receivers = Receivers(self, Random(rng.getrandbits(64)))
        self.checks = Checks(self)
        self.clients = Clients(self, Random(rng.getrandbits(64)))
        self.operators = Operators(self, Random(rng.getrandbits(64)))
        self.processes: list[Process] = []
        self._made = 0
        self.workers = rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))
        self.has_api = self.workers < 5 and rng.random() < 0.4
        self.settings = Settings(
            dev=True,
            heartbeat_s=0.8,
            takeover_s=4.0,
            drain_s=6.0,
            max_in_flight=rng.choice((4, 8, 16)),
            retry="quick",
            keep_delivered_days=0,
            keep_dead_days=0,
        )
        self.is_stopping = False
        self.left: set[bytes] = set()  # workers that report a complete drain
        self.is_draining = False  # the faults are over, everything has to end
        self.replaces_the_dead = True
        self.longest_drain = LONGEST_DRAIN
        self.memory_bytes: int | None = (
            None  # for large payloads in each process; None: as the product has it
        )
        self.refused: set[bytes] = set()  # lanes whose writes the database refuses
        self.expected_errors: frozenset[str] = frozenset()  # that the product may report
        # In the others time stands still within a step, so that runs are quick and what is compared is equal.
        self.clocks_tick = scene is None and seed % 7 == 6
        # Of their own chance: all others draw the same numbers, with or without them.
        self.applications = Applications(
            self, Random(f"applications {seed}"), path, publish=scene is None and seed % 8 in SHARE
        )
        self.scene = scene
        if scene is not None:
            scene.prepare(self)

    # --- the log ---

    def log(self, what: str, *details: object) -> None:
        """Log what happened; equal runs log the same."""
        line = (self.loop.steps, round(self.loop.time(), 6), what, *details)
        self._hash.update(repr(line).encode())
        self._lines.append(line)

    def fail(self, invariant: str, detail: str) -> None:
        """A promise is broken: the run ends here."""
        if self.violation is None:
            self.violation = f"{invariant}: {detail}"
            self.log("violation", self.violation)
            self.loop.stop()

    def _trouble(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, HooklineError | Died):
            return  # of a call that no caller waits for any more
        self.fail("unexpected", f"{context.get('message')}: {error!r}")

    def _logged(self, logger: object, method: str, event: MutableMapping[str, Any]) -> Any:
        """Treat an error in the product's log as a bug."""
        is_error = method in ("error", "exception", "critical") and not self.loop.is_closed()
        if is_error and event["event"] not in self.expected_errors:
            import traceback

            self.fail("unexpected", f"{event} {traceback.format_exc(limit=-4)}")
        raise structlog.DropEvent

    # --- processes ---

    def launch(self, *, delivers: bool) -> Process:
        self._made += 1
        name = f"{'w' if delivers else 'a'}{self._made}"
        process = Process(
            self, name, Random(self.rng.getrandbits(64)), delivers=delivers, settings=self.settings
        )
        self.processes.append(process)
        self.log("launch", name)
        process.start()
        return process

    def crash(self, process: Process, *, at: str) -> None:
        """SIGKILL: it runs no further step."""
        if process.owner.is_dropped:
            return
        self.log("crash", process.name, at)
        self.loop.drop(process.owner)
        self.processes.remove(process)
        self.database.sessions.end(process)
        process.hang_up()
        self.checks.died(process)
        self._replace(process)

    def pause(self, process: Process) -> None:
        """SIGSTOP, and after a while SIGCONT."""
        if process.owner.is_held or process.owner.is_dropped:
            return
        seconds = self.rng.choice((0.1, 0.9, 1.1, 3.0, self.rng.uniform(4.0, 8.0)))
        self.hold(process)
        self.loop.call_later(seconds, self.let_go, process, context=self.owner.context)

    def hold(self, process: Process) -> None:
        self.log("hold", process.name)
        self.loop.hold(process.owner)

    def let_go(self, process: Process) -> None:
        if process.owner.is_held:
            self.log("go on", process.name)
            process.went_on_at = self.loop.time()
            self.loop.let_go(process.owner)

    def drain(self, process: Process) -> None:
        """SIGTERM: it finishes and leaves."""
        if not process.is_up:
            return
        process.is_leaving = True
        process.leaving_since = self.loop.time()
        self.log("drain", process.name)

        async def leave() -> None:
            try:
                is_clean = await process.hooks.stop()
            except HooklineError:
                is_clean = False
            self.log("left", process.name, is_clean)
            if is_clean:
                self.left.add(process.worker_id)
            self.loop.call_soon(self._left, process, context=self.owner.context)

        process.run(leave())

    def _left(self, process: Process) -> None:
        if process.owner.is_dropped:
            return
        self.loop.drop(process.owner)
        self.processes.remove(process)
        self.database.sessions.end(process)
        process.hang_up()
        self._replace(process)

    def _replace(self, process: Process) -> None:
        if (self.is_draining and self.is_stopping) or not self.replaces_the_dead:
            return
        # Mostly soon. If others are up, it may stay away until it counts as dead.
        stays_away = len(self.processes) > 1 and not self.is_draining and self.rng.random() < 0.3
        pause = self.rng.uniform(15.0, 25.0) if stays_away else self.rng.uniform(0.05, 3.0)
        self.loop.call_later(pause, self._launch_again, process.delivers, context=self.owner.context)

    def _launch_again(self, delivers: bool) -> None:
        if not self.is_stopping:
            self.launch(delivers=delivers)

    def timeout_of(self, place: int) -> float:
        return self.operators.timeouts.get(place, 2.0)

    # --- the run ---

    def run(self) -> Result:
        before = structlog.get_config(), nudging._lookers, outbox_clear.EVERY_S, mover.NOTE_EVERY_S
        if self.applications.publish:  # else nothing would be pruned within a run
            outbox_clear.EVERY_S = mover.NOTE_EVERY_S = 3.0
        structlog.configure(
            processors=[self._logged],
            wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
            cache_logger_on_first_use=False,
        )
        gc.disable()
        try:
            with uncounted():
                self.loop.run(self._main(), self.owner)
        except Livelock as error:
            self.fail("livelock", str(error))
        finally:
            self.loop.close()
            self.applications.close()
            self.database.close()
            # Processes that were killed are still told of commits: they would be kept in memory.
            logging_before, nudging._lookers, outbox_clear.EVERY_S, mover.NOTE_EVERY_S = before
            structlog.configure(**logging_before)
            gc.enable()
        return Result(
            seed=self.seed,
            digest=self._hash.hexdigest(),
            steps=self.loop.steps,
            verbs=self.database.verbs,
            requests=len(self.receivers.ledger),
            seconds=self.loop.time(),
            violation=self.violation,
            tail=tuple(" ".join(map(str, line)) for line in self._lines),
            transitions=dict(self.transitions),
            matrix=frozenset(self.matrix),
            faults=dict(self.faults.counts),
            draws=tuple(self.checks.draws),
            fullest=self.checks.stands.fullest,
        )

    async def _main(self) -> None:
        for _ in range(self.workers):
            self.launch(delivers=True)
        if self.has_api:
            self.launch(delivers=False)
        await self.until(lambda: any(process.is_up for process in self.processes), within=60.0)
        await self.operators.furnish()
        self.applications.begin()
        tasks = [
            self.loop.create_task(loop(), context=self.owner.context)
            for loop in (self.faults.run, self.checks.run, self.operators.run, self.clients.run)
        ]
        if self.scene is not None and self.scene.play is not None:
            tasks.append(self.loop.create_task(self.scene.play(self), context=self.owner.context))
        await asyncio.sleep(self.rng.uniform(12.0, 30.0))
        await self._calm_down()
        await self.until(self._is_at_rest, within=self.longest_drain)
        if not self._is_at_rest():
            self.checks.unfinished()
            return
        for task in tasks:
            task.cancel()
        self.checks.at_rest()
        await self._leave_all()

    async def _calm_down(self) -> None:
        """End the faults, let all endpoints answer, and remove all pauses and limits."""
        self.log("calm")
        self.faults.is_over = True
        self.is_draining = True
        self.receivers.is_calm = True
        self.clients.is_over = True
        for process in self.processes:
            self.let_go(process)
        await self.operators.calm_down()

    def _is_at_rest(self) -> bool:
        rows = self.database.shadow.rows
        return (
            self.clients.is_done
            and self.applications.is_done
            and not self.checks.outbox.waiting
            and self.operators.is_done
            and all(row["state"] != "pending" for row in rows["deliveries"].values())
            # Deliveries that were cancelled in flight are answered and settled too.
            and all(
                not process.hooks.worker.dispatcher.in_flight and process.hooks.worker.settler._idle.is_set()
                for process in self.processes
            )
        )

    async def _leave_all(self) -> None:
        """SIGTERM to all: nothing is left behind."""
        self.is_stopping = True
        for process in self.processes:
            self.let_go(process)
        await self.until(lambda: all(process.is_started for process in self.processes), within=30.0)
        for process in list(self.processes):
            self.drain(process)
        await self.until(lambda: not self.processes, within=30.0)
        self.checks.left()

    async def until(self, condition: Any, *, within: float) -> None:
        """Wait for this, for at most so many simulated seconds."""
        ends = self.loop.time() + within
        while not condition() and self.loop.time() < ends:
            await self.moment(0.1)

    async def moment(self, seconds: float) -> None:
        """Let simulated time pass."""
        await asyncio.sleep(seconds)


class Worlds:
    """A folder in which runs are made, on a memory disk where there is one."""

    def __init__(self) -> None:
        shared = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
        self._folder = tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None)
        self._path = Path(self._folder.name)
        self._template = self._path / "template.db"
        at_once(SqliteStore(str(self._template)).migrate())
        self._runs = 0

    def run(self, seed: int, scene: Scene | None = None) -> Result:
        world = World(seed, self._path, self._template, scene)
        try:
            return world.run()
        finally:
            for file in self._path.glob(f"{seed}.db*"):
                file.unlink()
            self._runs += 1
            if self._runs % 5 == 0:
                gc.collect()

    def close(self) -> None:
        self._folder.cleanup()
