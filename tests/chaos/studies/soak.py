"""Study: nothing piles up or leaks while one fault follows another."""

import signal
import time
from collections.abc import Callable

import psutil

from tests.chaos import network
from tests.chaos.process import Process
from tests.chaos.row import POSTGRES
from tests.chaos.scene import TAKEOVER_S
from tests.chaos.stage import Catcher, Publishing, Stage
from tests.chaos.study import Study

LANES = 24
PER_S = 300.0
LATENCY_S = 0.05
FAULT_EVERY_S = 8.0
QUIET_EVERY_S = 60.0
# What may be larger at the end than after the first quiet minute.
MORE_FILES, MORE_TASKS, MORE_MB = 20, 5, 30.0


class Soak:
    """A system under load, and what is done to it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.catcher: Catcher = stage.catcher()
        self.catcher.answer(latency=LATENCY_S)
        stage.proxied()
        stage.start(workers=3)
        self.types = [f"soak.t{n}" for n in range(LANES)]
        for n, each in enumerate(self.types):
            stage.endpoint(
                self.catcher.url(f"/{n}"),
                each,
                timeout_ms=2_000,
                retry={"schedule": [0.5] * 49, "jitter": "none"},
            )
        self.witness = stage.workers[0]  # is never killed: a leak shows here
        self.faults: dict[str, int] = {}
        self.samples: list[dict[str, float]] = []
        self.acked: set[str] = set()

    def run(self, seconds: float) -> None:
        """Faults on a timer, and every minute a rest in which everything must add up."""
        harms: list[Callable[[], None]] = [
            self._kill,
            self._stop,
            self._cut,
            self._reset,
            self._lose,
            self._part,
        ]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            load = Publishing(self.stage, self.types, per_second=PER_S, batch=10, threads=3)
            rest_at = min(end, time.monotonic() + QUIET_EVERY_S)
            while time.monotonic() + FAULT_EVERY_S / 2 < rest_at:
                time.sleep(self.stage.rng.uniform(0.5, 1.5) * FAULT_EVERY_S / 2)
                harm = self.stage.rng.choice(harms)
                harm()
                self.faults[harm.__name__] = self.faults.get(harm.__name__, 0) + 1
            self.acked |= load.stop().keys()
            self.stage.drained(120)
            self._weigh()

    def _victim(self) -> Process:
        return self.stage.rng.choice(self.stage.workers[1:])

    def _kill(self) -> None:
        victim = self._victim()
        victim.kill()
        self.stage.replace(victim)

    def _stop(self) -> None:
        victim = self._victim()
        victim.child.send_signal(signal.SIGSTOP)
        time.sleep(TAKEOVER_S + 1)
        victim.child.send_signal(signal.SIGCONT)

    def _cut(self) -> None:
        assert self.stage.proxy is not None
        self.stage.proxy.cut(resets=False)
        time.sleep(2)
        self.stage.proxy.heal(forgets=self.stage.rng.random() < 0.5)

    def _reset(self) -> None:
        assert self.stage.proxy is not None
        self.stage.proxy.cut(resets=True)
        time.sleep(1)
        self.stage.proxy.heal(forgets=False)

    def _lose(self) -> None:
        network.obstruct(self.catcher.port, "numgen random mod 100 < 20 drop")
        time.sleep(3)
        network.clear()

    def _part(self) -> None:
        network.obstruct(self.catcher.port, self.stage.rng.choice(("drop", "reject with tcp reset")))
        time.sleep(3)
        network.clear()

    def _weigh(self) -> None:
        """At rest: check that everything adds up, and how much the witness holds."""
        states = dict(self.stage.query("SELECT state, count(*) FROM deliveries GROUP BY state"))
        accepted = self.stage.query("SELECT count(*) FROM events")[0][0]
        pruned = self.stage.query("SELECT coalesce(sum(deliveries), 0) FROM pruned")[0][0]
        if accepted != sum(states.values()) + pruned:
            self.stage.wrong.append(f"conservation: {accepted} accepted, {states} and {pruned} pruned")
        if missing := len(self.acked - self.stage.events()):
            self.stage.wrong.append(f"conservation: {missing} promised and not there")
        self.stage.figures["rests"] = self.stage.figures.get("rests", 0) + 1
        process = psutil.Process(self.witness.child.pid)
        self.samples.append(
            {
                "files": process.num_fds(),
                "tasks": self.stage.tasks(self.witness),
                "mb": process.memory_info().rss / 1e6,
            }
        )


def soak(stage: Stage) -> None:
    """F35: kills, pauses, cuts, lost packets, at 300 events a second."""
    soak = Soak(stage)
    soak.run(stage.size(130, 1_800))
    arrivals = stage.arrivals()
    arrived = {each.id for each in arrivals}
    first, last = soak.samples[0], soak.samples[-1]
    stage.at_most("lost", len(soak.acked - arrived), 0)
    stage.at_most("more_files", last["files"] - first["files"], MORE_FILES)
    stage.at_most("more_tasks", last["tasks"] - first["tasks"], MORE_TASKS)
    stage.at_most("more_mb", last["mb"] - first["mb"], MORE_MB)
    stage.figures["acked"] = len(soak.acked)
    stage.figures["duplicated"] = len(arrivals) - len(arrived)
    stage.figures |= {f"faults{name}": count for name, count in sorted(soak.faults.items())}
    dead = stage.query("SELECT count(*) FROM deliveries WHERE state <> 'delivered'")[0][0]
    stage.at_most("not_delivered", dead, 0)


ROWS = {
    "F35": Study(
        "half an hour of everything",
        POSTGRES,
        0,
        "",
        "",
        soak,
        missing=network.missing,
        own_network=True,
        seconds=600,
    )
}
