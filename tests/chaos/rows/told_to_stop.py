"""Rows: a worker with deliveries under way is stopped, for a while or for good."""

import signal
import subprocess
import time

from tests.chaos.checker import Limits
from tests.chaos.process import Process, wait_for
from tests.chaos.row import BOTH, BURST, POSTGRES, REDELIVERY_S, Row, pause, replace
from tests.chaos.scene import ENDPOINT, TAKEOVER_S, Scene
from tests.chaos.system import System

UNDER_WAY = 200  # requests of the process that is told to stop
SLOTS = 300
EACH = 50  # an endpoint may have as many
DRAIN_S = 30.0
STARTS_S = 0.1  # after the signal, until no attempt starts
HELD_S = 1.0  # after the signal, until those under way are answered, and others could start in their place
TWICE = 4  # every how manieth trial sends a second signal
AT_ONCE_S = 1.0


def stop_a_worker_past_its_lease(system: System) -> list[str]:
    """F06: another worker owns the lane when it wakes."""
    system.publish(BURST)
    pause(system, 0.3, 1.0)
    victim = system.busy()
    victim.child.send_signal(signal.SIGSTOP)
    system.note("stop", victim, lasted=TAKEOVER_S + 2)  # what is read of it meanwhile it had sent before
    time.sleep(TAKEOVER_S + 2)
    victim.child.send_signal(signal.SIGCONT)
    return []


def drain(system: System) -> list[str]:
    """F07: SIGTERM with 200 requests under way, which are answered a second later."""
    paths = [f"/{n}" for n in range(system.scene.endpoints)]
    for path in paths:
        system.order(path=path, wait=0.0)
    system.publish(BURST)  # accepted at once: then every endpoint may have as many under way as it wants
    system.published()
    if not system.is_drained():
        return ["not drained before it began"]
    for path in paths:
        system.order(path=path, hold=True)
    system.publish(3 * UNDER_WAY)
    victim = wait_for(lambda: _busy_enough(system), f"a process with {UNDER_WAY} under way")
    under_way = _under_way(system, victim)
    system.figures["under_way"] = min(under_way, system.figures.get("under_way", under_way))
    tells_twice = len(system.faults) % TWICE == TWICE - 1
    told = time.time()
    victim.child.send_signal(signal.SIGTERM)
    if tells_twice:
        system.note("second signal", victim, lasted=float("inf"))  # cuts off all it has under way
    else:
        system.note("drain", victim, excuses=False)
    time.sleep(HELD_S)
    if tells_twice:
        victim.child.send_signal(signal.SIGTERM)
        wrong = _ends(system, victim, AT_ONCE_S, {0, 1, -signal.SIGTERM})
    for path in paths:
        system.order(path=path, wait=0.0)
    if not tells_twice:
        wrong = _ends(system, victim, DRAIN_S, {0})
        system.worst("drained_s", time.time() - told)
    replace(system, victim)
    return wrong if tells_twice else wrong + _started_late(system, victim, told)


def _started_late(system: System, victim: Process, told: float) -> list[str]:
    """Did it begin anything after it was told to stop? It settled everything it sent, and nobody else did."""
    starts = system.database.starts()
    own = [starts.get((each.id, each.attempt), told) for each in system.receipts() if each.by == victim.name]
    late = max(own) - told
    system.worst("last_start_s", late)
    return [f"an attempt began {late:.1f} s after the signal"] if late > STARTS_S * system.leeway else []


def _under_way(system: System, process: Process) -> int:
    return sum(each["by"] == process.name for each in system.order(ask="open"))


def _busy_enough(system: System) -> Process | None:
    return next((each for each in system.senders if _under_way(system, each) >= UNDER_WAY), None)


def _ends(system: System, process: Process, seconds: float, statuses: set[int]) -> list[str]:
    allowed = seconds * system.leeway
    began = time.monotonic()
    try:
        status = process.child.wait(min(allowed, seconds * system.patience) + 5)
    except subprocess.TimeoutExpired:
        process.kill()
        return [f"it did not end within {allowed:g} s"]
    took = time.monotonic() - began
    return [] if status in statuses and took <= allowed else [f"exit {status} after {took:.1f} s"]


ROWS = {
    "F06": Row(
        "a worker stops past its lease",
        POSTGRES,
        10,
        "settle-unfenced",
        "resettled",
        stop_a_worker_past_its_lease,
        everyday=True,
    ),
    "F07": Row(
        "SIGTERM",
        BOTH,
        10,
        "exit-at-once",
        "drain sent",
        drain,
        Limits(in_flight=SLOTS, redelivery_s=REDELIVERY_S),
        Scene(
            workers=2,
            endpoint={**ENDPOINT, "max_in_flight": EACH, "timeout_ms": 60_000},
            settings={"HOOKLINE_MAX_IN_FLIGHT": str(SLOTS)},
        ),
        everyday=True,
    ),
}
