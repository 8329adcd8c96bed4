"""Which faults does every run of the suite meet with?

Every row marked `everyday`, on each of its stores, in three trials; and the controls of a third of the rows, each on one of
its stores: which, the seed says, and the seed is the commit's, so that one commit is tried in one way. A few run at once,
because most of a trial is waiting. Prints a line for each run when it ends, and all that is known of one that failed. Counts
are exact, times are not judged: that is for `make chaos`. Exits with 0 if all promises held and all planted bugs were found.
"""

import argparse
import json
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

AT_ONCE = 3
TRIALS = 3
NO_TIMES = "inf"  # times its figure that a timing may be
A_BUGS_LEEWAY = "3"  # where a bug must show in a time, it is one that a busy machine does not come to
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


def seed_of_the_commit() -> int:
    """The same for the same tree of files as it was committed; without a repository, always the same."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD^{tree}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(asked.stdout[:7], 16) if asked.returncode == 0 else 0


class Everyday:
    """Runs the jobs and keeps what became of them."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self.failed: list[str] = []
        self.skipped: list[str] = []

    def run(self, job: Job) -> None:
        command = [sys.executable, "-m", "tests.chaos.run", "--rows", job.row, "--store", job.store]
        command += ["--seed", str(self._seed)]
        if job.control:
            command += ["--control", "--leeway", A_BUGS_LEEWAY]
        else:
            command += ["--trials", str(TRIALS), "--leeway", NO_TIMES]
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
    options.add_argument("--seed", type=int, help="default: the commit's; it is printed")
    options.add_argument("--skips", type=Path, help="write what was left out to this file")
    options.add_argument("--failures", type=Path, help="write what failed to this file")
    given = options.parse_args()
    seed: int = seed_of_the_commit() if given.seed is None else given.seed
    every = list(jobs(seed))
    print(f"seed {seed}: {len(every)} runs, {AT_ONCE} at once", flush=True)
    began = time.monotonic()
    everyday = Everyday(seed)
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
