"""Which faults does every run of the suite meet with, and for how long?

Every row marked `everyday`, on each of its stores, in at least three trials and as many more as fit; and the
controls of a third of the rows, each on one of its stores: which, the seed says. A few run at once, because most of
a trial is waiting. Prints a line for each run when it ends, and all that is known of one that failed. Timings may be three times their figure here, since
the machine is shared; counts are exact. Exits with 0 if all promises held and all planted bugs were found.
"""

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.chaos.process import ROOT
from tests.chaos.registry import rows
from tests.chaos.run import WITHOUT_MEANS

BUDGET_S = 570.0  # no trial but the least begins later; what has begun ends within twelve minutes
AT_ONCE = 3
LEAST = 3
LEEWAY = 3.0
CONTROLS = 3  # every so manieth row's control, in rotation
CEILING_S = 1_200.0  # for one run; it has ceilings of its own
BUG_FOUND = 1


class Job(NamedTuple):
    """One run: a row on a store."""

    row: str
    store: str
    control: bool = False

    def __str__(self) -> str:
        return f"{self.row} {self.store}{' with its bug' if self.control else ''}"


def in_short(said: str) -> str:
    """A run's line of JSON, for a person who only wants to know that it was a run."""
    line = json.loads(said.splitlines()[-1])
    named = [
        f"{name} {line[name]}"
        for name in ("trials", "acked", "lost", "duplicated", "seconds")
        if name in line
    ]
    return ", ".join([*named, *line["violations"]])


def why(said: str) -> str:
    """What was violated, if the run came that far."""
    lines = said.splitlines()
    return ", ".join(json.loads(lines[-1])["violations"]) if lines else ""


def jobs(seed: int) -> Iterator[Job]:
    """All of this seed, those that take longest first."""
    chosen = {name: row for name, row in rows().items() if row.everyday}
    for n, (name, row) in enumerate(reversed(chosen.items())):
        for store in row.stores:
            yield Job(name, store)
        if n % CONTROLS == seed % CONTROLS:
            yield Job(name, row.stores[seed // CONTROLS % len(row.stores)], control=True)


class Everyday:
    """Shares the time out among the jobs as they come up."""

    def __init__(self, seed: int, budget: float, every: list[Job]) -> None:
        self._seed = seed
        self._deadline = time.monotonic() + budget
        self._left = len(every)
        self._lock = threading.Lock()
        self.failed: list[str] = []
        self.skipped: list[str] = []

    def run(self, job: Job) -> None:
        with self._lock:
            share = max(0.0, self._deadline - time.monotonic()) * AT_ONCE / max(self._left, AT_ONCE)
            self._left -= 1
        command = [sys.executable, "-m", "tests.chaos.run", "--rows", job.row, "--store", job.store]
        command += ["--seed", str(self._seed), "--leeway", str(LEEWAY)]
        command += ["--control"] if job.control else ["--least", str(LEAST), "--seconds", f"{share:.0f}"]
        try:
            ended = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=CEILING_S
            )
            status, said, complaint = ended.returncode, ended.stdout, ended.stderr
        except subprocess.TimeoutExpired:
            status, said, complaint = -1, "", f"ended after {CEILING_S:g} s"
        with self._lock:
            if status == WITHOUT_MEANS:
                self.skipped.append(complaint.strip())
                print(f"left out  {job}", flush=True)
            elif status != (BUG_FOUND if job.control else 0) or not said:  # a run that fell over says nothing
                self.failed.append(f"{job} ended with {status}: {why(said) or complaint.strip()[-300:]}")
                print(f"FAILED    {job} ended with {status}\n{said}{complaint}", end="", flush=True)
            else:
                print(f"{'found' if job.control else 'held':9} {job}: {in_short(said)}", flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, help="default: by chance; it is printed")
    options.add_argument("--seconds", type=float, default=BUDGET_S, help=f"default: {BUDGET_S:g}")
    options.add_argument("--skips", type=Path, help="write what was left out to this file")
    options.add_argument("--failures", type=Path, help="write what failed to this file")
    given = options.parse_args()
    seed: int = random.SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    every = list(jobs(seed))
    print(f"seed {seed}: {len(every)} runs, {AT_ONCE} at once", flush=True)
    began = time.monotonic()
    everyday = Everyday(seed, given.seconds, every)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(everyday.run, every))
    print(f"{len(every)} runs in {time.monotonic() - began:.0f} s, {len(everyday.failed)} failed", flush=True)
    if given.skips is not None:
        given.skips.write_text("".join(f"{each}\n" for each in everyday.skipped))
    if given.failures is not None:
        given.failures.write_text("".join(f"{each}\n" for each in everyday.failed))
    return 1 if everyday.failed else 0


if __name__ == "__main__":
    sys.exit(main())
