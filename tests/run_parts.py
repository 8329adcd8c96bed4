"""Runs the suite in parts, a few at once, and says at the end how long each took, what was slow and what was skipped.

A part is a process with servers, ports and folders of its own. What it prints is shown when it ends. Every part runs
whatever became of the others; the exit status is 0 only if all of them passed. When CI is set a skip is a failure: there,
everything that tests need can be had. What runs of it is decided by the commit (shares.py), never by the machine.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from security.files import ELSEWHERE as ABOUT_SECURITY
from shares import CHOSEN, HANDED_DOWN, SHARES, share_of_the_commit

TESTS = Path(__file__).parent
AT_ONCE = (os.cpu_count() or 1) + 2  # half of a part's time it waits for processes and answers
NOTHING_COLLECTED = 5
LONGEST_S = 3_600  # for one part: ten times what the longest takes, on a machine that has other work
SLOWEST = 20


class Part(NamedTuple):
    """Folders of tests, their files dealt out to so many processes."""

    name: str
    folders: tuple[str, ...]
    slices: int = 1
    is_fast: bool = False  # also part of `make check`, there on SQLite alone


class Slice(NamedTuple):
    """What one process runs: these files, or the rows of the fault matrix (tests/chaos/everyday.py)."""

    name: str
    files: list[Path]


class Case(NamedTuple):
    """A test that ran, and how it ended."""

    name: str
    seconds: float
    skipped: str | None = None  # why
    failed: str | None = None


class Result(NamedTuple):
    part: str
    passed: bool
    seconds: float
    cpu_seconds: float  # of the process and all it started
    cases: list[Case]


FAULTS = Slice("faults", [])  # real processes killed, starved and cut off: no test functions
# In the order in which they are begun: the longest first.
PARTS = (
    Part("dashboard", ("dashboard",), 2),
    Part("simulation", ("sim",)),
    Part("cli", ("cli",), 5),
    Part("api", ("api",), 4),
    Part("pipeline", ("pipeline",), 4, is_fast=True),
    Part("contract", ("contract",), 4, is_fast=True),
    Part("security", ("security",), 4),
    Part("browser", ("browser",), 2),
    Part("model", ("model",)),
    Part("clients, testing kit", ("client", "testing")),
    Part("receivers", ("receiver_kit",)),
    Part(
        "architecture, rules",
        (".", "rules", "validate", "crypto", "admin", "reports", "store"),
        is_fast=True,
    ),
)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="*", help="such as 'pipeline' or 'pipeline 2' (default: all)")
    options.add_argument("--fast", action="store_true", help="some of the parts, on SQLite alone")
    options.add_argument("--security", action="store_true", help="what is about security, of all parts")
    options.add_argument("--at-once", type=int, default=AT_ONCE, help=f"parts (default here: {AT_ONCE})")
    given = options.parse_args()
    there_are = security() if given.security else slices(fast=given.fast)
    wanted = [each for each in there_are if not given.parts or _is_named(each, given.parts)]
    if not wanted:
        options.error(f"no such part; there are {', '.join(each.name for each in there_are)}")
    # A shell that starts us in the background has it ignored, by all that we start too; some tests end programs with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    share = share_of_the_commit()
    print(f"{len(wanted)} parts, {given.at_once} at once, share {share} of 0 to {SHARES - 1}", flush=True)
    began = time.monotonic()
    results = Runner(fast=given.fast).run(wanted, at_once=given.at_once)
    print(f"\n== summary: share {share}, HOOKLINE_TEST_SHARE={share} runs the same of other commits")
    for line in summary(results, time.monotonic() - began):
        print(line)
    if os.environ.get("CI") and any(case.skipped is not None for each in results for case in each.cases):
        print("A skip is a failure when CI is set.")
        return 1
    return 0 if all(result.passed for result in results) else 1


def environment() -> dict[str, str]:
    """What parts run with: ours, but a share that was chosen is called differently."""
    found = dict(os.environ)
    if chosen := found.pop(CHOSEN, None):
        found[HANDED_DOWN] = chosen
    return found


def slices(*, fast: bool) -> list[Slice]:
    """What is run, longest first. A folder that no part names becomes a part of its own: none can be forgotten."""
    named = {folder for part in PARTS for folder in part.folders}
    others = sorted(path.name for path in TESTS.iterdir() if path.is_dir() and path.name not in named)
    wanted = (
        [part for part in PARTS if part.is_fast]
        if fast
        else [*PARTS, *(Part(each, (each,)) for each in others)]
    )
    found = [each for part in wanted for each in dealt(part)]
    return found if fast else [FAULTS, *found]


def security() -> list[Slice]:
    """What is about security, each file in the slice that it is in otherwise; the same name runs it there."""
    wanted = {TESTS / each for each in ABOUT_SECURITY} | set(tests_in("security"))
    found = [Slice(each.name, [file for file in each.files if file in wanted]) for each in slices(fast=False)]
    return [each for each in found if each.files]


def dealt(part: Part) -> list[Slice]:
    """Each file to one slice, in turn: neighbours by name are often alike, and cost alike."""
    files = [file for folder in part.folders for file in tests_in(folder)]
    if part.slices == 1:
        return [Slice(part.name, files)] if files else []
    # Not more slices than files: pytest without a file would run all there are.
    return [
        Slice(f"{part.name} {n + 1}", files[n :: part.slices]) for n in range(min(part.slices, len(files)))
    ]


def tests_in(folder: str) -> list[Path]:
    found = TESTS.glob("test_*.py") if folder == "." else (TESTS / folder).rglob("test_*.py")
    return sorted(found)


class Runner:
    """Runs slices, each in a process."""

    def __init__(self, *, fast: bool) -> None:
        self._fast = fast
        self._printing = threading.Lock()
        self._running: set[int] = set()

    def run(self, wanted: list[Slice], *, at_once: int) -> list[Result]:
        """All of them, begun in this order."""
        with ThreadPoolExecutor(at_once) as threads:
            try:
                return list(threads.map(self._run, wanted))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                for process in list(self._running):
                    _send(process, signal.SIGINT)  # their servers end with them
                raise

    def _run(self, part: Slice) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            report, output = Path(folder) / "report.xml", Path(folder) / "output"
            began = time.monotonic()
            with output.open("wb") as file:
                process = subprocess.Popen(
                    self._command(part, report),
                    cwd=TESTS.parent,
                    env=environment(),
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
                status, cpu_seconds = self._wait(process.pid)
            process.returncode = status
            seconds = time.monotonic() - began
            with self._printing:
                print(f"\n== {part.name}\n{output.read_text(errors='replace').rstrip()}", flush=True)
                if status == -signal.SIGKILL:
                    print(f"killed, after {LONGEST_S} s if by us: a test hangs (its stack is above)")
                print(f"-- {part.name}: {seconds:.0f} s, {cpu_seconds:.0f} s of a processor", flush=True)
            passed = status == 0 or (self._fast and status == NOTHING_COLLECTED)
            return Result(part.name, passed, seconds, cpu_seconds, cases(report))

    def _command(self, part: Slice, report: Path) -> list[str]:
        if part is FAULTS:
            return [sys.executable, "-m", "tests.chaos.everyday", "--report", str(report)]
        # The cache is one for all, and only of use to somebody who runs some tests again.
        command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        command += ["-k", "not postgres"] if self._fast else []
        return [*command, *map(str, part.files)]

    def _wait(self, process: int) -> tuple[int, float]:
        """Its exit status and the seconds of a processor that it and its children took."""
        self._running.add(process)
        ceiling = threading.Timer(LONGEST_S, _send, (process, signal.SIGKILL))
        ceiling.daemon = True
        ceiling.start()
        try:
            _, status, used = os.wait4(process, 0)
        finally:
            ceiling.cancel()
            self._running.discard(process)
        return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def summary(results: list[Result], seconds: float) -> list[str]:
    """What to know when it is over: the parts, the slowest tests, what was skipped and what failed."""
    lines = [
        f"{'passed' if each.passed else 'FAILED'} {each.seconds:7.1f} s, {each.cpu_seconds:7.1f} s of a processor  {each.part}"
        for each in results
    ]
    lines.append(
        f"       {seconds:7.1f} s, {sum(each.cpu_seconds for each in results):7.1f} s of a processor  in all"
    )
    every = [case for each in results for case in each.cases]
    lines.append(f"\n== the slowest {SLOWEST} of {len(every):,} tests")
    slowest = sorted(every, key=lambda case: -case.seconds)[:SLOWEST]
    lines += [f"{case.seconds:7.1f} s  {case.name}" for case in slowest]
    lines.append("")
    lines += [f"skipped: {case.name}: {case.skipped}" for case in every if case.skipped is not None]
    lines += [f"failed: {case.name}: {case.failed}" for case in every if case.failed is not None]
    lines += [
        f"failed: {each.part}, without a report" for each in results if not each.passed and not each.cases
    ]
    return lines


def cases(report: Path) -> list[Case]:
    """The tests in a report of JUnit's form. Without one (pytest itself broke) there are none: the status tells."""
    if not report.exists():
        return []
    every = ElementTree.parse(report).iter("testcase")  # noqa: S314 - written by our own process a moment ago
    return [
        Case(
            f"{each.get('classname')}::{each.get('name')}",
            float(each.get("time") or 0),
            skipped=_message(each, "skipped"),
            failed=_message(each, "failure", "error"),
        )
        for each in every
    ]


def _message(case: ElementTree.Element, *kinds: str) -> str | None:
    found = [(end.get("message") or "")[:300] for kind in kinds for end in case.iter(kind)]
    return "; ".join(found) if found else None


def _is_named(part: Slice, names: list[str]) -> bool:
    return any(part.name == name or part.name.startswith(f"{name} ") for name in names)


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


if __name__ == "__main__":
    sys.exit(main())
