"""Study: whether a forgotten transaction slows down the search for work."""

import contextlib
import http.client
import json
import math
import threading
import time
from datetime import datetime
from typing import Self

import psycopg

from tests.chaos.figures import percentile
from tests.chaos.process import CEILING_S, Process
from tests.chaos.row import POSTGRES
from tests.chaos.stage import Publishing, Stage
from tests.chaos.study import Study

LANES = 20
PER_S = 1_000.0
CLAIM_MS = 50.0
WARNED_S = 30.0
OLD_S = 15.0  # of the metric: a snapshot this old is not hookline's own
METRIC = "hookline_store_oldest_snapshot_age_seconds"
BASE_S = 15
REMEMBERED_S = 30.0
ASK_EVERY_S = 2.0
MOST_GROWTH = 2.5  # growth of the rows read for one search, from the first third of the time to the last


def pin_a_snapshot(stage: Stage) -> None:
    """F25: dead rows pile up under a steady load while a snapshot is held that could still see them."""
    pinned_s, after_s = stage.size(120, 120), stage.size(60, 60)
    stage.configure(heartbeat_s=2, takeover_s=10, max_in_flight=1_000)
    stage.scene = stage.scene._replace(settings={**stage.scene.settings, "CHAOS_TIMES": "1"})
    catcher = stage.catcher()
    stage.start(workers=2)
    # Each lane skips only its own rows: with one lane the bug is as in a single queue.
    types = [f"pinned.t{n}" for n in range(1 if stage.bug else LANES)]
    for n, each in enumerate(types):
        stage.endpoint(catcher.url(f"/{n}"), each, max_in_flight=100)
    load = Publishing(stage, types, per_second=PER_S, batch=100)
    time.sleep(BASE_S)
    began = time.time()
    pinning = "-c application_name=forgotten"
    with _Watched(stage) as watched, psycopg.connect(stage.url, options=pinning) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM hookline.lanes")
        read = [_rows_read(stage)]
        for _ in range(3):
            time.sleep(pinned_s / 3)
            read.append(_rows_read(stage))
        connection.rollback()
        released = time.time()
        time.sleep(after_s)
    ended = time.time()
    sent = load.stop()
    claims = stage.verb_times("load") + stage.verb_times("take")
    before = _p99_ms(claims, 0, began)
    stage.figures["claim_p99_before_ms"] = before
    third = (released - began) / 3
    looks = [sum(began + n * third <= at < began + (n + 1) * third for at, _ in claims) for n in range(3)]
    early, late_rows = ((read[n + 1] - read[n]) / max(1, looks[n]) for n in (0, 2))
    stage.figures["claim_rows_last"] = late_rows
    # A lane remembers how far it had read 15 to 30 s ago: within that time the skipped rows grow anyway.
    most = MOST_GROWTH if stage.bug or third >= REMEMBERED_S else math.inf
    stage.at_most("claim_rows_growth", late_rows / max(early, 1.0), most)
    first, last = _p50_ms(claims, began, began + third), _p50_ms(claims, released - third, released)
    stage.figures["claim_p50_pinned_ms"] = last
    stage.at_most("claim_p50_growth", last / max(first, 1.0), 2.0, is_time=True)
    stage.at_most("claim_p99_pinned_ms", _p99_ms(claims, began, released), CLAIM_MS, is_time=True)
    late = _p99_ms(claims, ended - after_s / 3, ended)
    stage.at_most("claim_p99_after_to_before", late / max(before, 1.0), 2.0, is_time=True)
    if pinned_s > WARNED_S:
        said = [at for each in stage.workers for at in _warnings(each)]
        stage.at_most("logged_after_s", min(said, default=math.inf) - began, WARNED_S, is_time=True)
        stage.at_most("metric_raised_after_s", watched.raised - began, WARNED_S, is_time=True)
        stage.at_most("metric_cleared_after_s", watched.cleared - released, WARNED_S, is_time=True)
    stage.figures["events"] = len(sent)
    stage.figures["per_s"] = len(sent) / (ended - began + BASE_S)
    if stage.bug:
        return  # the bug has shown; it might never be drained
    stage.figures["drain_s"] = stage.drained(300)
    stage.at_most("lost", len(sent.keys() - {each.id for each in catcher.arrivals()}), 0)


class _Watched:
    """Reads the metric, as monitoring does: when it was first seen raised, and then first seen low again."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.raised = self.cleared = math.inf
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(CEILING_S)

    def _run(self) -> None:
        while not self._ending.wait(ASK_EVERY_S):
            with contextlib.suppress(OSError, http.client.HTTPException):  # a busy server: try again later
                age = self._age()
                if age >= OLD_S:
                    self.raised, self.cleared = min(self.raised, time.time()), math.inf
                else:
                    self.cleared = min(self.cleared, time.time())

    def _age(self) -> float:
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self._stage.port, timeout=CEILING_S)
        ) as connection:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        return next(
            (float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{METRIC} ")), 0.0
        )


def _warnings(process: Process) -> list[float]:
    """When it warned of the transaction that is held."""
    lines = [
        line for line in process.log.splitlines() if "store.old_snapshot" in line and '"forgotten"' in line
    ]
    return [datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp() for line in lines]


def _rows_read(stage: Stage) -> int:
    """Rows read so far of the index that finds work."""
    found = stage.query(
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'deliveries_ready'"
    )
    return int(found[0][0])


def _p99_ms(claims: list[tuple[float, float]], since: float, until: float) -> float:
    return 1e3 * percentile([took for at, took in claims if since <= at < until], 0.99)


def _p50_ms(claims: list[tuple[float, float]], since: float, until: float) -> float:
    return 1e3 * percentile([took for at, took in claims if since <= at < until], 0.5)


ROWS = {
    "F25": Study(
        "a snapshot is held for two minutes",
        POSTGRES,
        1,
        "read-from-the-beginning",
        "claim_rows_growth",
        pin_a_snapshot,
        seconds=500,
    )
}
