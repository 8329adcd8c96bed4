"""Decides what goes wrong in a simulated world, and when.

The seed decides about each fault at random, at each call, request and answer; the nemesis adds faults between them. A
seed enables some kinds of faults, or none: many faults at once hide what a few would show.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.store import Call
    from tests.sim.world import World

KINDS = (
    "crash", "pause", "clock_step", "drain", "swizzle", "partition",
    "lost_request", "lost_answer", "slow_store", "wake_twice", "wake_lost",
    "dns", "refused", "answer_lost", "config",
)  # fmt: skip
BY_NEMESIS = ("crash", "pause", "clock_step", "drain", "swizzle", "partition")
LAME = 0.3  # share of the calls of a slow verb that are slow
OUTBOX_STEPS = ("drop_from_outbox", "refuse", "note_source")  # rare calls: few would be met by chance
OUTBOX_RATE = 0.05
REMEMBERED = 3.0  # seconds for which a fault counts as recent


class Faults:
    """The random decisions."""

    def __init__(self, world: "World", rng: Random) -> None:
        self._world = world
        self._rng = rng
        calm = rng.random() < 0.12
        share = 0.0 if calm else rng.choice((0.25, 0.5, 0.8))
        self.on = frozenset(kind for kind in KINDS if rng.random() < share)
        self._store_rate = rng.choice((0.003, 0.01, 0.03))
        self._deadly_rate = rng.choice((0.0003, 0.001, 0.003))
        self._net_rate = rng.choice((0.01, 0.05))
        self._every = rng.choice((4.0, 8.0))  # seconds between the nemesis's faults
        self.lame: dict[str, float] = {}  # slow verbs, each with its longest travel time there and back
        self.on_lame: Callable[[Process], None] = lambda _: None
        self.deadly: frozenset[tuple[Process, str]] = frozenset()  # which process dies at which call
        self.silent: set[str] = set()  # verbs whose next answer is lost
        self.deaf: set[tuple[Process, str]] = set()  # which process gets no answer to which call
        self.short = 0.0  # the part of new connections for which there is no descriptor
        self._names_fail: dict[str, float] = {}
        self.is_over = False
        self.last_at = float("-inf")  # of any fault
        self.recent: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.partitioned: dict[Process, float] = {}

    def only(self, *kinds: str, every: float = 4.0) -> None:
        """Disable all other faults; the nemesis acts at this interval."""
        self.on = frozenset(kinds)
        self._every = every

    def coin(self, chance: float) -> bool:
        return self._rng.random() < chance

    def happened(self, kind: str) -> None:
        """Remember a fault."""
        self.last_at = self.recent[kind] = self._world.loop.time()
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def background(self) -> list[str]:
        """The recent faults."""
        since = self._world.loop.time() - REMEMBERED
        return [kind for kind, at in self.recent.items() if at >= since]

    def _strikes(self, kind: str, rate: float) -> bool:
        if self.is_over or kind not in self.on or self._rng.random() >= rate:
            return False
        self.happened(kind)
        return True

    # --- calls to the store ---

    def of_call(self, call: "Call") -> tuple[str | None, float, float]:
        """The fate of a call, and its travel times there and back."""
        rng = self._rng
        there, back = rng.uniform(0.0005, 0.004), rng.uniform(0.0005, 0.004)
        if (call.process, call.name) in self.deaf:
            return "lost_answer", there, back
        if call.name in self.silent:
            self.silent.remove(call.name)
            return "lost_answer", there, back
        if self.is_over:
            return None, there, back
        if (call.process, call.name) in self.deadly:
            self.happened("crash")
            return "crash_before", there, back
        if call.name in self.lame and rng.random() < LAME:
            longest = self.lame[call.name]
            self.happened("slow_store")
            self.on_lame(call.process)
            return None, there + rng.uniform(0.0, longest), back + rng.uniform(0.0, longest)
        until = self.partitioned.get(call.process)
        if until is not None:
            if self._world.loop.time() < until:
                return ("lost_answer" if rng.random() < 0.2 else "lost_request"), rng.uniform(0.2, 2.0), 1.0
            del self.partitioned[call.process]
        if self._strikes("slow_store", self._store_rate):
            slow = rng.uniform(0.1, 1.5)
            there, back = (there + slow, back) if rng.random() < 0.5 else (there, back + slow)
        if self._strikes("lost_request", self._store_rate):
            return "lost_request", there + rng.choice((0.0, 1.0)), back
        if self._strikes("lost_answer", self._store_rate):
            return "lost_answer", there, back + rng.choice((0.0, 1.0))
        if call.name == "wake":
            if self._strikes("wake_lost", 0.1):
                return "lost_request", there, back
            if self._strikes("wake_twice", 0.2):
                return "wake_twice", there, back
        is_step = call.name in OUTBOX_STEPS and self._world.applications.publish
        if self._strikes("crash", OUTBOX_RATE if is_step else self._deadly_rate):
            return rng.choice(("crash_before", "crash_after")), there, back
        if self._strikes("pause", self._deadly_rate):
            return "pause_after", there, back
        return None, there, back

    def times_heard(self) -> int:
        """The number of times that a hint reaches a listener."""
        if self._strikes("wake_lost", 0.3):
            return 0
        return 2 if self._strikes("wake_twice", 0.3) else 1

    # --- the network ---

    def travel(self) -> float:
        return self._rng.uniform(0.0005, 0.005)

    def name_fails(self, host: str) -> bool:
        now = self._world.loop.time()
        if now < self._names_fail.get(host, 0.0) and not self.is_over:
            return True
        if self._strikes("dns", self._net_rate):
            self._names_fail[host] = now + self._rng.uniform(0.1, 4.0)
            return True
        return False

    def falls_short(self) -> bool:
        if self.is_over or not self.short or self._rng.random() >= self.short:
            return False
        self.happened("short")
        return True

    def is_refused(self) -> bool:
        return self._strikes("refused", self._net_rate)

    def answer_is_lost(self) -> bool:
        return self._strikes("answer_lost", self._net_rate)

    def on_request(self, process: "Process") -> None:
        """Decide whether the sender of a request dies while it waits for the answer."""
        if self._strikes("crash", self._deadly_rate):
            self._world.crash(process, at="request")
        elif self._strikes("pause", self._deadly_rate):
            self._world.pause(process)

    # --- the nemesis ---

    async def run(self) -> None:
        """Cause faults between the steps."""
        kinds = [kind for kind in BY_NEMESIS if kind in self.on]
        while kinds and not self.is_over:
            await asyncio.sleep(self._rng.expovariate(1 / self._every))
            up = [process for process in self._world.processes if process.is_up]
            if self.is_over or not up:
                continue
            kind = self._rng.choice(kinds)
            process = self._rng.choice(up)
            self.happened(kind)
            match kind:
                case "crash":
                    self._world.crash(process, at="nemesis")
                case "pause":
                    self._world.pause(process)
                case "clock_step":
                    step = self._rng.choice((-86_400.0, -3_600.0, -5.0, -0.3, 0.3, 5.0, 3_600.0, 86_400.0))
                    process.clock.wall_error += step
                    self._world.log("clock_step", process.name, step)
                case "drain":
                    self._world.drain(process)
                case "partition":
                    self.partitioned[process] = self._world.loop.time() + self._rng.uniform(0.5, 6.0)
                    self._world.log("partition", process.name)
                case "swizzle":
                    await self._swizzle(up)

    async def _swizzle(self, up: "list[Process]") -> None:
        """Stop some processes one by one, and continue them in another order."""
        chosen = self._rng.sample(up, self._rng.randrange(1, len(up) + 1))
        for process in chosen:
            if self.is_over:
                break
            self._world.hold(process)
            await asyncio.sleep(self._rng.uniform(0.0, 1.0))
        self._rng.shuffle(chosen)
        for process in chosen:
            self._world.let_go(process)
            await asyncio.sleep(self._rng.uniform(0.0, 1.0))
