"""Study: which calls wait and which are refused when every packet to the database takes half a second.

Then a round trip takes a second, and no attempt begins: a worker that cannot read the database within a second cannot
know whether an endpoint still exists (pipeline/membership/heartbeat.py). So the connection gets slower in two steps,
and what is settled in the first is measured.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.figures import percentile
from tests.chaos.row import POSTGRES
from tests.chaos.stage import Publishing, Stage
from tests.chaos.study import Study

DELAYS_S = (0.2, 0.5)  # for each packet, each way
LANES = 10
CALLS_PER_S = 50.0
SHED_S = 2.0
SETTLE_S = 2.0
FAULT_S = 20
READERS = 60  # threads that call, so that as many calls wait at once as may


def slow_down(stage: Stage) -> None:
    """F17: publishes and reads, fifty a second, through a proxy that delays each packet."""
    fault_s = stage.size(FAULT_S, 60)
    # A lease of 10 s is more than six round trips.
    stage.configure(heartbeat_s=2, takeover_s=10)
    stage.scene = stage.scene._replace(settings={**stage.scene.settings, "CHAOS_TIMES": "1"})
    proxy = stage.proxied()
    catcher = stage.catcher()
    stage.start(workers=2)
    types = [f"slow.t{n}" for n in range(LANES)]
    for n, each in enumerate(types):
        stage.endpoint(catcher.url(f"/{n}"), each)
    load = Publishing(stage, types, per_second=CALLS_PER_S / 2, batch=1, threads=READERS // 2)
    _read(stage, 3)  # a server that was called before has its sessions
    began = time.time()
    answers = []
    for delay in DELAYS_S:
        proxy.slow(delay)
        stage.figures[f"arrived_before_{delay}"] = len(catcher.arrivals())
        answers += _read(stage, fault_s / len(DELAYS_S))
    ended = time.time()
    stage.figures["arrived_then"] = len(catcher.arrivals())
    proxy.slow(0.0)
    sent = load.stop()
    stage.drained(60)
    settles = [took for at, took in stage.verb_times("settle") if began <= at < ended]
    shed = [took for status, took in answers if status == 503]
    served = [took for status, took in answers if status == 200]
    stage.figures["reads_served"] = len(served)
    stage.figures["reads_served_p99_s"] = percentile(served, 0.99)
    stage.figures["shed"] = len(shed) + load.statuses.get(503, 0)
    # Here our own time limits decide, not the machine.
    stage.at_most("shed_slowest_s", max(shed, default=0.0), SHED_S * stage.leeway)
    stage.at_most("other_answers", len(answers) - len(shed) - len(served), 0)
    stage.at_most("slowest_publish_s", load.slowest, 10.0)
    stage.at_least("settles", len(settles), 1)
    stage.at_most("settle_p99_s", percentile(settles, 0.99), SETTLE_S, is_time=True)
    stage.at_most("burials", sum("worker.buried" in each.log for each in stage.workers), 0)
    arrivals = catcher.arrivals()
    arrived = {each.id for each in arrivals}
    stage.at_most("lost", len(sent.keys() - arrived), 0)
    stage.at_most("duplicates", len(arrivals) - len(arrived), 0)
    stage.figures["events"] = len(sent)


def _read(stage: Stage, seconds: float) -> list[tuple[int, float]]:
    """Read lists at a steady rate; returns how each call was answered, and after how long."""
    answers: list[tuple[int, float]] = []
    noting = threading.Lock()

    def ask(_: int) -> None:
        began = time.monotonic()
        try:
            status, _answer = stage.call("GET", "/v1/deliveries?limit=1", timeout=15)
        except OSError:
            status = 0
        with noting:
            answers.append((status, time.monotonic() - began))

    with ThreadPoolExecutor(READERS) as threads:
        due = time.monotonic()
        for n in range(int(seconds * CALLS_PER_S / 2)):
            time.sleep(max(0.0, due - time.monotonic()))
            due += 2 / CALLS_PER_S
            threads.submit(ask, n)
    return answers


ROWS = {
    "F17": Study(
        "every packet to PostgreSQL takes half a second",
        POSTGRES,
        3,
        "one-pool-for-all",
        "slowest_publish_s",
        slow_down,
    )
}
