"""What is done to hookline in each row of the fault matrix, and which planted bug must show?

A trial is one fault under load: some events are published, something is killed, stopped or told to end, and
everything published arrives before the next trial begins. Times, victims and places come from the seed.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import psycopg

from tests.chaos.checker import GRACE_S, Limits
from tests.chaos.system import IN_FLIGHT, TAKEOVER_S, Process, System, wait_for

BURST = 400  # events of one trial
PLACES = (
    "take.after",
    "load.after",
    "send.before",
    "send.after",
    "answer.after",
    "settle.before",
    "settle.after",
)
ARMED_S = 5.0  # a place that is not reached by then is passed by, and the process killed wherever it is
DRAIN_TIMEOUT_S = 30.0
REDELIVERY_S = TAKEOVER_S + 2.0


class Row(NamedTuple):
    """One row: `trial` does the harm and mends it; what it returns is what it found wrong."""

    fault: str
    stores: tuple[str, ...]
    trials: int
    bug: str  # planted by CONTROL=1
    shows: str  # the violation that the bug must cause
    trial: Callable[[System], list[str]]
    limits: Limits = Limits(in_flight=IN_FLIGHT, redelivery_s=REDELIVERY_S)
    proxied: bool = False  # workers reach the database through a proxy that can be cut


def kill_a_worker(system: System) -> list[str]:
    """F05: at a random moment, or at a place on the way of a delivery."""
    system.publish(BURST)
    _pause(system, 0.1, 0.7)
    victim = system.busy()
    place = system.rng.choice((*PLACES, *(("random",) * 3)))
    if place != "random":
        victim.arm(
            f"{place}=kill@{system.rng.randint(1, 3 if place.startswith(('take', 'settle', 'load')) else 60)}"
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.child.wait(ARMED_S)
    died_there = victim.child.poll() is not None
    victim.kill()
    system.note(f"kill at {place}" if died_there else "kill", victim)
    _replace(system, victim)
    return []


def kill_the_server(system: System) -> list[str]:
    """F04: SQLite's one process, at a random moment."""
    system.publish(BURST)
    _pause(system, 0.1, 1.5)
    system.api.kill()
    system.note("kill")
    wrong = [] if system.database.is_whole() else ["the file is broken"]
    _replace(system, system.api)
    first, last = system.starts[0], system.starts[-1]
    # Processors are shared with whatever else runs here: the first start says what a start costs today.
    return wrong + (
        [f"it took {last:.1f} s to start, {first:.1f} s before"] if last > max(2.0, 3 * first) else []
    )


def kill_the_database(system: System) -> list[str]:
    """F01: the postmaster and all its children."""
    return _database_away(system, "kill")


def restart_the_database(system: System) -> list[str]:
    """F02: restarted by an operator, stopped without goodbye, or all its sessions ended."""
    return _database_away(system, system.rng.choice(("restart", "kill", "terminate")))


def _database_away(system: System, how: str) -> list[str]:
    server = system.server
    assert server is not None
    system.publish(BURST)
    _pause(system, 0.1, 1.0)
    pids = [each.child.pid for each in (system.api, *system.workers)]
    system.note(f"database {how}")
    if how == "terminate":
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
    else:
        (server.kill if how == "kill" else server.stop)()
        _pause(system, 0.0, 1.0)
        server.start()
    up = time.time()
    with contextlib.suppress(TimeoutError):
        wait_for(
            lambda: any(each.began > up for each in system.receipts()) or not system.database.pending(),
            "one",
            20,
        )
    took = time.time() - up
    wrong = [f"first delivery after {took:.1f} s"] if took > 5 else []
    if [each.child.pid for each in (system.api, *system.workers) if each.child.poll() is None] != pids:
        wrong.append("a process ended")
    return wrong


def stop_a_worker_past_its_lease(system: System) -> list[str]:
    """F06: the lane is another's when it wakes."""
    system.publish(BURST)
    _pause(system, 0.3, 1.0)
    victim = system.busy()
    victim.child.send_signal(signal.SIGSTOP)
    system.note("stop", victim)
    time.sleep(TAKEOVER_S + 2)
    victim.child.send_signal(signal.SIGCONT)
    return []


def drain(system: System) -> list[str]:
    """F07: SIGTERM under load."""
    system.publish(BURST)
    _pause(system, 0.3, 1.0)
    victim = system.busy()
    began = time.monotonic()
    victim.child.send_signal(signal.SIGTERM)
    system.note("drain", victim, excuses=False)
    try:
        status = victim.child.wait(35)
    except subprocess.TimeoutExpired:
        victim.kill()
        status = None
    took = time.monotonic() - began
    _replace(system, victim)
    return [] if status == 0 and took <= 30 else [f"exit {status} after {took:.1f} s"]


def kill_between_commit_and_answer(system: System) -> list[str]:
    """F08: the producer asks again with the same key."""
    victim = system.api
    victim.arm(f"accept.after=kill@{system.rng.randint(1, 8)}")
    system.publish(BURST // 4)
    with contextlib.suppress(subprocess.TimeoutExpired):
        victim.child.wait(ARMED_S)
    died_there = victim.child.poll() is not None
    victim.kill()
    system.note("kill at accept.after" if died_there else "kill", victim)
    _replace(system, victim)
    return []


def kill_the_undertaker(system: System) -> list[str]:
    """F10: whoever buries a dead worker dies over it."""
    system.publish(BURST)
    _pause(system, 0.3, 1.0)
    victim = system.busy()
    others = [each for each in system.workers if each is not victim]
    for other in others:
        other.arm(f"{system.rng.choice(('bury.after', 'free.after'))}=kill")
    victim.kill()
    system.note("kill", victim)
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: any(each.child.poll() is not None for each in others), "an undertaker's death", 10)
    for other in others:
        if other.child.poll() is None:
            other.arm("")
        else:
            system.note("kill over a burial", other)
            system.replace(other)
    system.replace(victim)
    return []


def publish_one_key_at_once(system: System) -> list[str]:
    """F09: fifty times the same, from fifty threads, then after a restart; then another body under the key."""
    n = len(system.promises())
    key, digest, publish = system.offer(n)
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: publish(), range(50)))
    system.api.kill()
    system.note("kill", system.api)
    _replace(system, system.api)
    answers.append(publish())
    ids = {id for _, id in answers}
    system.promise(did="intent", key=key, digest=digest)
    for id in ids:
        system.promise(did="ack", key=key, id=id)
    wrong = [f"{len(ids)} events of one key"] if len(ids) != 1 or {s for s, _ in answers} != {202} else []
    other, _ = system.offer(n, filling="another")[2]()
    return wrong + ([] if other == 422 else [f"another body under the key: {other}"])


def start_many_at_once(system: System) -> list[str]:
    """F11: all of them meet the same due rows."""
    for each in system.workers:
        each.child.send_signal(signal.SIGTERM)
    for each in system.workers:
        each.child.wait(35)
    system.publish(BURST)
    time.sleep(1.0)
    system.workers = [system.begin_worker() for _ in range(5)]
    for each in system.workers:
        each.wait_until(r"(delivering) from")
    system.is_drained(20)
    return ["a deadlock"] if any("deadlock" in each.log for each in system.workers) else []


def cut_off_the_database(system: System) -> list[str]:
    """F12: packets dropped and connections forgotten, packets dropped for a while, or connections reset."""
    assert system.proxy is not None
    how = ("half-open", "drop", "reset")[len(system.faults) % 3]
    system.publish(BURST)
    _pause(system, 0.2, 0.8)
    # An attempt may start for a second after the last look at the database: see pipeline/heart.py.
    system.note(how, lasted=1.5)
    system.proxy.cut(resets=how == "reset")
    _pause(system, 1.0, 5.0)
    system.proxy.heal(forgets=how == "half-open")
    healed = time.time()
    with contextlib.suppress(TimeoutError):
        wait_for(
            lambda: any(each.began > healed for each in system.receipts()) or not system.database.pending(),
            "one",
            15,
        )
    took = time.time() - healed
    return [f"first delivery {took:.1f} s after the {how} was healed"] if took > 10 else []


def _pause(system: System, least: float, most: float) -> None:
    time.sleep(system.rng.uniform(least, most))


def _replace(system: System, ended: Process) -> None:
    time.sleep(GRACE_S)  # what it had written is read by then: see the checker
    system.replace(ended)


BOTH, POSTGRES, SQLITE = ("sqlite", "postgres"), ("postgres",), ("sqlite",)
ROWS = {
    "F01": Row("kill -9 PostgreSQL", POSTGRES, 10, "commit-unflushed", "lost", kill_the_database, Limits()),
    "F02": Row(
        "PostgreSQL restarts", POSTGRES, 10, "answer-before-commit", "lost", restart_the_database, Limits()
    ),
    "F04": Row(
        "kill -9 the process on an SQLite file", SQLITE, 20, "answer-before-commit", "lost", kill_the_server
    ),
    "F05": Row("kill -9 a worker", BOTH, 40, "settle-before-send", "lost", kill_a_worker),
    "F06": Row(
        "a worker stops past its lease",
        POSTGRES,
        10,
        "settle-unfenced",
        "resettled",
        stop_a_worker_past_its_lease,
    ),
    "F07": Row("SIGTERM", BOTH, 10, "exit-at-once", "drain sent", drain),
    "F08": Row(
        "kill -9 between commit and answer", BOTH, 20, "forget-keys", "twins", kill_between_commit_and_answer
    ),
    "F09": Row("fifty publishes of one key", BOTH, 10, "forget-keys", "twins", publish_one_key_at_once),
    "F10": Row(
        "kill -9 over a burial",
        POSTGRES,
        10,
        "bury-without-freeing",
        "lost",
        kill_the_undertaker,
        Limits(in_flight=IN_FLIGHT, redelivery_s=2 * TAKEOVER_S + 2),
    ),
    "F11": Row("five workers at once", POSTGRES, 10, "take-what-is-taken", "unexplained", start_many_at_once),
    "F12": Row(
        "workers cut off from PostgreSQL",
        POSTGRES,
        10,
        "wait-for-ever",
        "lost",
        cut_off_the_database,
        Limits(),
        proxied=True,
    ),
}
