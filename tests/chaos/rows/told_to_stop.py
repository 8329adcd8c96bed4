"""What becomes of what a worker has in hand when it is stopped for a while, or for good?"""

import signal
import subprocess
import time

from tests.chaos.row import BOTH, BURST, POSTGRES, Row, pause, replace
from tests.chaos.scene import TAKEOVER_S
from tests.chaos.system import System


def stop_a_worker_past_its_lease(system: System) -> list[str]:
    """F06: the lane is another's when it wakes."""
    system.publish(BURST)
    pause(system, 0.3, 1.0)
    victim = system.busy()
    victim.child.send_signal(signal.SIGSTOP)
    system.note("stop", victim)
    time.sleep(TAKEOVER_S + 2)
    victim.child.send_signal(signal.SIGCONT)
    return []


def drain(system: System) -> list[str]:
    """F07: SIGTERM under load."""
    system.publish(BURST)
    pause(system, 0.3, 1.0)
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
    replace(system, victim)
    return [] if status == 0 and took <= 30 else [f"exit {status} after {took:.1f} s"]


ROWS = {
    "F06": Row(
        "a worker stops past its lease",
        POSTGRES,
        10,
        "settle-unfenced",
        "resettled",
        stop_a_worker_past_its_lease,
    ),
    "F07": Row("SIGTERM", BOTH, 10, "exit-at-once", "drain sent", drain),
}
