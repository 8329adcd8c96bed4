"""Study: what is lost when the kernel kills a worker for its memory, and how much memory one needs."""

import signal
import time
from collections.abc import Callable

from tests.chaos import memory
from tests.chaos.checker import CLOCKS_S
from tests.chaos.memory import MemoryGroup
from tests.chaos.process import wait_for
from tests.chaos.row import POSTGRES
from tests.chaos.scene import IN_FLIGHT, TAKEOVER_S
from tests.chaos.stage import Stage
from tests.chaos.study import Study

LANES = 10
BIG = b'{"filling":"' + b"x" * (256 << 10) + b'"}'
LATENCY_S = 0.3
ROOM_BYTES = 64 << 20  # above what the worker has when it begins to run out
MOST_MB = 250.0


def run_out_of_memory(stage: Stage) -> None:
    """F18: with large payloads under way; then another worker takes over."""
    count = stage.size(1_200, 1_200)
    catcher = stage.catcher()
    catcher.answer(latency=LATENCY_S)
    stage.start()
    lanes = [stage.endpoint(catcher.url(f"/{n}"), f"big.t{n}", max_in_flight=100) for n in range(LANES)]
    sent = stage.seed(lanes, count, payload=BIG)
    victim = stage.worker()
    stage.workers.append(victim)
    group = MemoryGroup(f"hookline-chaos-{victim.child.pid}")
    try:
        rss = _watch(stage, catcher_count=lambda: len(catcher.arrivals()), until=count // 2)
        group.add(victim.child.pid)
        group.limit(ROOM_BYTES)
        victim.arm("answer.after=hog@5")
        status = victim.child.wait(60)
        died = time.time()
    finally:
        stage.workers[0].kill()
        group.close()
    stage.at_least("killed_by_the_kernel", status == -signal.SIGKILL, 1)
    stage.at_most("rss_mb", max(rss), MOST_MB)
    replaced = time.time()
    stage.workers = [stage.worker()]
    up = time.time()
    stage.drained(60)
    arrivals = catcher.arrivals()
    arrived = {each.id for each in arrivals}
    stage.at_most("lost", len(set(sent) - arrived), 0)
    # What arrived from the dead process and was not settled when it died; each of the unanswered had one of its slots.
    stored = stage.database.rows()
    unsettled = {
        each.id: each.ended > died
        for each in arrivals
        if each.began < replaced and not _was_settled(stored[each.id].done_at, died)
    }
    stage.at_most("unanswered", sum(unsettled.values()), IN_FLIGHT)
    stage.at_most("duplicates", len(arrivals) - len(arrived), len(unsettled))
    stage.figures["duplicate_bound"] = len(unsettled)
    again = [each.began for each in arrivals if each.began > replaced]
    stage.at_most("redelivered_s", min(again) - up if again else 0.0, TAKEOVER_S + 2, is_time=True)


def _was_settled(done_at: float | None, died: float) -> bool:
    return done_at is not None and done_at <= died - CLOCKS_S


def _watch(stage: Stage, *, catcher_count: Callable[[], int], until: int) -> list[float]:
    """The worker's memory while it works, until so many have arrived."""
    seen: list[float] = []

    def look() -> bool:
        seen.append(stage.rss_mb(stage.workers[0]))
        return catcher_count() >= until

    wait_for(look, "half of them", 60)
    return seen


ROWS = {
    "F18": Study(
        "the kernel kills a worker for its memory",
        POSTGRES,
        5,
        "keep-all-payloads",
        "rss_mb",
        run_out_of_memory,
        missing=memory.missing,
    )
}
