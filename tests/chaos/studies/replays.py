"""Study: each dead letter of a bulk replay is replayed once, whatever happens meanwhile."""

import contextlib
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.process import wait_for
from tests.chaos.row import BOTH
from tests.chaos.stage import Publishing, Stage
from tests.chaos.study import Study

LANES = 10
OLD_S = 40 * 86_400.0  # beyond what is kept of the delivered
KEY = "replay-of-the-outage"
REPEATS = 4
_REVIVING = threading.Lock()  # several requests at once, and one of them starts the job


def replay_in_bulk(stage: Stage) -> None:
    """F33: while events come and go, old ones are pruned, and the process that runs the job is killed."""
    count = stage.size(10_000, 100_000)
    catcher = stage.catcher()
    stage.start(workers=2)
    lanes = [stage.endpoint(catcher.url(f"/{n}"), f"again.t{n}") for n in range(LANES)]
    dead = stage.seed(lanes, count, event_type="again.dead", state="dead", age_s=3_600)
    stage.seed(lanes, count // 2, event_type="again.old", state="delivered", age_s=OLD_S)
    load = Publishing(stage, [f"again.t{n}" for n in range(LANES)], per_second=50)
    for each in stage.workers or [stage.api]:
        each.arm(f"{stage.rng.choice(('job.before', 'job.after'))}=kill@{stage.rng.randint(2, 6)}")
    with ThreadPoolExecutor(REPEATS) as threads:
        jobs = set(threads.map(lambda _: _order(stage), range(REPEATS)))
    stage.at_most("jobs", len(jobs), 1)
    pruning = stage.begin("prune", "prune", "--older-than", "30d", "--yes")
    killed = _await_deaths(stage)
    [job] = list(jobs)[:1]
    wait_for(lambda: _state(stage, job) != "running", "the job", 120 + count / 100)
    jobs.add(_order(stage))
    sent = load.stop()
    stage.drained(60 + count / 100)
    with contextlib.suppress(subprocess.TimeoutExpired):
        pruning.child.wait(120)
    pruned = pruning.child.poll()
    pruning.kill()
    arrivals = catcher.arrivals()
    again = set(dead)
    redriven = [each.id for each in arrivals if each.id in again]
    _, report = stage.call("GET", f"/v1/replays/{job}")
    stage.at_most("jobs_in_the_end", len(jobs), 1)
    stage.at_least("killed", killed, 1)
    stage.at_least("done", report["done"], count)
    stage.at_most("failed", report["failed"], 0)
    counts = dict(stage.query("SELECT replays, count(*) FROM deliveries GROUP BY replays"))
    stage.at_least("replayed_once", counts.get(1, 0), count)
    stage.at_most("replayed_more", sum(n for replays, n in counts.items() if replays > 1), 0)
    stage.at_most("lost", len(again - set(redriven)) + len(sent.keys() - {each.id for each in arrivals}), 0)
    # At a kill the process's requests under way may come twice: 100 at most.
    stage.at_most("duplicates", len(redriven) - len(set(redriven)), 100 * killed)
    stage.at_most("prune_exit", 99 if pruned is None else pruned, 0)
    left = stage.query("SELECT count(*) FROM events WHERE type = 'again.old'")[0][0]
    stage.at_most("not_pruned", left, 0)


def _order(stage: Stage) -> str:
    """Request the replay; returns its job, the same for every request with the same key."""

    def ask() -> str | None:
        with contextlib.suppress(OSError):  # on SQLite the API is the process that is killed
            status, answer = stage.call(
                "POST", "/v1/replays", {"filter": {"event_type": "again.dead"}}, key=KEY
            )
            if status == 202:
                return str(answer["id"])
            if status != 503:
                raise RuntimeError(f"no replay: {status} {answer}")
        _revive(stage)
        return None

    return wait_for(ask, "an answer to the order of a replay", 60)


def _state(stage: Stage, job: str) -> str:
    with contextlib.suppress(OSError):
        _, answer = stage.call("GET", f"/v1/replays/{job}")
        return str(answer.get("state", "running"))
    return "running"


def _await_deaths(stage: Stage) -> int:
    """The process that runs the job dies; another one is started in its place."""
    wait_for(lambda: _revive(stage) or _deaths(stage), "a death over the job", 60)
    time.sleep(0.5)
    _revive(stage)
    return _deaths(stage)


def _deaths(stage: Stage) -> int:
    return int(stage.figures.get("deaths", 0))


def _revive(stage: Stage) -> None:
    with _REVIVING:
        for each in [*stage.workers, *([] if stage.workers else [stage.api])]:
            if each.child.poll() is not None:
                stage.figures["deaths"] = _deaths(stage) + 1
                stage.note("kill over a job")
                stage.replace(each)


ROWS = {
    "F33": Study(
        "dead letters are replayed in bulk, and whoever does it dies",
        BOTH,
        1,
        "",
        "",
        replay_in_bulk,
        seconds=900,
    )
}
