"""Study: how fast a backlog is delivered, and whether the pace holds to its end."""

import subprocess
import sys
import time

from tests.chaos.figures import percentile, slope
from tests.chaos.row import BOTH, SQLITE
from tests.chaos.stage import Stage
from tests.chaos.study import Study
from tests.chaos.system import HERE

LANES = 100
BODY = b'{"filling":"' + b"x" * 1_000 + b'"}'
BARE = 20_000  # requests of the bare loop that everything is compared with
SAMPLE_S = 0.5
MOST_READ = 10.0  # rows of the index for each delivery, however long the backlog is
SLOTS = 200  # and so 400 in memory: enough loads to compare the first with the last


def drain_a_backlog(stage: Stage) -> None:
    """F26: a backlog written without the API, worked off by one process."""
    count = stage.size(50_000, 1_000_000)
    catcher = stage.catcher()
    bare = _bare_rate(catcher.port)
    stage.configure(heartbeat_s=2, takeover_s=10, poll_s=0.5, max_in_flight=SLOTS)
    stage.scene = stage.scene._replace(settings={**stage.scene.settings, "CHAOS_TIMES": "1"})
    stage.start()
    # Lanes keep the bug small: each lane skips only its own rows. With one lane it is as in a single queue.
    lanes = [
        stage.endpoint(catcher.url(f"/{n}"), f"backlog.t{n}", max_in_flight=SLOTS)
        for n in range(1 if stage.bug else LANES)
    ]
    stage.api.kill()
    if stage.bug:  # the other half of it: see bugs/scale.py
        stage.query("DROP INDEX deliveries_ready")
        stage.query("CREATE INDEX deliveries_ready ON deliveries (endpoint_id, seq)")
    sent = stage.seed(lanes, count, payload=BODY)
    before = len(catcher.arrivals())
    began = time.time()
    if stage.store == "postgres":
        stage.query("VACUUM ANALYZE deliveries")
        worker = stage.worker()
        stage.workers.append(worker)
    else:
        stage.serve()
        worker = stage.api
    rss: list[tuple[float, float]] = []
    deadline = time.monotonic() + 60 + count / 100
    while pending := stage.database.pending():
        rss.append((count - pending, stage.rss_mb(worker)))
        if time.monotonic() > deadline:
            raise TimeoutError("the backlog does not end")
        time.sleep(SAMPLE_S)
    arrivals = sorted(catcher.arrivals()[before:], key=lambda each: each.began)
    took = arrivals[-1].began - arrivals[0].began
    stage.at_least("share_of_bare_loop", count / took / bare, 0.3, is_time=True)
    stage.figures["per_s"] = count / took
    stage.figures["bare_per_s"] = bare
    tenth = max(2, len(arrivals) // 10)
    first_s = arrivals[tenth - 1].began - arrivals[0].began
    last_s = arrivals[-1].began - arrivals[-tenth].began
    stage.at_least("last_tenth_to_first", first_s / last_s, 0.8, is_time=True)
    loads = [t for at, t in stage.verb_times("load") if began <= at <= arrivals[-1].began]
    some = max(1, len(loads) // 10)
    early, late = percentile(loads[:some], 0.99), percentile(loads[-some:], 0.99)
    middle = percentile(loads[-some:], 0.5) / max(percentile(loads[:some], 0.5), 0.001)
    stage.at_most("claim_p50_last_to_first", middle, 2.0, is_time=True)
    stage.figures["claims"] = len(loads)
    stage.figures["claim_p99_first_ms"] = 1e3 * early
    stage.figures["claim_p99_last_ms"] = 1e3 * late
    stage.at_most("claim_p99_last_to_first", late / max(early, 0.005), 2.0, is_time=True)
    if stage.store == "postgres":
        read = stage.query(
            "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'deliveries_ready'"
        )
        stage.at_most("claim_rows_per_delivery", read[0][0] / count, MOST_READ)
    arrived = {each.id for each in arrivals}
    stage.at_most("lost", len(set(sent) - arrived), 0)
    stage.at_most("duplicates", len(arrivals) - len(arrived), 0)
    # In the first half the process still grows to its working size.
    settled = [(done / 100_000, mb) for done, mb in rss if done >= count / 2]
    grown = slope(settled) * count / 2 / 100_000
    stage.at_most("rss_growth_mb", grown, 5.0 * max(1.0, count / 2 / 100_000))
    stage.figures["rss_mb"] = max(mb for _, mb in rss)


def _bare_rate(port: int) -> float:
    found = subprocess.run(
        [sys.executable, str(HERE / "bare.py"), str(port), str(BARE)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return float(found.stdout)


ROWS = {
    "F26": Study(
        "a backlog is worked off",
        BOTH,
        1,
        "read-from-the-beginning",
        "claim_rows_per_delivery",
        drain_a_backlog,
        unseen_on=SQLITE,  # SQLite does not report how many rows it read, and times are too noisy at this size
        seconds=900,
    )
}
