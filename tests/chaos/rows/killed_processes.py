"""Rows: a process is killed with deliveries under way."""

import contextlib
import subprocess

from tests.chaos.checker import Limits
from tests.chaos.process import wait_for
from tests.chaos.row import ARMED_S, BOTH, BURST, POSTGRES, SQLITE, Row, pause, replace
from tests.chaos.scene import IN_FLIGHT, TAKEOVER_S
from tests.chaos.system import System

PLACES = (
    "take.after",
    "load.after",
    "send.before",
    "send.after",
    "answer.after",
    "settle.before",
    "settle.after",
)


def kill_a_worker(system: System) -> list[str]:
    """F05: at a random moment, or at a step of a delivery."""
    system.publish(BURST)
    pause(system, 0.1, 0.7)
    victim = system.busy()
    place = system.rng.choice((*PLACES, *(("random",) * 3)))
    if place != "random":
        victim.arm(
            f"{place}=kill@{system.rng.randint(1, 3 if place.startswith(('take', 'settle', 'load')) else 60)}"
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.child.wait(ARMED_S)
    died_there = not victim.lives
    victim.kill()
    system.note(f"kill at {place}" if died_there else "kill", victim)
    replace(system, victim)
    return []


def kill_the_server(system: System) -> list[str]:
    """F04: SQLite's one process, at a random moment."""
    system.publish(BURST)
    pause(system, 0.1, 1.5)
    system.api.kill()
    system.note("kill", system.api)
    wrong = [] if system.database.is_whole() else ["the file is broken"]
    replace(system, system.api)
    first, last = system.starts[0], system.starts[-1]
    # The machine is shared: the first start shows what a start costs today.
    return wrong + (
        [f"it took {last:.1f} s to start, {first:.1f} s before"]
        if last > max(2.0 * system.leeway, 3 * first)
        else []
    )


def kill_between_commit_and_answer(system: System) -> list[str]:
    """F08: the producer sends it again with the same key."""
    victim = system.api
    victim.arm(f"accept.after=kill@{system.rng.randint(1, 8)}")
    system.publish(BURST // 4)
    with contextlib.suppress(subprocess.TimeoutExpired):
        victim.child.wait(ARMED_S)
    died_there = not victim.lives
    victim.kill()
    system.note("kill at accept.after" if died_there else "kill", victim)
    replace(system, victim)
    return []


def kill_the_undertaker(system: System) -> list[str]:
    """F10: the process that buries a dead worker dies while it does so."""
    system.publish(BURST)
    pause(system, 0.3, 1.0)
    victim = system.busy()
    others = [each for each in system.workers if each is not victim]
    for other in others:
        other.arm(f"{system.rng.choice(('bury.after', 'free.after'))}=kill")
    victim.kill()
    system.note("kill", victim)
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: not all(each.lives for each in others), "an undertaker's death", 10)
    for other in others:
        if other.lives:
            other.disarm()
    dead = [other for other in others if not other.lives]  # two may notice the same death at the same moment
    for other in dead:
        system.note("kill over a burial", other)
    for each in (*dead, victim):
        system.replace(each)
    return []


ROWS = {
    "F04": Row(
        "kill -9 the process on an SQLite file",
        SQLITE,
        20,
        "answer-before-commit",
        "lost",
        kill_the_server,
        everyday=True,
    ),
    "F05": Row("kill -9 a worker", BOTH, 40, "settle-before-send", "lost", kill_a_worker, everyday=True),
    "F08": Row(
        "kill -9 between commit and answer",
        BOTH,
        20,
        "forget-keys",
        "twins",
        kill_between_commit_and_answer,
        everyday=True,
    ),
    "F10": Row(
        "kill -9 over a burial",
        POSTGRES,
        10,
        "bury-without-freeing",
        "lost",
        kill_the_undertaker,
        Limits(in_flight=IN_FLIGHT, redelivery_s=2 * TAKEOVER_S + 2),
        everyday=True,
    ),
}
