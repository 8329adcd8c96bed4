"""Does hookline keep its promises while it is being killed?

Runs rows of the fault matrix with real processes and prints a line of JSON for each row and store; the exit
status is 0 if every promise held. With --control a bug is planted that the row must find: 1 then means that
every row found its bug, and 0 that one did not. 3 is a run that broke. See CONTRIBUTING.md.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.chaos.checker import check
from tests.chaos.registry import rows
from tests.chaos.row import Row
from tests.chaos.system import System

START_S, TRIAL_S = 120, 90  # ceilings: of the set-up, and of each trial
CONTROL_TRIALS = 5  # a bug that five trials do not show is not shown
CONTROL_DRAIN_S = 10.0
DRAIN_TIMEOUT_S = 30.0
ROWS = rows()
BROKEN = 3


class Ended(Exception):
    """It took too long, or was asked to stop."""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", default=",".join(ROWS), help="such as F05,F07 (default: all there are)")
    options.add_argument(
        "--store", choices=["sqlite", "postgres"], help="default: both, where a row has both"
    )
    options.add_argument("--trials", type=int, help="faults per row and store (default: the row's)")
    options.add_argument("--seed", type=int, help="default: by chance; it is printed")
    options.add_argument("--control", action="store_true", help="plant the row's bug: must exit 1")
    given = options.parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    names = [name for name in given.rows.upper().split(",") if name]
    if unknown := [name for name in names if name not in ROWS]:
        options.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    wanted = [
        (name, store)
        for name in names
        for store in ROWS[name].stores
        if given.store is None or store == given.store
    ]
    if not wanted:
        options.error(f"{given.rows} has no trials on {given.store}")
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, _end)
    try:
        results = [
            run(name, store, seed=seed, trials=given.trials, control=given.control) for name, store in wanted
        ]
    except (Ended, OSError, RuntimeError, subprocess.SubprocessError) as error:
        # Not 1: a run that broke has found nothing, with a bug or without.
        print(f"the run broke: {type(error).__name__}: {error}", file=sys.stderr)
        return BROKEN
    if given.control:
        return 0 if any(results) else 1
    return 0 if all(results) else 1


def run(name: str, store: str, *, seed: int, trials: int | None, control: bool) -> bool:
    """One row on one store; says whether every promise held, or with a bug whether it went unseen."""
    row = ROWS[name]
    planned = trials or (CONTROL_TRIALS if control else row.trials)
    if control:
        planned = min(planned, CONTROL_TRIALS)
    folder = Path(tempfile.mkdtemp(prefix="hookline-chaos-"))
    began = time.monotonic()
    signal.alarm(START_S + TRIAL_S * planned)
    bug = row.bug if control else ""
    try:
        with System(folder, store=store, seed=seed, bug=bug, scene=row.scene) as system:
            done, wrong = _trials(system, row, planned, CONTROL_DRAIN_S if control else DRAIN_TIMEOUT_S)
            report = check(
                system.promises(), system.receipts(), system.database.rows(), system.faults, row.limits
            )
            report |= {name: round(value, 2) for name, value in system.figures.items()}
            faults = Counter(fault.kind for fault in system.faults)
    finally:
        signal.alarm(0)
    violations = report.pop("violations") + wrong
    line = {
        "row": name,
        "fault": row.fault,
        "store": store,
        "seed": seed,
        "trials": done,
        **({"planted": bug} if bug else {}),
        **report,
        "faults": dict(sorted(faults.items())),
        "seconds": round(time.monotonic() - began),
        "violations": violations,
    }
    print(json.dumps(line), flush=True)
    if violations and not control:
        print(f"the ledgers and logs of this run are in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    if control:
        return not any(each.startswith(row.shows) for each in violations)
    return not violations


def _trials(system: System, row: Row, planned: int, patience: float) -> tuple[int, list[str]]:
    wrong: list[str] = []
    for n in range(1, planned + 1):
        wrong += [f"trial {n}: {each}" for each in row.trial(system)]
        system.published()
        if not system.is_drained(patience):
            return n, [*wrong, f"trial {n}: not drained within {patience:g} s"]
        if sys.stderr.isatty():
            print(f"\r{n}/{planned} ", end="", file=sys.stderr, flush=True)
    return planned, wrong


def _end(number: int, _: object) -> None:
    raise Ended(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
