"""Runs a sample of the fault matrix for `make test`: real processes, killed, starved and cut off.

The rows marked `everyday`, on each of their stores, and their controls, each on one store, are divided into shares
(tests/shares.py): four commits in a row run all of them. The hash of the commit's files is the seed of victims and
moments, so that a commit always runs the same. A few run at once, because most of a trial is waiting. Prints a line for
each run when it ends, and all details of a failed run. Counts are judged exactly; times are not judged here, but in
`make chaos`. Exits with 0 if all promises held and all planted bugs were found.
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
from xml.etree import ElementTree

from tests.chaos.process import ROOT
from tests.chaos.registry import rows
from tests.chaos.run import WITHOUT_MEANS
from tests.shares import SHARES, dealt, number_of_the_commit, seed_of_the_commit

AT_ONCE = 3
TRIALS = 3
NO_TIMES = "inf"  # times its figure that a timing may be
A_BUGS_LEEWAY = "3"  # a bug that must show in a time shows in one that a busy machine alone does not reach
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
        for name in ("trials", "acked", "lost", "duplicated", "seconds", "cpu_s")
        if name in line
    ]
    return ", ".join([*named, *line["violations"]])


def why(said: str) -> str:
    """What was violated, if the run came that far."""
    lines = said.splitlines()
    return ", ".join(json.loads(lines[-1])["violations"]) if lines else ""


def jobs(number: int) -> Iterator[Job]:
    """The jobs of the commit with this number, the longest first."""
    chosen = {name: row for name, row in reversed(rows().items()) if row.everyday}
    yield from dealt([Job(name, store) for name, row in chosen.items() for store in row.stores], number)
    for name in dealt(list(chosen), number):
        stores = chosen[name].stores
        yield Job(name, stores[number // SHARES % len(stores)], control=True)


class Everyday:
    """Runs the jobs and keeps their results."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._report = ElementTree.Element("testsuite")
        self.failed = 0

    def run(self, job: Job) -> None:
        command = [sys.executable, "-m", "tests.chaos.run", "--rows", job.row, "--store", job.store]
        command += ["--seed", str(self._seed)]
        if job.control:
            command += ["--control", "--leeway", A_BUGS_LEEWAY]
        else:
            command += ["--trials", str(TRIALS), "--leeway", NO_TIMES]
        began = time.monotonic()
        try:
            ended = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=CEILING_S
            )
            status, said, complaint = ended.returncode, ended.stdout, ended.stderr
        except subprocess.TimeoutExpired:
            status, said, complaint = -1, "", f"ended after {CEILING_S:g} s"
        case = {"classname": "faults", "name": str(job), "time": f"{time.monotonic() - began:.1f}"}
        with self._lock:
            noted = ElementTree.SubElement(self._report, "testcase", case)
            if status == WITHOUT_MEANS:
                ElementTree.SubElement(noted, "skipped", message=complaint.strip())
                print(f"left out  {job}", flush=True)
            elif status != (BUG_FOUND if job.control else 0) or not said:  # a run that broke prints nothing
                self.failed += 1
                message = f"ended with {status}: {why(said) or complaint.strip()[-300:]}"
                ElementTree.SubElement(noted, "failure", message=message)
                print(f"FAILED    {job} ended with {status}\n{said}{complaint}", end="", flush=True)
            else:
                print(f"{'found' if job.control else 'held':9} {job}: {in_short(said)}", flush=True)

    def write(self, file: Path) -> None:
        """The result of each run, in JUnit's format."""
        ElementTree.ElementTree(self._report).write(file)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, help="default: the commit's; it is printed")
    options.add_argument("--report", type=Path, help="write the result of each run to this file")
    given = options.parse_args()
    seed: int = seed_of_the_commit() if given.seed is None else given.seed
    number = number_of_the_commit()
    every = list(jobs(number))
    print(f"share {number % SHARES}, seed {seed}: {len(every)} runs, {AT_ONCE} at once", flush=True)
    began = time.monotonic()
    everyday = Everyday(seed)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            list(threads.map(everyday.run, every))
        except KeyboardInterrupt:
            threads.shutdown(wait=False, cancel_futures=True)  # running ones finish
            raise
    print(f"{len(every)} runs in {time.monotonic() - began:.0f} s, {everyday.failed} failed", flush=True)
    if given.report is not None:
        everyday.write(given.report)
    return 1 if everyday.failed else 0


if __name__ == "__main__":
    sys.exit(main())
