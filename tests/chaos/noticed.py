"""Plants every bug of the simulation and of the model of the stores, and says of each whether it was noticed.

`make test` plants a quarter of them (tests/shares.py).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tests.chaos.process import ROOT

SETS = {"simulation": "tests/sim/test_planted_bugs.py", "model": "tests/model/test_planted_bugs.py"}
EVERY_BUG = {"HOOKLINE_SIM_BUGS": "all", "HOOKLINE_MODEL_BUGS": "all"}
CASE = "test_it_is_noticed_when["


class Noticed(NamedTuple):
    """The verdict on one bug, or on a test beside them."""

    name: str
    good: bool
    says: str


def look() -> list[Noticed]:
    """Plant every bug there is."""
    found = []
    for name, file in SETS.items():
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", "-rs", f"--junit-xml={report}", file]
            subprocess.run(command, cwd=ROOT, env={**os.environ, **EVERY_BUG}, check=False)
            found += read(name, report)
    return found


def read(name: str, report: Path) -> list[Noticed]:
    """The verdicts in pytest's report; a missing one means that the run broke."""
    if not report.exists():
        return [Noticed(name, False, "BROKE")]
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - written by pytest a moment ago
    return [_judge(name, case) for case in cases] or [Noticed(name, False, "BROKE")]


def _judge(name: str, case: ElementTree.Element) -> Noticed:
    test = case.get("name") or ""
    is_bug = test.startswith(CASE)
    shown = f"{name}: {test.removeprefix(CASE).removesuffix(']') if is_bug else test}"
    if case.find("skipped") is not None:
        return Noticed(shown, True, "left out: this machine has not the means for it")
    if case.find("failure") is not None:
        return Noticed(shown, False, "NOT NOTICED" if is_bug else "DID NOT")
    if case.find("error") is not None:
        return Noticed(shown, False, "BROKE")
    return Noticed(shown, True, "noticed" if is_bug else "held")
