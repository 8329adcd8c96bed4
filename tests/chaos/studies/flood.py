"""Study: whether other accounts wait when one account floods the system."""

import time

from tests.chaos.figures import percentile
from tests.chaos.process import wait_for
from tests.chaos.row import POSTGRES
from tests.chaos.stage import Arrival, Catcher, Publishing, Stage, waits
from tests.chaos.study import Study

OTHERS = 9
EACH_PER_S = 10.0
LATENCY_S = 0.005
FLOORS_MS = 25.0  # a ratio of times below this is due to scheduling, not to hookline


def flood(stage: Stage) -> None:
    """F24: one account's backlog beside nine accounts that publish a little."""
    count, quiet_s = stage.size(50_000, 500_000), stage.size(15, 30)
    stage.configure(heartbeat_s=2, takeover_s=10)
    catcher = stage.catcher()
    catcher.answer(latency=LATENCY_S)
    stage.start(workers=2)
    flooded = stage.endpoint(catcher.url("/flood"), "flood", account="flood", max_in_flight=100)
    types = [f"quiet.t{n}" for n in range(OTHERS)]
    for n, each in enumerate(types):
        stage.endpoint(catcher.url(f"/quiet/{n}"), each, account="quiet")
    solo = _drain(stage, catcher, flooded, count // 5)
    alone = Publishing(stage, types, per_second=OTHERS * EACH_PER_S, account="quiet")
    time.sleep(quiet_s)
    baseline = waits(_settled(catcher, alone.stop()), alone.sent_at)
    beside = Publishing(stage, types, per_second=OTHERS * EACH_PER_S, account="quiet")
    together = _drain(stage, catcher, flooded, count)
    sent = beside.stop()
    under = waits(_settled(catcher, sent), sent)
    base_ms, under_ms = 1e3 * percentile(baseline, 0.99), 1e3 * percentile(under, 0.99)
    stage.figures["baseline_p99_ms"] = base_ms
    stage.figures["flooded_p99_ms"] = under_ms
    stage.figures["flooded_p50_ms"] = 1e3 * percentile(under, 0.5)
    stage.at_most("quiet_p99_ratio", under_ms / max(base_ms, FLOORS_MS), 2.0, is_time=True)
    stage.figures["solo_per_s"] = solo
    stage.at_least("flood_to_solo", together / solo, 0.7, is_time=True)
    stage.at_most("lost", len(sent) - len(under), 0)
    stage.figures["others"] = len(sent)


def _drain(stage: Stage, catcher: Catcher, endpoint: str, count: int) -> float:
    """Write a flood and wait for its end; returns how many a second were delivered."""
    sent = set(stage.seed([endpoint], count, event_type="flood", account="flood"))
    before = len(catcher.arrivals())
    # An owned lane is polled, a free one is woken: either way it is found within a poll.
    wait_for(
        lambda: stage.query("SELECT count(*) FROM deliveries WHERE state = 'pending'")[0][0] < 100, "it", 600
    )
    moments = sorted(each.began for each in catcher.arrivals()[before:] if each.id in sent)
    return len(moments) / (moments[-1] - moments[0])


def _settled(catcher: Catcher, sent: dict[str, float]) -> list[Arrival]:
    """The arrivals, when they include the last of what was sent."""

    def look() -> list[Arrival] | None:
        found = catcher.arrivals()
        return found if sent.keys() <= {each.id for each in found} else None

    return wait_for(look, "the last of them", 30)


ROWS = {
    "F24": Study(
        "one account floods, nine publish a little",
        POSTGRES,
        1,
        "first-come-first",
        "quiet_p99_ratio",
        flood,
        seconds=900,
    )
}
