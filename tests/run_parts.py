"""Does everything hold? Runs the suite in parts and says at the end how long each took and what was skipped.

Every part runs whatever became of the one before; the exit status is 0 only if all of them passed. When CI is
set a skip is a failure: there, everything that tests need can be had.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TESTS = Path(__file__).parent
PARTS = {
    "architecture, rules": [".", "rules", "validate", "crypto", "admin", "reports", "store"],
    "contract": ["contract"],
    "pipeline": ["pipeline"],
    "api, cli": ["api", "cli"],
    "receivers": ["receiver_kit"],
    "clients, testing kit": ["client", "testing"],
}
FAST = ("architecture, rules", "contract", "pipeline")
FAULTS = (
    "faults"  # real processes killed, starved and cut off: no test functions, see tests/chaos/everyday.py
)
NOTHING_COLLECTED = 5
LONGEST_S = 2_400  # for one part: four times what the longest takes
LONGEST_FAULTS_S = 3_600  # twelve minutes, but on a machine that has other work every row still runs


class Result(NamedTuple):
    part: str
    passed: bool
    seconds: float
    skipped: list[str]
    failed: list[str]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fast", action="store_true", help="the first parts, on SQLite alone")
    fast: bool = options.parse_args().fast
    # A shell that starts us in the background has it ignored, by all that we start too; some tests end programs with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = [run(part, paths, fast=fast) for part, paths in parts(fast=fast).items()]
    if not fast:
        results.append(run_faults())
    print("\n== summary")
    for result in results:
        print(f"{'passed' if result.passed else 'FAILED'}  {result.seconds:7.1f} s  {result.part}")
    print(f"        {sum(result.seconds for result in results):7.1f} s  in all")
    for line in (line for result in results for line in result.failed):
        print(f"failed: {line}")
    skipped = [line for result in results for line in result.skipped]
    for line in skipped:
        print(f"skipped: {line}")
    if skipped and os.environ.get("CI"):
        print("A skip is a failure when CI is set.")
        return 1
    return 0 if all(result.passed for result in results) else 1


def parts(*, fast: bool) -> dict[str, list[Path]]:
    """The files of each part. A folder that no part names becomes a part of its own: none can be forgotten."""
    named = {folder for folders in PARTS.values() for folder in folders}
    others = sorted(path.name for path in TESTS.iterdir() if path.is_dir() and path.name not in named)
    wanted = {**PARTS, **{folder: [folder] for folder in others}}
    if fast:
        wanted = {part: wanted[part] for part in FAST}
    found = {
        part: [path for folder in folders for path in tests_in(folder)] for part, folders in wanted.items()
    }
    return {part: paths for part, paths in found.items() if paths}


def tests_in(folder: str) -> list[Path]:
    if folder == ".":
        return sorted(TESTS.glob("test_*.py"))
    return [TESTS / folder] if any((TESTS / folder).rglob("test_*.py")) else []


def run(part: str, paths: list[Path], *, fast: bool) -> Result:
    print(f"\n== {part}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-rs", f"--junit-xml={report}"]
        command += ["-k", "not postgres"] if fast else []
        try:
            status = subprocess.run(
                [*command, *map(str, paths)], cwd=TESTS.parent, check=False, timeout=LONGEST_S
            ).returncode
        except subprocess.TimeoutExpired:
            print(f"ended after {LONGEST_S} s: a test hangs (its stack is above)")
            status = 1
        seconds = time.monotonic() - began
        passed = status == 0 or (fast and status == NOTHING_COLLECTED)
        return Result(part, passed, seconds, cases(report, "skipped"), cases(report, "failure", "error"))


def run_faults() -> Result:
    """The rows of the fault matrix; each prints its line."""
    print(f"\n== {FAULTS}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        skipped, failed = Path(folder) / "skipped", Path(folder) / "failed"
        began = time.monotonic()
        command = [sys.executable, "-m", "tests.chaos.everyday", "--skips", str(skipped)]
        command += ["--failures", str(failed)]
        try:
            status = subprocess.run(
                command, cwd=TESTS.parent, check=False, timeout=LONGEST_FAULTS_S
            ).returncode
        except subprocess.TimeoutExpired:
            print(f"ended after {LONGEST_FAULTS_S} s")
            status = 1
        return Result(FAULTS, status == 0, time.monotonic() - began, lines_of(skipped), lines_of(failed))


def cases(report: Path, *kinds: str) -> list[str]:
    """The tests that ended so, and why. Without a report (pytest itself broke) there are none: the status tells."""
    if not report.exists():
        return []
    every = ElementTree.parse(report).iter("testcase")  # noqa: S314 - written by pytest a moment ago
    return [
        f"{case.get('classname')}::{case.get('name')}: {(end.get('message') or '')[:300]}"
        for case in every
        for kind in kinds
        for end in case.iter(kind)
    ]


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


if __name__ == "__main__":
    sys.exit(main())
