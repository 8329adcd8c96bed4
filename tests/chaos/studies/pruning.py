"""Study: whether pruning disturbs anybody.

The measuring is the benchmark's: a database with old deliveries, a server as its users start it, a steady load, and
pruning watched from outside. Here the figures are compared with the matrix, with a bug and without.
"""

import json
import os
import subprocess
import sys

from tests.chaos.process import ROOT
from tests.chaos.row import BOTH
from tests.chaos.stage import Stage
from tests.chaos.study import Study

PER_S = 1_000
SLOWER, LOCK_MS, STEP_MS = 2.0, 100.0, 1_000.0
LOAD_S = 45
SECONDS = 900.0


def prune_under_load(stage: Stage) -> None:
    """F28: 100,000 old deliveries are pruned, in the long set a million, beside a thousand events a second."""
    rows = stage.size(100_000, 1_000_000)
    report = stage.folder / "pruning.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "pruning.py"), "--stores", stage.store]
    command += ["--rows", str(rows), "--rate", str(PER_S), "--seconds", str(LOAD_S), "--report", str(report)]
    command += ["--patience", str(LOAD_S + (20 if stage.bug else stage.size(480, 2_400)))]
    command += ["--hookline", f"{sys.executable} -m tests.chaos.planted"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CHAOS_BUG": stage.bug}
    done = subprocess.run(
        command, env=environment, cwd=stage.folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or not report.exists():
        raise RuntimeError(f"the benchmark ended with {done.returncode}: {done.stderr[-1000:]}")
    found = json.loads(report.read_text())
    before, during, seen = found["before"], found["during"], found["seen"]
    stage.figures["per_s"] = before["delivered_per_s"]
    stage.figures["p99_before_ms"] = before["p99_ms"] or 0.0
    stage.figures["p99_during_ms"] = during["p99_ms"] or 0.0
    stage.figures["pruned_in_s"] = found["seconds"]
    slower = (during["p99_ms"] or 0.0) / (before["p99_ms"] or 1.0)
    stage.at_most("p99_during_to_before", slower, SLOWER, is_time=True)
    stage.at_most("longest_lock_wait_ms", seen["lock_wait_ms"], LOCK_MS, is_time=True)
    stage.at_most("longest_step_ms", seen["step_ms"], STEP_MS, is_time=True)
    # On SQLite a step makes everybody wait, and nobody outside sees it begin.
    slowest = max(before["max_ms"] or 0.0, during["max_ms"] or 0.0)
    stage.at_most("slowest_event_ms", slowest, 2 * STEP_MS, is_time=True)
    stage.at_most("not_pruned", rows - seen["pruned"], 0)
    stage.at_most("lost", found["missing"], 0)


ROWS = {
    "F28": Study(
        "old deliveries are pruned under load",
        BOTH,
        1,
        "prune-all-at-once",
        "_ms",  # the longest step, or the slowest event
        prune_under_load,
        seconds=SECONDS,
    )
}
