"""Runs rows of the fault matrix: hookline must keep its promises while it is being killed.

It uses real processes and prints a line of JSON for each row and store; the exit status is 0 if every promise held.
With --control a bug is planted that the row must find: 1 then means that every row found its bug, and 0 that one did
not. 3 is a run that broke, 4 one that this machine lacks the means for. See CONTRIBUTING.md.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.checker import Fault, check
from tests.chaos.registry import rows
from tests.chaos.row import Row
from tests.chaos.system import System
from tests.security import namespace

START_S, TRIAL_S = 300, 240  # time limits: for the set-up, and for each trial
CONTROL_TRIALS = 8  # a kill may miss the moment in which the bug shows; if eight miss it, it is not shown
BROKEN, WITHOUT_MEANS = 3, 4
APART = "CHAOS_APART"  # set in a network of its own
ROWS = rows()


class Ended(Exception):
    """It took too long, or was asked to stop."""


class Plan(NamedTuple):
    """How much to try."""

    seed: int
    trials: int | None  # None: as many as the row has
    leeway: float  # how many times its figure a timing may be
    control: bool  # plant the row's bug


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", default=",".join(ROWS), help="such as F05,F07 (default: all there are)")
    options.add_argument(
        "--store", choices=["sqlite", "postgres"], help="default: both, where a row has both"
    )
    options.add_argument("--trials", type=int, help="faults per row and store (default: the row's)")
    options.add_argument("--seed", type=int, help="default: by chance; it is printed")
    options.add_argument(
        "--leeway",
        type=float,
        default=1.0,
        help="times its figure that a timing may be (default: 1); inf: counts alone are judged",
    )
    options.add_argument("--control", action="store_true", help="plant the row's bug: must exit 1")
    given = options.parse_args()
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
    seed = random.SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    plan = Plan(seed, given.trials, given.leeway, given.control)
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, _end)
    missing = {each: found for each in wanted if (found := _missing(ROWS[each[0]]))}
    for (name, store), found in missing.items():
        print(f"{name} on {store} is left out: {found}", file=sys.stderr)
    try:
        results = [run(name, store, plan) for name, store in wanted if (name, store) not in missing]
    except Exception as error:
        # Not 1: a run that broke, for whatever reason, has found nothing, with a bug or without.
        print(f"the run broke: {type(error).__name__}: {error}", file=sys.stderr)
        if not isinstance(error, Ended | OSError | RuntimeError):
            traceback.print_exc()
        return BROKEN
    if not results:
        return WITHOUT_MEANS
    if plan.control:
        return 0 if any(results) else 1
    return 0 if all(results) else 1


def run(name: str, store: str, plan: Plan) -> bool:
    """One row on one store; returns whether every promise held, or with a bug whether it went unnoticed."""
    row = ROWS[name]
    if row.own_network and not os.environ.get(APART):
        return _run_apart(name, store, plan)
    planned = plan.trials or (CONTROL_TRIALS if plan.control else row.trials)
    if plan.control:
        planned = min(planned, CONTROL_TRIALS)
    folder = Path(tempfile.mkdtemp(prefix="hookline-chaos-"))
    began = time.monotonic()
    signal.alarm(START_S + TRIAL_S * planned)
    bug = row.bug if plan.control else ""
    try:
        with row.system(
            folder, store=store, seed=plan.seed, bug=bug, scene=row.scene, leeway=plan.leeway
        ) as system:
            done, wrong = _trials(system, row, planned, plan)
            faults = _faults(system)
            report = _checked(system, row)
            report |= {name: round(value, 2) for name, value in system.figures.items()}
            report["drag"] = round(system.drag.worst, 1)
    finally:
        signal.alarm(0)
    violations = report.pop("violations") + wrong
    line = {
        "row": name,
        "fault": row.fault,
        "store": store,
        "seed": plan.seed,
        "trials": done,
        **({"planted": bug} if bug else {}),
        **report,
        "faults": dict(sorted(Counter(fault.kind for fault in faults).items())),
        "seconds": round(time.monotonic() - began),
        "cpu_s": round(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])),
        "violations": violations,
    }
    print(json.dumps(line), flush=True)
    if violations and not plan.control:
        print(f"the ledgers and logs of this run are in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    if not plan.control:
        return not violations
    found = _shows(row, violations)
    verdict = "was found, as it must be" if found else f"WENT UNSEEN: no {row.shows!r} among the violations"
    print(f"{name} on {store}: the planted bug {bug} {verdict}", file=sys.stderr)
    return not found


def _run_apart(name: str, store: str, plan: Plan) -> bool:
    """The same in a network of its own, which ends with its last process."""
    command = [*(namespace.way_in() or ()), sys.executable, "-m", "tests.chaos.run", "--rows", name]
    command += ["--store", store, "--seed", str(plan.seed), "--leeway", str(plan.leeway)]
    command += ["--trials", str(plan.trials)] if plan.trials else []
    command += ["--control"] if plan.control else []
    child = subprocess.Popen(command, env={**os.environ, APART: "1"})
    try:
        status = child.wait()
    except BaseException:
        child.terminate()  # it ends what it has started
        child.wait()
        raise
    if status not in (0, 1):
        raise RuntimeError(f"{name} on {store} ended with {status} in its network")
    return status == 0


def _trials(system: System, row: Row, planned: int, plan: Plan) -> tuple[int, list[str]]:
    wrong: list[str] = []
    for n in range(1, planned + 1):
        wrong += [f"trial {n}: {each}" if not plan.control else each for each in row.trial(system)]
        if plan.control and _shows(row, wrong):
            return n, wrong  # a bug may have left nobody who could take what is still to be published
        system.published()
        if not system.is_drained():
            (system.folder / "left.txt").write_text("\n".join(system.database.left()))
            return n, [*wrong, f"trial {n}: not drained"]
        if plan.control and (wrong or _shows(row, _checked(system, row)["violations"])):
            return n, wrong
        if sys.stderr.isatty():
            print(f"\r{n}/{planned} ", end="", file=sys.stderr, flush=True)
    return planned, wrong


def _faults(system: System) -> list[Fault]:
    return sorted((*system.faults, *system.burials()))


def _checked(system: System, row: Row) -> dict[str, Any]:
    """What the ledgers and the database say of all trials until now."""
    return check(
        system.promises(),
        system.receipts(),
        system.database.rows(),
        _faults(system),
        row.limits.with_leeway(system.leeway),
    )


def _shows(row: Row, violations: list[str]) -> bool:
    """Whether its bug is among them."""
    return any(each.startswith(row.shows) for each in violations)


def _missing(row: Row) -> str | None:
    return next((found for need in row.needs if (found := need())), None)


def _end(number: int, _: object) -> None:
    raise Ended(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
