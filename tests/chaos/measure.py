"""Runs the rows that measure, and their bugs.

Runs studies and prints a line of JSON for each row and store; exit statuses are those of run.py: 0 if every figure
held, with --control 1 if every row saw what its bug does, 3 for a run that broke, 4 for one that this
machine cannot run.
"""

import argparse
import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.chaos import network
from tests.chaos.registry import studies
from tests.chaos.stage import Stage
from tests.chaos.study import Study

BROKEN, WITHOUT_MEANS = 3, 4
LONG_TIMES = 6.0  # how the time limit of a trial in the long set compares to the others


class Ended(Exception):
    """It took too long, or was asked to stop."""


class Plan(NamedTuple):
    """How much to try."""

    seed: int
    trials: int | None
    leeway: float
    control: bool
    is_long: bool
    scale: float

    def trials_of(self, study: Study) -> int:
        if self.control:
            return 1 if self.trials is None else self.trials
        return self.trials or study.trials or 1


def main() -> int:
    found = studies()
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", default=",".join(found), help="such as F26,F34 (default: all there are)")
    options.add_argument(
        "--store", choices=["sqlite", "postgres"], help="default: both, where a row has both"
    )
    options.add_argument("--trials", type=int, help="of each row and store (default: the row's)")
    options.add_argument("--seed", type=int, help="default: by chance; it is printed")
    options.add_argument(
        "--leeway", type=float, default=1.0, help="times its figure that a timing may be (default: 1)"
    )
    options.add_argument("--control", action="store_true", help="plant the row's bug: must exit 1")
    options.add_argument("--long", action="store_true", help="as large as the long set has it")
    options.add_argument("--scale", type=float, default=1.0, help="times as large, to try a row")
    given = options.parse_args()
    names = [name for name in given.rows.upper().split(",") if name]
    if unknown := [name for name in names if name not in found]:
        options.error(f"no such row: {', '.join(unknown)}; there are {', '.join(found)}")
    wanted = [(name, store) for name in names for store in found[name].stores if given.store in (None, store)]
    if given.control:
        wanted = [
            (name, store) for name, store in wanted if found[name].bug and store not in found[name].unseen_on
        ]
    if not wanted:
        return WITHOUT_MEANS
    seed = random.SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    plan = Plan(seed, given.trials, given.leeway, given.control, given.long, given.scale)
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, _end)
    results = []
    try:
        for name, store in wanted:
            if missing := found[name].missing():
                print(f"{name} on {store} is left out: it takes {missing}", file=sys.stderr)
            else:
                results.append(run(name, found[name], store, plan))
    except (Ended, OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"the run broke: {type(error).__name__}: {error}", file=sys.stderr)
        return BROKEN
    if not results:
        return WITHOUT_MEANS
    if plan.control:
        return 0 if any(results) else 1
    return 0 if all(results) else 1


def run(name: str, study: Study, store: str, plan: Plan) -> bool:
    """One row on one store; returns whether every figure held, or with a bug whether it went unnoticed."""
    began = time.monotonic()
    done, wrong, folders = 0, [], []
    figures: dict[str, list[float]] = {}
    for n in range(1, plan.trials_of(study) + 1):
        folder = Path(tempfile.mkdtemp(prefix="hookline-chaos-"))
        found = _trial(study, folder, store, plan._replace(seed=plan.seed + n - 1))
        done = n
        wrong += [f"trial {n}: {each}" for each in found.wrong]
        for figure, value in found.figures.items():
            figures.setdefault(figure, []).append(round(value, 3))
        if found.wrong and not plan.control:
            folders.append(str(folder))
        else:
            shutil.rmtree(folder, ignore_errors=True)
        if sys.stderr.isatty():
            print(f"\r{n}/{plan.trials_of(study)} ", end="", file=sys.stderr, flush=True)
    line = {
        "row": name,
        "fault": study.fault,
        "store": store,
        "seed": plan.seed,
        "trials": done,
        **({"planted": study.bug} if plan.control else {}),
        **{figure: values if len(values) > 1 else values[0] for figure, values in figures.items()},
        "seconds": round(time.monotonic() - began),
        "violations": wrong,
    }
    print(json.dumps(line), flush=True)
    if folders:
        print(f"the ledgers and logs of this run are in {', '.join(folders)}", file=sys.stderr)
    if plan.control:
        return not any(study.shows in each for each in wrong)
    return not wrong


def _trial(study: Study, folder: Path, store: str, plan: Plan) -> Stage:
    signal.alarm(int(study.seconds * (LONG_TIMES if plan.is_long else 1)))
    try:
        with (
            network.own_network() if study.own_network else contextlib.nullcontext(),
            Stage(
                folder,
                store=store,
                seed=plan.seed,
                bug=study.bug if plan.control else "",
                leeway=plan.leeway,
                is_long=plan.is_long,
                scale=plan.scale,
            ) as stage,
        ):
            try:
                study.trial(stage)
            except TimeoutError as error:
                stage.wrong.append(str(error))
            return stage
    finally:
        signal.alarm(0)


def _end(number: int, _: object) -> None:
    raise Ended(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
