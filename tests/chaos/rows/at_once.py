"""Rows: many do the same thing at the same moment."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.row import BOTH, BURST, POSTGRES, Row, replace
from tests.chaos.system import System


def publish_one_key_at_once(system: System) -> list[str]:
    """F09: fifty times the same, from fifty threads, then after a restart; then another body with the same key."""
    n = len(system.promises())
    key, digest, publish = system.offer(n)
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: publish(), range(50)))
    system.api.kill()
    system.note("kill", system.api)
    replace(system, system.api)
    answers.append(publish())
    ids = {id for _, id in answers}
    system.promise(did="intent", key=key, digest=digest)
    for id in ids:
        system.promise(did="ack", key=key, id=id)
    wrong = [f"{len(ids)} events of one key"] if len(ids) != 1 or {s for s, _ in answers} != {202} else []
    other, _ = system.offer(n, filling="another")[2]()
    return wrong + ([] if other == 422 else [f"another body under the key: {other}"])


def start_many_at_once(system: System) -> list[str]:
    """F11: all of them find the same due rows."""
    for each in system.workers:
        each.child.send_signal(signal.SIGTERM)
    for each in system.workers:
        each.child.wait(35)
    system.publish(BURST)
    time.sleep(1.0)
    system.workers = [system.begin_worker() for _ in range(5)]
    for each in system.workers:
        each.wait_until(r"(delivering) from")
    system.is_drained(20.0)
    return ["a deadlock"] if any("deadlock" in each.log for each in system.workers) else []


ROWS = {
    "F09": Row(
        "fifty publishes of one key", BOTH, 10, "forget-keys", "twins", publish_one_key_at_once, everyday=True
    ),
    "F11": Row(
        "five workers at once",
        POSTGRES,
        10,
        "take-what-is-taken",
        "unexplained",
        start_many_at_once,
        everyday=True,
    ),
}
