"""Study: whether an endpoint that comes back survives its own backlog."""

import threading
import time
from itertools import pairwise

from tests.chaos.figures import most_at_once, most_within
from tests.chaos.row import POSTGRES
from tests.chaos.stage import Arrival, Stage
from tests.chaos.study import Study

CAPACITY = 50  # requests a second that the endpoint can answer
RATE, BURST = 50, 10
CAP = 10
LATENCY_S = 0.05
CIRCUIT = {
    "consecutive_failures": 5,
    "failure_rate": 0.5,
    "window_s": 60,
    "min_attempts": 10,
    "cooldown_s": 2,
    "max_cooldown_s": 10,
}


class Circuit(threading.Thread):
    """Polls an endpoint's circuit, and keeps what it saw."""

    def __init__(self, stage: Stage, endpoint: str) -> None:
        super().__init__(daemon=True)
        self._stage = stage
        self._endpoint = endpoint
        self._ending = threading.Event()
        self.seen: list[tuple[float, str]] = []
        self.start()

    def run(self) -> None:
        while not self._ending.wait(0.1):
            _, endpoint = self._stage.call("GET", f"/v1/endpoints/{self._endpoint}")
            self.seen.append((time.time(), endpoint["circuit_state"]["state"]))

    def stop(self) -> None:
        self._ending.set()
        self.join(30)


def come_back(stage: Stage) -> None:
    """F27: down for a minute with thousands due, then up with little capacity."""
    down_s, due = stage.size(60, 60), stage.size(5_000, 5_000)
    catcher = stage.catcher()
    stage.start(workers=2)
    endpoint = stage.endpoint(
        catcher.url("/"),
        "herd",
        retry={"base": 1, "factor": 2, "cap": 10, "attempts": 50, "jitter": "full"},
        rate_limit={"per_second": RATE, "burst": BURST},
        max_in_flight=CAP,
        circuit=CIRCUIT,
    )
    catcher.answer(status=503)
    sent = stage.seed([endpoint], due, event_type="herd")
    circuit = Circuit(stage, endpoint)
    time.sleep(down_s)
    catcher.answer(latency=LATENCY_S, per_second=CAPACITY, queue=CAPACITY)
    up = time.time()
    stage.drained(60 + 3 * due / CAPACITY)
    circuit.stop()
    arrivals = sorted(catcher.arrivals(), key=lambda each: each.began)
    while_up = [each for each in arrivals if each.began > up]
    while_down = [each for each in arrivals if each.began <= up]
    _judge(stage, while_up)
    states = [state for at, state in circuit.seen if at > up]
    closed = states.index("closed") if "closed" in states else len(states)
    trips = sum(now == "open" and before != "open" for before, now in pairwise(states[closed:]))
    stage.at_most("second_trips", trips, 0)
    # Five failures open it, those beside them may be under way; then one probe for each cooldown, of 2, 4, 8, 10 s.
    probes = 3 + max(0.0, down_s - 14) / 10 + 1
    stage.at_most("requests_while_down", len(while_down), 5 + CAP + probes)
    stage.at_most("lost", len(set(sent) - {each.id for each in arrivals if each.status == 200}), 0)
    stage.figures["drain_s"] = max(each.began for each in while_up) - up


def _judge(stage: Stage, while_up: list[Arrival]) -> None:
    accepted = [each for each in while_up if each.status == 200]
    first, second = while_up[0], while_up[1]
    stage.at_most("probes_at_once", 1 + (second.began < first.ended), 1)
    stage.at_most("turned_away", len(while_up) - len(accepted), 0)
    most = min(RATE + BURST, CAP / LATENCY_S)
    stage.at_most("most_in_a_second", most_within([each.began for each in while_up], 1.0), most)
    # One at a time after the probe, and twice as many with each success: the n-th answer allows 2^n at most.
    for n in range(1, 4):
        began = [(each.began, each.ended) for each in while_up if each.began < accepted[n].ended]
        stage.at_most(f"at_once_before_answer_{n + 1}", most_at_once(began), 2 ** (n - 1))


ROWS = {
    "F27": Study(
        "an endpoint comes back to its backlog",
        POSTGRES,
        1,
        "no-ramp",
        "at_once_before_answer",
        come_back,
        seconds=400,
    )
}
