"""Study: deliveries to an endpoint that packets do not reach, and everybody else's."""

import time
from collections import Counter

from hookline import ids
from tests.chaos import network
from tests.chaos.figures import percentile
from tests.chaos.process import wait_for
from tests.chaos.row import POSTGRES
from tests.chaos.stage import Arrival, Catcher, Publishing, Stage, waits
from tests.chaos.study import Study

LANES = 6  # endpoints that packets reach, and as many that they do not
PER_S = 100.0  # to each half
TIMEOUT_MS = 2_000
WAIT_S = 0.5  # between attempts
FAULT_S = 6.0
WARM_UP_S = 3.0
BASE_MS = 25.0  # a ratio to less than this is due to scheduling, not to hookline
HINDRANCES = {
    "partition": "drop",
    "loss": "numgen random mod 100 < 20 drop",
    "reset": "reject with tcp reset",
}
KINDS = frozenset({"connect_timeout", "connect_refused", "connect_failed", "timeout", "reset", "protocol"})


def lose_packets(stage: Stage) -> None:
    """F13: all of them, a fifth of them, or refused, in turn."""
    stage.configure(heartbeat_s=2, takeover_s=10)
    far, near = stage.catcher(), stage.catcher()
    stage.start(workers=1)
    for name, catcher in (("far", far), ("near", near)):
        for n in range(LANES):
            stage.endpoint(
                catcher.url(f"/{n}"),
                f"{name}.t{n}",
                timeout_ms=TIMEOUT_MS,
                retry={"schedule": [WAIT_S] * 40, "jitter": "none"},
            )
    load = [
        Publishing(stage, [f"{name}.t{n}" for n in range(LANES)], per_second=PER_S, batch=5)
        for name in ("far", "near")
    ]
    spans: dict[str, tuple[float, float]] = {}
    time.sleep(WARM_UP_S)
    began = time.time()
    time.sleep(FAULT_S)
    spans["baseline"] = (began, time.time())
    for name, rule in HINDRANCES.items():
        network.obstruct(far.port, rule)
        began = time.time()
        time.sleep(FAULT_S)
        network.clear()
        spans[name] = (began, time.time())
        time.sleep(TIMEOUT_MS / 1e3)
    sent_far, sent_near = (each.stop() for each in load)
    healed = time.time()
    arrivals = _all(far, sent_far)
    stage.figures["all_arrived_s"] = max(0.0, max(each.began for each in arrivals) - healed)
    stage.drained(30)
    stage.at_most("lost", len(sent_far.keys() - {each.id for each in arrivals}), 0)
    _judge_the_near(stage, _all(near, sent_near), sent_near, spans)
    _judge_attempts(stage, arrivals)


def _all(catcher: Catcher, sent: dict[str, float]) -> list[Arrival]:
    def look() -> list[Arrival] | None:
        found = catcher.arrivals()
        return found if sent.keys() <= {each.id for each in found} else None

    return wait_for(look, "all that was sent", 60)


def _judge_the_near(
    stage: Stage, arrivals: list[Arrival], sent: dict[str, float], spans: dict[str, tuple[float, float]]
) -> None:
    p99 = {
        name: 1e3
        * percentile(waits(arrivals, {id: at for id, at in sent.items() if since <= at < until}), 0.99)
        for name, (since, until) in spans.items()
    }
    stage.figures["near_p99_baseline_ms"] = p99["baseline"]
    for name in HINDRANCES:
        stage.figures[f"near_p99_{name}_ms"] = p99[name]
        stage.at_most(f"near_p99_{name}_ratio", p99[name] / max(p99["baseline"], BASE_MS), 2.0, is_time=True)
    stage.at_most("near_duplicates", len(arrivals) - len({each.id for each in arrivals}), 0)


def _judge_attempts(stage: Stage, arrivals: list[Arrival]) -> None:
    """Every failure has a name, every retry waits for its time, and nothing arrives that was not tried."""
    found = stage.query(
        "SELECT a.delivery_id, a.number, extract(epoch FROM a.at)::float8, a.duration, a.error FROM attempts a"
        " ORDER BY a.delivery_id, a.number"
    )
    errors = Counter(error for *_, error in found if error is not None)
    stage.figures |= {f"errors_{kind}": count for kind, count in sorted(errors.items())}
    stage.at_least("failures", errors.total(), 1)
    stage.at_most("unclassed", sum(count for kind, count in errors.items() if kind not in KINDS), 0)
    early = 0
    tried: Counter[str] = Counter()
    last: dict[object, float] = {}
    for delivery, _, at, duration, _ in found:
        # Both times are the worker's view of the database's clock, which it reads anew every quarter of a second.
        early += delivery in last and at < last[delivery] + WAIT_S - 0.05
        last[delivery] = at + duration
        tried[ids.show("event", delivery.bytes)] += 1
    stage.at_most("early_retries", early, 0)
    stage.figures["attempts"] = len(found)
    # A request whose answer is lost has arrived and failed; none arrives more often than it was tried.
    stage.at_most("unexplained", (Counter(each.id for each in arrivals) - tried).total(), 0)


ROWS = {
    "F13": Study(
        "packets to an endpoint are dropped, lost and refused",
        POSTGRES,
        5,
        "",
        "",
        lose_packets,
        missing=network.missing,
        own_network=True,
    )
}
